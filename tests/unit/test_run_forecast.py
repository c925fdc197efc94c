"""When a preview has a line about the run before it, from the receipts on this computer."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.clusters import cluster_ref
from tests.unit.cases import BOX, inventory, spec
from tests.unit.report.test_run_history import BASE, finished
from tests.unit.simulation import World
from tfdeploy import receipts, registry
from tfdeploy.agent.run_state import RunState
from tfdeploy.component.run_forecast import forecast_lines
from tfdeploy.paths import cluster_folder, state_folder
from tfdeploy.plan.plan import make_plan
from tfdeploy.receipts import Receipt
from tfdeploy.report.expected import expected_state
from tfdeploy.report.run_history import outcome_of
from tfdeploy.spec.unknown_values import Unknown

MACHINES = {BOX.size: 1}


@pytest.fixture(autouse=True)
def own_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def lines(current: RunState | None, results: dict[str, str] | None = None, **args: Any) -> list[str]:
    """What the preview of these arguments has, where `current` is the current run."""
    wanted = spec(**{**BASE, **args})
    there = inventory(wanted, run=current, results=results or {})
    plan = make_plan(wanted, there)
    return forecast_lines(registry.Entry(cluster_ref("local"), "", expected_state(plan, wanted)), plan, there)


def stored(state: RunState, seconds: float = 90.0, **outcome: Any) -> RunState:
    """The state of a run that has a receipt, and took so long."""
    went = outcome_of(state, {"accuracy": "0.95"}, True)
    went = replace(went, **{"ended": went.submitted + seconds, **outcome})
    receipts.write(
        cluster_ref("local"), state.spec.id, Receipt({}, {}, MACHINES, replace(state.spec, tasks=[]), outcome=went)
    )
    return state


def receipts_folder() -> Path:
    return state_folder() / "receipts" / cluster_folder(cluster_ref("local"))


def runs(count: int, **args: Any) -> RunState:
    """So many runs with receipts; the state of the last one."""
    return [stored(finished(1_000.0 * number, **args, run_id=f"run-{number}")) for number in range(1, count + 1)][-1]


def test_two_runs_are_enough_for_a_forecast() -> None:
    assert lines(runs(2)) == ["last run: accuracy 0.95 after 90 s; expected 82 to 99 s"]


@pytest.mark.parametrize(
    "case",
    [
        lambda: lines(None),
        lambda: lines(runs(2), run_id="run-2"),
        lambda: lines(runs(2), run_id="run-2", workers=3),
        lambda: lines(runs(2), {finished(1.0).spec.id: "succeeded"}),
        lambda: lines(runs(2), standalone_servers=True, command=None),
        lambda: lines(finished(1_000.0, env={"LR": "1"})),
        lambda: lines(runs(2), env={"LR": Unknown("env.LR")}),
    ],
)
def test_there_is_no_line(case: Callable[[], list[str]]) -> None:
    """Nothing exists; nothing changes; the run continues; it was finished before; servers; no receipt of the last run; it is not
    known yet whether the run is a new one."""
    assert case() == []


def test_one_run_or_another_command_is_no_forecast() -> None:
    assert lines(runs(1), env={"LR": "1"}) == ["last run: accuracy 0.95 after 90 s; this change: env LR only"]
    changed = lines(runs(3), command=["python", "other.py"])
    assert changed == ["last run: accuracy 0.95 after 90 s; this change: command only"]


def test_a_failed_run_is_named_and_does_not_count() -> None:
    runs(2)
    failed = stored(finished(9_000.0, code="other"), 5.0, result="failed")
    (text,) = lines(failed)
    assert text.startswith("last run: failed after 5.0 s; this change: code only; expected 82 to 99 s")


def test_a_run_that_has_ended_since_the_last_update_is_not_called_running() -> None:
    state = finished(1_000.0)
    stored(state, result="running", ended=None, is_final=False, metrics={"accuracy": "0.1"})
    assert lines(state, env={"LR": "1"}) == ["last run: succeeded after 90 s; this change: env LR only"]
    world = World(**BASE)
    world.come()
    stored(world.job, result="running", ended=None, is_final=False)
    assert lines(world.job, env={"LR": "1"}) == ["last run: still running; this change: env LR only"]


def test_a_moved_run_that_has_ended_since_the_last_update_does_not_count() -> None:
    state = runs(2)
    assert "expected" in lines(stored(state, is_final=False))[0]
    assert "expected" not in lines(stored(state, is_final=False, stays=(0.0, None)))[0]


def test_a_receipt_of_the_same_run_in_a_lost_record_does_not_count() -> None:
    state = finished(9_000.0)
    stored(state, submitted=1_000.0, ended=1_005.0)
    assert lines(state, env={"LR": "1"}) == ["last run: succeeded after 90 s; this change: env LR only"]


@pytest.mark.parametrize("part", ["options", "spec"])
@pytest.mark.parametrize("number", [0, 2])
def test_a_damaged_receipt_fails_no_preview(part: str, number: int) -> None:
    states = [stored(finished(1_000.0 * at, run_id=f"run-{at}", code=f"code-{at}")) for at in range(1, 4)]
    path = next(receipts_folder().glob(f"{states[number].spec.id}.json"))
    data = json.loads(path.read_text())
    data[part] |= {"jobs": None} if part == "options" else {"command": None}
    path.write_text(json.dumps(data))
    assert lines(states[-1]) == []


def test_a_clock_that_was_set_back_shows_no_duration() -> None:
    last = stored(finished(1_000.0), -10.0)
    assert lines(last, env={"LR": "1"}) == ["last run: accuracy 0.95; this change: env LR only"]


def test_a_receipt_of_an_earlier_version_is_left_out() -> None:
    last = runs(3)
    receipts.write(cluster_ref("local"), "damaged", Receipt({}, {}, MACHINES))
    assert "expected" in lines(last)[0]
    receipts.write(cluster_ref("local"), last.spec.id, Receipt({}, {}, MACHINES))
    assert lines(last) == []
