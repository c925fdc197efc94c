"""A run trains at its new place only when it has logged a step there."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cases import plan
from tfdeploy.agent.record.log import STDOUT, entry
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.run_state import FAILED, RUNNING, STARTING, STOPPED, SUCCEEDED, UNKNOWN, RunState
from tfdeploy.backends.move import StoppedRun
from tfdeploy.report.arrival import Arrival, last_step
from tfdeploy.report.report import Report

BEFORE, AFTER = (90.0, "step 4200: loss 0.3"), (110.0, "step 4201: loss 0.3")


def seen(state: str, *lines: tuple[float, str]) -> Report:
    empty: dict[str, Any] = dict.fromkeys(Report.__dataclass_fields__)
    return replace(Report(**empty), state=state, timed={"worker-0": list(lines)})


@pytest.mark.parametrize(
    ("state", "lines", "trains"),
    [
        (RUNNING, [BEFORE], False),
        (RUNNING, [BEFORE, AFTER], True),
        (RUNNING, [(110.0, "no step at all")], True),
        (RUNNING, [BEFORE, (110.0, "no step yet")], False),
        (RUNNING, [BEFORE, (110.0, "step 0: loss 2.3")], False),
        (RUNNING, [(90.0, "step 0: loss 2.3"), (110.0, "step 0: loss 2.3")], True),
        (RUNNING, [(110.0, "step 0: loss 2.3")], True),
        (STARTING, [BEFORE, AFTER], False),
        (SUCCEEDED, [BEFORE], True),
        (FAILED, [BEFORE, AFTER], False),
        (STOPPED, [BEFORE, AFTER], False),
        (UNKNOWN, [BEFORE, AFTER], False),
    ],
)
def test_a_step_after_the_submission_or_a_success(state: str, lines: list[tuple[float, str]], trains: bool) -> None:
    assert Arrival(100.0).trains(seen(state, *lines)) == trains


@pytest.mark.parametrize(
    ("checkpoints", "step", "trains"),
    [
        (["model.ckpt-4000"], 0, False),
        (["model.ckpt-4000"], 3999, False),
        (["model.ckpt-4000"], 4000, True),
        (["model.ckpt-4000", "eval/ckpt-5"], 100, False),
        (["ckpt-5000"], 1, True),
        (["ckpt-7"], 6, False),
        (["ckpt"], 1, True),
        ([], 1, True),
    ],
)
def test_a_counter_that_begins_again_does_not_show_that_it_continues(
    checkpoints: list[str], step: int, trains: bool
) -> None:
    rows: list[Any] = [{"name": name, "kind": "checkpoint"} for name in checkpoints]
    arrival = Arrival(100.0)
    latest = replace(seen(RUNNING, BEFORE, (110.0, f"step {step}: loss 2.3")), artifacts=rows)
    assert arrival.trains(latest) == trains
    assert bool(arrival.problem) == (not trains)


def test_without_a_wait_it_is_enough_that_it_runs() -> None:
    assert Arrival(100.0).trains(seen(RUNNING, BEFORE), needs_step=False)
    assert not Arrival(100.0).trains(seen(STARTING, BEFORE), needs_step=False)


def test_a_program_that_printed_steps_once_is_expected_to_print_them_again() -> None:
    arrival = Arrival(100.0)
    assert not arrival.trains(seen(RUNNING, BEFORE))
    assert not arrival.trains(seen(RUNNING, (110.0, "the last lines have no step any more")))


def test_the_first_step_at_the_new_place_stays_known() -> None:
    arrival, report = Arrival(100.0), seen(RUNNING, BEFORE, AFTER, (111.0, "step 4202: loss 0.3"))
    arrived = replace(report, timed={**report.timed, "worker-1": [(109.0, "resumed at step 4,200")]})
    steps = []
    for latest in (seen(RUNNING, BEFORE), arrived, seen(RUNNING, (200.0, "step 5000: loss 0.3"))):
        arrival.trains(latest)
        steps.append(arrival.step)
    assert steps == [None, 4200, 4200]


def test_the_last_step_of_a_record(tmp_path: Path) -> None:
    record, spec = Record(tmp_path), plan(workers=1).run
    assert last_step(StoppedRun(tmp_path, is_current=True)) == 0
    record.save(RunState(spec, 1.0))
    assert last_step(StoppedRun(tmp_path, is_current=True)) == 0
    streams = record.log(spec.id, "worker-0").streams
    text = b"step 4200: loss 0.3\n"
    streams["stdout"].put(0, text)
    streams["index"].put(0, entry(90.0, STDOUT, 1, 0, len(text)))
    assert last_step(StoppedRun(tmp_path, is_current=True)) == 4200
