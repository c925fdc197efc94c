"""Each invariant holds for a good observation, and fails for each that is broken in its way."""

from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.invariants import Observation, RunAccount, broken, parts
from tests.chaos.oracle import Pulse, Sample
from tests.chaos.training import STEPS, Ledger, Note

A, B = "a" * 32, "b" * 32
FIRST = f"start {A} from 0\nstep 1 line 0 xx\nstep 2 line 0 yy\n".encode()
SECOND = f"start {B} from 5\nstep 6 line 0 zz\n".encode()
NOTES = (
    Note("start", "worker-0", A, "train", first=0),
    Note("checkpoint", "worker-0", A, step=5),
    Note("start", "worker-0", B, "train", first=5),
    Note("end", "worker-0", B, step=STEPS),
)
EVENTS = (
    {"kind": "task_started", "task": "worker-0"},
    {"kind": "task_started", "task": "worker-0"},
    {"kind": "task_succeeded", "task": "worker-0"},
    {"kind": "run_ended"},
)
STORED = (
    {"kind": "artifacts_stored", "artifacts": ["export/1", "model.ckpt-10"]},
    {"kind": "artifacts_stored", "artifacts": ["model.ckpt-5"]},
)
RUN = RunAccount("succeeded", "tasks_succeeded", EVENTS, {"worker-0": FIRST + SECOND})
LEDGER = Ledger(NOTES, {A: FIRST, B: SECOND})
GOOD = Observation(LEDGER, [RUN], shown="succeeded")


def run(**changes: Any) -> Observation:
    return replace(GOOD, runs=[replace(RUN, **changes)])


def notes(*changed: Note) -> Observation:
    return replace(GOOD, ledger=replace(LEDGER, notes=changed))


def stream(data: bytes, **changes: Any) -> Observation:
    return run(streams={"worker-0": data}, **changes)


CUT = Note("cut", "worker-0")
LOST = Note("storage_lost", "*")

PULUMIS_TRACEBACK = """\
  dynamic/tfdeploy:Task **creating failed** error: Traceback (most recent call last):
@ updating....
Diagnostics:
    error: Traceback (most recent call last):
      File "x/pulumi/dynamic/__main__.py", line 84, in wrapper
        return fn(self, request, context)
    tfdeploy.errors.Unreachable: the Docker engine does not respond
"""

