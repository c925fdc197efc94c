"""The expected duration and cost of a new run: which earlier runs count, and when there is no forecast."""

import math
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from tests.clusters import ID
from tests.unit.cases import plan
from tfdeploy.receipts import Receipt, RunOutcome
from tfdeploy.report.forecast import SCATTER, Forecast, forecast, forecast_line, rounded
from tfdeploy.report.run_history import StoredRun

COMMAND = "python train.py --steps={} --learning_rate=0.1"
BASE: dict[str, Any] = {"ps": 1, "workers": 2}


def run(
    seconds: float = 0.0,
    steps: int = 1000,
    at: float = 0.0,
    command: str = COMMAND,
    result: str = "succeeded",
    rate: float | None = 10.0,
    cost: float | None = None,
    options: dict[str, str] | None = None,
    machine: str = "",
    **args: Any,
) -> StoredRun:
    """A run that took so long; also a planned one, of which that does not count."""
    planned = plan(command=command.format(steps).split(), **{**BASE, **args})
    tasks = {name: sum(task.job == name for task in planned.tasks) for name in planned.run.jobs}
    outcome = RunOutcome(at, at + seconds, result, "", tasks, {}, rate, cost, is_final=True)
    receipt = Receipt(options or {}, {}, {machine: 1}, planned.run)
    return StoredRun(("", ""), "p/dev/mnist", ID, "local", planned.run, outcome, receipt)


def expected(earlier: list[StoredRun], planned: StoredRun) -> tuple[float, float] | None:
    known = forecast(earlier, planned)
    return None if known is None else (known.low, known.high)


def test_nearly_all_of_the_duration_left_out_is_no_forecast() -> None:
    """The relative error of what remains is larger than any number."""
    earlier = [run(100 + 1e-6, rate=10.0), run(100 + 1e-6, rate=10.0)]
    assert expected(earlier, run(steps=0)) is None


@pytest.mark.parametrize(("rate", "shown"), [(1e-320, None), (-1.0, None), (1e300, (94, 118))])
def test_an_impossible_speed_is_no_forecast(rate: float, shown: tuple[float, float] | None) -> None:
    """At almost any number of steps a second, the steps themselves take no time."""
    earlier = [run(100, steps=0, rate=rate), run(110, steps=0, rate=rate)]
    assert expected(earlier, run(steps=1000)) == expected(earlier, run(steps=10**14)) == shown


@pytest.mark.parametrize(
    ("durations", "shown"),
    [
        ([], None),
        ([100], None),
        ([100, 110], (94, 118)),
        ([110, 100], (94, 118)),
        ([100, 100], (91, 110)),
        ([100, 100, 100, 100, 100], (94, 107)),
        ([100, 130], (94, 139)),
        ([100, 150], None),
        ([300, 100, 100, 100, 100, 100], (94, 107)),
        ([1000, 1100], (960, 1200)),
        ([200, 208], (186, 228)),
        ([5.0, 5.5], (4.7, 5.9)),
        ([20000, 20000], (18000, 21960)),
        ([0.01, 0.01], None),
    ],
)
def test_the_range_is_as_wide_as_the_latest_durations_differ_with_a_least_width(
    durations: list[float], shown: tuple[float, float] | None
) -> None:
    earlier = [run(seconds, at=1e6 * place) for place, seconds in enumerate(durations)]
    known = expected(earlier, run())
    assert known == (shown and pytest.approx(shown))


def test_about_85_percent_of_durations_are_in_their_range() -> None:
    """Durations that are distributed as the rules assume."""
    random = Random(1)
    results = []
    for _ in range(400):
        durations = [100 * math.exp(random.gauss(0.0, SCATTER)) for _ in range(random.randint(3, 6))]
        known = expected([run(seconds, at=place) for place, seconds in enumerate(durations[:-1])], run())
        assert known is not None
        results.append(known[0] <= durations[-1] <= known[1])
    assert 0.8 < sum(results) / len(results) < 0.9


def test_a_range_is_rounded_to_the_unit_of_its_lower_end() -> None:
    assert rounded(119.7, 143.0) == (120.0, 144.0), "2.0 to 2.4 min"
    assert rounded(9.96, 12.2) == (10.0, 12.0)


def test_elastic_runs_are_not_forecast() -> None:
    """The number of workers may have changed during them."""
    alike = [run(100, at=1), run(101, at=2)]
    elastic: dict[str, Any] = {"elastic": {"max": 4}}
    assert expected([run(100, at=1, **elastic), run(101, at=2, **elastic)], run()) is None
    assert expected(alike, run(**elastic)) is None


