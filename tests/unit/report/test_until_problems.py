"""A metric that `until` cannot compare is named, as long as that is so."""

from typing import Any

import pytest

from tests.unit.report.test_diagnosis import why
from tests.unit.report.test_report import NOON, sight
from tests.unit.simulation import World
from tfdeploy.agent.control.until import LoggedValue, note_problems
from tfdeploy.backends.base import ObservedState
from tfdeploy.report.until_problems import until_problems

ARGS: dict[str, Any] = {
    "workers": 1,
    "metrics": {"accuracy": "acc (.*)", "loss": "loss (.*)"},
    "until": {"accuracy": ">= 0.9", "loss": "< 0.1"},
}


def seen(logged: dict[str, str], now: dict[str, str] | None = None, end: str = "") -> ObservedState:
    """A run that has logged these values, and `now` others."""
    world = World(**ARGS)
    world.begin_at(NOON)
    world.come()
    values = {name: LoggedValue("worker-0", 1, text) for name, text in logged.items()}
    note_problems(world.job, values, [])
    if end:
        world.exit("worker-0", {"succeeded": 0, "failed": 1}[end])
    return sight(world, metrics=logged if now is None else now)


@pytest.mark.parametrize(
    ("logged", "now", "names"),
    [
        ({"accuracy": "97.5%,"}, None, ["accuracy"]),
        ({"accuracy": "0,97", "loss": "n/a"}, None, ["accuracy", "loss"]),
        ({"accuracy": "nan"}, None, ["accuracy"]),
        ({"loss": "inf"}, None, ["loss"]),
        ({"accuracy": ""}, None, ["accuracy"]),
        ({"accuracy": "0.97"}, None, []),
        ({"accuracy": "97.5%,"}, {"accuracy": "0.97"}, []),
        ({"accuracy": "97.5%,"}, {}, []),
        ({}, None, []),
    ],
)
@pytest.mark.parametrize("end", ["", "succeeded", "failed"])
def test_a_metric_that_is_not_a_number_is_named(
    logged: dict[str, str], now: dict[str, str] | None, names: list[str], end: str
) -> None:
    assert [problem.metric for problem in until_problems(seen(logged, now, end))] == names


@pytest.mark.parametrize("end", ["", "succeeded", "failed"])
def test_explain_names_the_value_and_what_to_set(end: str) -> None:
    found = next(item for item in why(seen({"accuracy": "97.5%,"}, end=end)) if "accuracy" in item.text)
    assert found.text == "`until` cannot compare accuracy: its last value '97.5%,' is not a number."
    assert "`metrics`" in found.remedy


def test_a_pattern_that_is_switched_off_is_named() -> None:
    at = seen({})
    assert at.view.run_state is not None
    at.view.run_state.until_problems.append("until_disabled accuracy")
    (problem,) = until_problems(at)
    assert problem.text.startswith("`until` does not see new values of accuracy")
