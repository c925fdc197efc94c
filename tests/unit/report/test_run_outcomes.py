"""How runs went, as receipts get it from records: results, times, metrics, speed and cost."""

import itertools
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.clusters import cluster_ref
from tests.unit.printing import write
from tests.unit.report.test_run_history import BASE, finished
from tests.unit.simulation import World
from tfdeploy import receipts
from tfdeploy.agent import events
from tfdeploy.agent.events import Event
from tfdeploy.agent.record.log_lines import STDOUT
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.run_state import RunState
from tfdeploy.backends.move import StoppedRun
from tfdeploy.receipts import Receipt, RunOutcome
from tfdeploy.report import run_outcomes
from tfdeploy.report.run_history import UNFINISHED, cost_text
from tfdeploy.report.run_outcomes import RecordSource, outcome, run_cost, store_outcomes, stored_outcome
from tfdeploy.report.stored_progress import last_step, speed

PATTERNS = {"accuracy": r"accuracy (\S+)"}
HOUR = 3600.0
MACHINE = (0.0, 10 * HOUR, 0.5)


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "tfdeploy"


def recorded(folder: Path, state: RunState) -> RecordSource:
    """The record of a run that printed steps and an accuracy; its receipt is stored."""
    record, run_id = Record(folder), state.spec.id
    record.save(state)
    steps = [(STDOUT, f"step {10 * second} loss 0.5\n".encode()) for second in range(5)]
    write(record.log(run_id, "worker-0"), [*steps, (STDOUT, b"accuracy 0.95\n")], begin=state.submitted_at)
    receipts.write(cluster_ref(), run_id, Receipt(spec=state.spec))
    return RecordSource(cluster_ref(), record, PATTERNS)


def is_known(run_id: str) -> bool:
    receipt = receipts.read(cluster_ref(), run_id)
    return receipt is not None and receipt.outcome is not None


def known(run_id: str) -> RunOutcome:
    receipt = receipts.read(cluster_ref(), run_id)
    assert receipt is not None
    assert receipt.outcome is not None
    return receipt.outcome


@pytest.mark.parametrize(
    ("billed", "cost"),
    [
        ([], None),
        ([MACHINE], 0.5),
        ([MACHINE, (2.5 * HOUR, 9 * HOUR, 1.0)], 1.0),
        ([(0.0, 2.25 * HOUR, 0.4)], 0.1),
        ([MACHINE, (2.0 * HOUR, 9 * HOUR, None)], None),
        ([MACHINE, (4.0 * HOUR, 9 * HOUR, None)], 0.5),
        ([(4.0 * HOUR, 9 * HOUR, 1.0)], None),
    ],
)
def test_a_run_costs_what_its_machines_cost_meanwhile(
    billed: list[tuple[float, float, float | None]], cost: float | None
) -> None:
    assert run_cost(billed, 2 * HOUR, 3 * HOUR) == cost


def test_what_is_known_of_a_run_that_has_ended_is_stored_once(tmp_path: Path) -> None:
    state = finished(1_000.0)
    source = replace(recorded(tmp_path / "record", state), billed=[MACHINE])
    store_outcomes(source, 60.0)
    run_id = state.spec.id
    counts, metrics = {"ps": 1, "worker": 2}, {"accuracy": "0.95"}
    assert known(run_id) == RunOutcome(
        1_000.0, 1_090.0, "succeeded", "worker-0 succeeded", counts, metrics, 10.0, 0.0125, True
    )
    store_outcomes(replace(source, billed=[], patterns={}), 60.0)
    stored = known(run_id)
    assert (stored.cost, stored.metrics) == (0.0125, {"accuracy": "0.95"}), "nothing of it changes any more"
    later = outcome(replace(source, billed=[]), state, 0.0, stored)
    assert (later.cost, later.steps_per_second) == (0.0125, 10.0)


def test_a_run_that_is_submitted_again_after_its_record_was_lost_is_another_one(tmp_path: Path) -> None:
    first, again = finished(1_000.0), finished(5_000.0)
    store_outcomes(recorded(tmp_path / "first", first), 60.0)
    Record(tmp_path / "again").save(again)
    store_outcomes(RecordSource(cluster_ref(), Record(tmp_path / "again"), {}), 60.0)
    stored = known(again.spec.id)
    assert stored.submitted == 5_000.0


def test_a_run_that_still_runs_is_not_final(tmp_path: Path) -> None:
    world = World(**BASE)
    world.come()
    state = world.job
    source = replace(recorded(tmp_path / "record", state), current=state.spec.id)
    store_outcomes(source, 60.0)
    stored = known(state.spec.id)
    assert (stored.result, stored.ended, stored.is_final) == ("running", None, False)