@pytest.mark.parametrize(
    "other",
    [
        {"result": "failed"},
        {"result": "stopped"},
        {"command": "python other.py --steps={} --learning_rate=0.1"},
        {"command": COMMAND + " --batch_size=64"},
        {"machine": "g6.xlarge"},
        {"env": {"BATCH": "64"}},
        {"jobs": {"worker": {"env": {"BATCH": "64"}}}},
        {"resume_from": "latest"},
        {"requirements": ["six"]},
        {"data_dir": "/data"},
        {"worker_timeout": "5m"},
        {"workers": 3},
        {"ps": 2},
        {"options": {"jobs": '{"worker": {"cpus": 2}}'}},
        {"options": {"container": '{"network": "host"}'}},
        {"metrics": {"loss": "loss (.*)"}, "until": {"loss": "< 1"}},
    ],
)
def test_runs_under_other_conditions_are_not_comparable(other: dict[str, Any]) -> None:
    alike = [run(100, at=1), run(101, at=2)]
    assert expected(alike, run()) is not None
    assert expected([alike[0], run(101, at=2, **other)], run()) is None
    if "result" not in other:
        assert expected(alike, run(**other)) is None


@pytest.mark.parametrize(
    "other",
    [
        {"code": "another"},
        {"command": COMMAND.replace("0.1", "0.2")},
        {"tensorboard": True},
        {"options": {"wait": "0", "container": '{"image": "mine:2"}', "jobs": '{"worker": {"env": {"LR": "…"}}}'}},
        {"run_id": "again"},
        {"start_timeout": "5m"},
    ],
)
def test_what_hardly_changes_the_duration_does_not_count(other: dict[str, Any]) -> None:
    assert expected([run(100, at=1), run(101, at=2, **other)], run()) is not None
    assert expected([run(100, at=1), run(101, at=2)], run(**other)) is not None


@pytest.mark.parametrize(
    ("one", "other"), [("--seed --batch=1", "--seed --batch=2"), ("--data-seed=1", "--data-seed=2")]
)
def test_an_option_that_only_looks_like_one_of_these_counts(one: str, other: str) -> None:
    alike = [run(100, at=place, command=f"{COMMAND} {one}") for place in range(2)]
    assert expected(alike, run(command=f"{COMMAND} {one}")) == (91, 110)
    assert expected(alike, run(command=f"{COMMAND} {other}")) is None


def test_an_option_and_its_value_may_be_two_words() -> None:
    command = "python train.py --steps {} --lr"
    earlier = [run(100, at=place, command=f"{command} 0.{place}") for place in range(2)]
    assert expected(earlier, run(command=f"{command} 0.7")) == (91, 110)


def test_other_steps_are_scaled_by_the_speed_of_each_run() -> None:
    earlier = [run(110, 1000, at=1, rate=10.0), run(109, 1000, at=2, rate=10.1)]
    assert [expected(earlier, run(steps=steps)) for steps in (1000, 1500, 200, 100_000)] == [
        (100, 120),
        (144, 180),  # 110 + 50 and 109 + 49.5 seconds
        None,  # 110 - 80 and 109 - 79 seconds: a speed that is wrong by a tenth changes them by a quarter
        pytest.approx((2.3 * 3600, 3.3 * 3600)),
    ]
    goals = [known.goal for steps in (1000, 1500) if (known := forecast(earlier, run(steps=steps)))]
    assert goals == [None, 1500]


def test_the_environment_may_have_the_steps() -> None:
    command = "python train.py"
    earlier = [run(100, at=place, command=command, env={"TRAIN_STEPS": "900"}) for place in range(2)]
    known = forecast(earlier, run(command=command, env={"TRAIN_STEPS": "1000"}))
    assert known is not None
    assert (known.goal, known.low, known.high) == (1000, 100, 121)


@pytest.mark.parametrize("other", [{"rate": None}, {"rate": 1.0}, {"command": COMMAND + " --max_steps=7"}])
def test_other_steps_without_a_speed_that_fits_are_not_scaled(other: dict[str, Any]) -> None:
    command = other.get("command", COMMAND)
    assert expected([run(100, at=place, **other) for place in range(3)], run(steps=1100, command=command)) is None


def test_a_run_that_a_metric_may_end_is_not_scaled() -> None:
    until: dict[str, Any] = {"metrics": {"loss": "loss (.*)"}, "until": {"loss": "< 1"}}
    earlier = [run(100, at=place, **until) for place in range(2)]
    assert expected(earlier, run(**until)) is not None
    assert expected(earlier, run(steps=1100, **until)) is None