BROKEN = {
    "no record": (replace(GOOD, runs=[], ledger=Ledger(())), "the_run_ends: there is no record of a run"),
    "failed": (
        run(state="failed", cause="task_failed"),
        "the_run_ends: 0 s after the last fault the run is failed (task_failed)",
    ),
    "shown wrongly": (
        replace(GOOD, shown="running"),
        "the_run_ends: the run has succeeded, and `tfdeploy status` prints 'running'",
    ),
    "back": (
        notes(NOTES[0], NOTES[1], replace(NOTES[2], first=0), NOTES[3]),
        "steps_never_go_back: worker-0 began at step 0, and its last checkpoint was of step 5",
    ),
    "two ends": (run(events=[*EVENTS, EVENTS[-1]]), "it_trains_once: the end of a run was reported 2 times"),
    "started after success": (
        run(events=[*EVENTS, EVENTS[0]]),
        "it_trains_once: worker-0 had succeeded, and then task_started",
    ),
    "trained again": (
        notes(*NOTES, Note("start", "worker-0", "c" * 32, "train", first=5)),
        "it_trains_once: worker-0 had finished, and trains again from step 5",
    ),
    "two programs": (
        notes(*NOTES[:3], Note("checkpoint", "worker-0", A, step=10), NOTES[3]),
        "it_trains_once: worker-0 had two programs at once",
    ),
    "ended by nobody": (
        replace(GOOD, samples=[Sample(at, {"ps-0": Pulse("ab"[at > 3], at)}, {"ps-0": [1]}) for at in range(6)]),
        "training_goes_on: 4.0 s after the first sample, ps-0: its program was ended",
    ),
    "two processes": (
        replace(GOOD, samples=[Sample(0, {}, {"ps-0": [1, 2]})]),
        "training_goes_on: 0.0 s after the first sample, ps-0 had the processes (1, 2) at once",
    ),
    "one attempt twice": (
        run(attempts={"worker-0": [(A, 1), (B, 1)]}),
        "attempts_are_counted: worker-0: aaaaaa is attempt 1, and bbbbbb after it is attempt 1",
    ),
    "other byte": (
        stream(FIRST.replace(b"xx", b"x?") + SECOND),
        "lines_are_recorded: start aaaaaa of worker-0: byte 61",
    ),
    "more missing than was dropped": (
        stream(FIRST[40:], dropped={"worker-0": 3}),
        "lines_are_recorded: worker-0: the record has",
    ),
    "missing whole": (stream(SECOND), "lines_are_recorded: start aaaaaa of worker-0: the record has 0 of"),
    "missing from a disk": (
        replace(GOOD, stored=[("worker-0", A, 999)]),
        "lines_are_recorded: start aaaaaa of worker-0: its disk had 999",
    ),
    "the newest checkpoint": (
        run(events=[*EVENTS, *STORED], artifacts=["model.ckpt-5", "eval/ckpt-99"]),
        "the_newest_checkpoint_is_stored: model.ckpt-10 was stored, and the record has 5",
    ),
    "failed command": (replace(GOOD, failed={"3 up": "no"}), "commands_work: `3 up` failed: no"),
    "error of Python's": (
        replace(GOOD, outputs={"2 show": "x\nTraceback (most recent call last)\nKeyError"}),
        "commands_work: `2 show` printed an error of Python's",
    ),
    "error of Python's after one of tfdeploy's": (
        replace(GOOD, outputs={"2 up": f"{PULUMIS_TRACEBACK}    Traceback (most recent call last)\n    KeyError: 0"}),
        "commands_work: `2 up` printed an error of Python's: Traceback (most recent call last)\n    KeyError: 0",
    ),
    "left": (replace(GOOD, left=["process 7"]), "nothing_is_left: after `destroy` there is still process 7"),
    "neighbour": (
        replace(GOOD, neighbour=["it is unknown"]),
        "the_neighbour_is_untouched: the cluster beside it has changed: it is unknown",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_observation_is_reported(name: str) -> None:
    seen, expected = BROKEN[name]
    found = broken(seen)
    assert any(one.startswith(expected) for one in found), found


ALLOWED = {
    "good": GOOD,
    "killed: its last line may be missing": stream(FIRST.rpartition(b"step 2")[0] + SECOND),
    "cut: what was not sent is lost": replace(
        stream(SECOND), ledger=replace(LEDGER, notes=[NOTES[0], NOTES[1], CUT, *NOTES[2:]])
    ),
    "dropped and counted": stream(FIRST + SECOND[:-4], dropped={"worker-0": 4}),
    "storage lost, so it begins again": notes(NOTES[0], NOTES[1], LOST, replace(NOTES[2], first=0), NOTES[3]),
    "killed between its end and the report of it": notes(*NOTES, Note("start", "worker-0", A, "train", first=STEPS)),
    "an error of tfdeploy's, as Pulumi prints it": replace(GOOD, outputs={"2 up": PULUMIS_TRACEBACK}),
    "a newer checkpoint": run(events=[*EVENTS, *STORED], artifacts=["model.ckpt-5", "model.ckpt-15"]),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_a_fault_may_cost_is_no_broken_invariant(name: str) -> None:
    assert broken(ALLOWED[name]) == []


def test_a_stream_is_cut_where_programs_begin() -> None:
    torn = FIRST[:-5] + SECOND
    assert parts(torn) == {A: FIRST[:-5], B: SECOND}
    assert parts(b"") == {}


def test_what_is_done_is_of_the_newest_training() -> None:
    assert Ledger(NOTES[:2]).done == 5 / STEPS
    assert Ledger([*NOTES[:2], LOST]).done == 0