def test_what_a_resumed_run_cost_is_not_known(tmp_path: Path) -> None:
    state = finished(1_000.0)
    source = replace(recorded(tmp_path / "record", state), billed=[MACHINE])
    source.record.add_events(state.spec.id, [Event(events.RUN_RESUMED, 1_050.0)])
    assert outcome(source, state, 0.0).cost is None


def test_without_time_nothing_is_stored_and_a_damaged_run_is_left_out(tmp_path: Path) -> None:
    state, other = finished(1_000.0), finished(5_000.0, env={"LR": "0.1"})
    source = recorded(tmp_path / "record", state)
    recorded(tmp_path / "record", other)
    store_outcomes(source, -1.0)
    assert (is_known(state.spec.id), is_known(other.spec.id)) == (False, False)
    for path in source.record.run_folder(state.spec.id).glob("run_state.*"):
        path.write_text("{")
    store_outcomes(source, 60.0)
    assert (is_known(state.spec.id), is_known(other.spec.id)) == (False, True)


def test_what_took_too_long_is_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = finished(1_000.0)
    source, clock = recorded(tmp_path / "record", state), itertools.chain([0.0, 0.0], itertools.repeat(61.0))
    monkeypatch.setattr(run_outcomes, "time", SimpleNamespace(monotonic=lambda: next(clock), time=time.time))
    store_outcomes(source, 60.0)
    assert not is_known(state.spec.id)


def test_a_run_without_steps_has_no_speed(tmp_path: Path) -> None:
    record, state = Record(tmp_path), finished(1_000.0)
    record.save(state)
    assert speed(record, state) is None


def test_what_a_replaced_run_took_and_cost_stays_known(tmp_path: Path) -> None:
    world = World(**BASE)
    world.begin_at(1_000.0)
    world.come()
    world.wait(0.5 * HOUR)
    state = world.job
    state.tasks["worker-1"].ended = 1_100.0  # it failed once
    source = replace(recorded(tmp_path / "record", state), current="other", billed=[MACHINE])
    store_outcomes(source, 60.0)
    stored = known(state.spec.id)
    assert (stored.result, stored.ended, stored.is_final) == (UNFINISHED, 1_000.0 + 0.5 * HOUR, False)
    assert (stored.cost, stored.steps_per_second) == (0.25, 10.0)
    destroyed = replace(source, current="", billed=[])
    store_outcomes(destroyed, 60.0)
    assert known(state.spec.id) == stored
    assert outcome(destroyed, state, 0.0, stored) == stored


def test_the_metrics_of_a_run_that_goes_on_are_those_of_its_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(**BASE)
    world.come()
    state = world.job
    former = recorded(tmp_path / "record", state)
    source = replace(former, current=state.spec.id, observed={"accuracy": "0.9"})
    assert outcome(former, state, time.monotonic() + 60.0).metrics == {"accuracy": "0.95"}
    monkeypatch.delattr(Record, "metrics")
    assert outcome(source, state, 0.0).metrics == {"accuracy": "0.9"}


def test_a_run_whose_output_cannot_be_read_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = finished(1_000.0)
    source = recorded(tmp_path / "record", state)
    receipt = receipts.read(cluster_ref(), state.spec.id)
    monkeypatch.setattr(run_outcomes, "speed", lambda *_: (tmp_path / "missing").read_bytes())
    shown = stored_outcome(source, state, receipt, time.monotonic() + 60.0)
    assert (shown.result, shown.steps_per_second) == ("succeeded", None)
    assert not is_known(state.spec.id), "the next call tries again"


def test_no_output_is_read_for_the_speed_when_the_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = finished(1_000.0)
    source = recorded(tmp_path / "record", state)
    monkeypatch.delattr(run_outcomes, "speed")
    monkeypatch.setattr(run_outcomes, "suppress", lambda *_: nullcontext())
    shown = stored_outcome(source, state, receipts.read(cluster_ref(), state.spec.id), time.monotonic() - 1.0)
    assert shown.result == "succeeded"


def test_metrics_that_there_was_no_time_to_read_are_those_of_the_receipt(tmp_path: Path) -> None:
    state = finished(1_000.0)
    source = recorded(tmp_path / "record", state)
    store_outcomes(source, 60.0)
    late = replace(source, record=Record(tmp_path / "record"), patterns={"accuracy": r"accuracy (0\S+)"})
    assert outcome(late, state, -1.0, known(state.spec.id)).metrics == {"accuracy": "0.95"}