def test_another_count_is_forecast_from_one_run_with_it_and_the_scatter_of_others() -> None:
    two_workers = [run(100, at=1), run(110, at=2)]
    assert expected(two_workers, run(workers=3)) is None
    assert expected([*two_workers[:1], run(60, at=3, workers=3)], run(workers=3)) is None
    one_of_three = run(60, at=3, workers=3)
    assert expected([*two_workers, one_of_three], run(workers=3)) == (53, 68)
    other_machines = [replace(run(100, at=place), receipt=Receipt({}, {}, {"g6.xlarge": 1})) for place in range(2)]
    assert expected([*other_machines, one_of_three], run(workers=3)) is None
    assert expected([run(100, at=1), run(190, at=2), one_of_three], run(workers=3)) is None, "they differ too much"
    assert expected([*two_workers, one_of_three, run(60, at=4, workers=3)], run(workers=3)) == (54, 66)


def test_the_cost_is_by_the_price_of_the_latest_run() -> None:
    earlier = [run(1000, at=1, cost=0.1), run(1000, at=2, cost=0.2)]
    known = forecast(earlier, run())
    assert known is not None
    assert known.cost == pytest.approx((900 * 0.0002, 1080 * 0.0002))
    unknown = forecast([*earlier, run(1000, at=3)], run())
    assert unknown is not None
    assert unknown.cost is None


def test_runs_that_have_moved_do_not_count() -> None:
    """They trained at several places, and not in between."""
    first, second = run(100, at=1), run(101, at=2)
    assert expected([first, second], run()) is not None
    assert expected([first, replace(second, outcome=replace(second.outcome, stays=(0.0, None)))], run()) is None


def test_runs_of_another_backend_or_whose_end_was_not_observed_do_not_count() -> None:
    first, second = run(100, at=1), run(101, at=2)
    running = replace(second, outcome=replace(second.outcome, ended=None, is_final=False))
    ending = replace(second, outcome=replace(second.outcome, is_final=False))
    for other in (running, ending, replace(second, backend="docker")):
        assert expected([first, other], run()) is None


WENT = RunOutcome(0.0, 842.0, "succeeded", metrics={"accuracy": "0.956"}, cost=0.08, is_final=True)


def line(outcome: RunOutcome = WENT, changed: tuple[str, ...] = ("code",), expected: Forecast | None = None) -> str:
    return forecast_line(replace(run(), outcome=outcome), changed, expected)


def test_all_that_is_known_is_one_line() -> None:
    assert line(expected=Forecast(780.0, 960.0, None, (0.0714, 0.0878))) == (
        "last run: accuracy 0.956 after 14 min, $0.08; this change: code only; expected 13 to 16 min, $0.071 to 0.088"
    )


@pytest.mark.parametrize(
    ("last", "text"),
    [
        (replace(WENT, cost=None), "accuracy 0.956 after 14 min"),
        (replace(WENT, metrics={}), "succeeded after 14 min, $0.08"),
        (replace(WENT, metrics={"model": "/train/export", "loss": None}), "succeeded after 14 min, $0.08"),
        (replace(WENT, metrics={"a": "1", "b": "2", "c": "3", "d": "4"}), "a 1, b 2, c 3 after 14 min, $0.08"),
        (replace(WENT, result="failed"), "failed after 14 min, $0.08"),
        (replace(WENT, result="stopped", cost=1.5), "stopped after 14 min, $1.50"),
        (RunOutcome(0.0, None, "running"), "still running"),
    ],
)
def test_the_last_run_is_named_by_its_metrics_or_its_result(last: RunOutcome, text: str) -> None:
    assert line(last) == f"last run: {text}; this change: code only"


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ((), ""),
        (("command", "code"), "; this change: command, code"),
        (("a", "b", "c", "d", "e", "f"), "; this change: a, b, c, d, 2 more"),
    ],
)
def test_few_changes_are_named(changed: tuple[str, ...], text: str) -> None:
    assert line(replace(WENT, cost=None), changed) == f"last run: accuracy 0.956 after 14 min{text}"


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (Forecast(4.5, 6.1), "4.5 to 6.1 s"),
        (Forecast(99.0, 122.0), "99 to 122 s"),
        (Forecast(120.0, 144.0), "2.0 to 2.4 min"),
        (Forecast(18360.0, 21960.0), "5.1 to 6.1 h"),
        (Forecast(99.0, 122.0, 1200.0), "99 to 122 s for 1200 steps"),
        (Forecast(780.0, 960.0, None, (12.34, 15.17)), "13 to 16 min, $12.00 to 15.00"),
        (Forecast(780.0, 960.0, None, (0.0, 0.0)), "13 to 16 min, $0.00"),
    ],
)
def test_the_range_is_in_one_unit(expected: Forecast, text: str) -> None:
    assert line(expected=expected).rpartition("; expected ")[2] == text