def test_a_price_that_is_known_later_counts(tmp_path: Path) -> None:
    state = finished(1_000.0)
    source = replace(recorded(tmp_path / "record", state), billed=[(0.0, HOUR, None)])
    store_outcomes(source, 60.0)
    first = known(state.spec.id)
    store_outcomes(replace(source, billed=[MACHINE]), 60.0)
    second = known(state.spec.id)
    assert (first.cost, second.cost) == (None, 0.0125)


def moved(source: RecordSource, state: RunState, origin: str, place: str, at: float, ended: float) -> RecordSource:
    """The record at the place that the run has moved to, where it continued and has ended."""
    run_id = state.spec.id
    move = Event(events.RUN_MOVED, at, origin=origin, place=place)
    source.record.add_events(run_id, [move, Event(events.RUN_RESUMED, at + 1)])
    for task in state.tasks.values():
        task.ended = ended
    assert state.result is not None
    state.result, state.moves = replace(state.result, at=ended), state.moves + 1
    source.record.save(state)
    receipts.reopen(cluster_ref(), run_id)
    return replace(source, billed=[(at - 60, ended + 60, 0.5)] if place == "ec2" else [])


def test_each_stay_of_a_run_that_moves_adds_its_cost(tmp_path: Path) -> None:
    state = finished(1_000.0)
    run_id, here = state.spec.id, recorded(tmp_path / "record", state)
    store_outcomes(replace(here, billed=[MACHINE]), 60.0)
    here = moved(here, state, "ec2", "local", 2_000.0, 2_500.0)
    store_outcomes(here, 60.0)
    stored = known(run_id)
    assert (stored.stays, stored.cost, stored.is_least_cost) == ((0.0125, 0.0), 0.0125, False)
    back = moved(here, state, "local", "ec2", 3_000.0, 3_720.0)
    store_outcomes(back, 60.0)
    stored = known(run_id)
    assert (stored.stays, stored.cost, stored.ended) == ((0.0125, 0.0, 0.1), 0.1125, 3_720.0)
    store_outcomes(replace(back, billed=[]), 60.0)
    assert known(run_id) == stored, "its machines are gone"
    assert outcome(replace(back, billed=[]), state, 0.0, stored).cost == 0.1125


def test_a_stay_of_which_the_cost_is_not_known_is_no_part_of_the_sum(tmp_path: Path) -> None:
    state = finished(1_000.0)
    run_id, here = state.spec.id, recorded(tmp_path / "record", state)
    store_outcomes(replace(here, billed=[(0.0, HOUR, None)]), 60.0)
    here = moved(here, state, "ec2", "local", 2_000.0, 2_500.0)
    store_outcomes(here, 60.0)
    stored = known(run_id)
    assert (stored.stays, stored.cost) == ((None, 0.0), None)
    back = moved(here, state, "local", "ec2", 3_000.0, 3_720.0)
    store_outcomes(back, 60.0)
    stored = known(run_id)
    assert (stored.cost, stored.is_least_cost, cost_text(stored)) == (0.1, True, "at least $0.10")
    back.record.add_events(run_id, [Event(events.RUN_RESUMED, 3_500.0)])
    assert outcome(back, state, 0.0, replace(stored, is_final=False)).stays[-1] is None, "other runs were between"


def test_the_record_of_a_place_that_a_run_has_left_changes_nothing(tmp_path: Path) -> None:
    state = finished(1_000.0)
    left = replace(recorded(tmp_path / "left", state), billed=[MACHINE])
    store_outcomes(left, 60.0)
    here = RecordSource(cluster_ref(), Record(tmp_path / "here"), {})
    here.record.save(finished(1_000.0))
    there = finished(1_000.0)
    store_outcomes(moved(here, there, "ec2", "local", 2_000.0, 2_500.0), 60.0)
    stored = known(state.spec.id)
    receipts.reopen(cluster_ref(), state.spec.id)
    reopened = known(state.spec.id)
    store_outcomes(left, 60.0)
    assert known(state.spec.id) == reopened
    assert outcome(left, state, 0.0, stored) == stored


def test_a_finished_run_costs_nothing_where_its_record_moves(tmp_path: Path) -> None:
    state = finished(1_000.0)
    here = recorded(tmp_path / "record", state)
    store_outcomes(here, 60.0)
    store_outcomes(moved(here, state, "local", "ec2", 2_000.0, 1_090.0), 60.0)
    stored = known(state.spec.id)
    assert (stored.stays, stored.cost) == ((0.0, 0.0), None)


def test_the_last_step_of_a_record(tmp_path: Path) -> None:
    stopped = StoppedRun(tmp_path, is_current=True)
    assert last_step(stopped) == 0
    recorded(tmp_path, finished(1_000.0))
    assert last_step(stopped) == 40
