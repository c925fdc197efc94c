"""A run that continues at another place: with the next attempt, without what belonged to the former place."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.cases import plan
from tfdeploy.agent.control import move, reconcile
from tfdeploy.agent.model.events import STOP_REQUESTED
from tfdeploy.agent.model.run_spec import RunJob, TaskSpec
from tfdeploy.agent.model.run_state import (
    MOVED,
    RUNNING,
    SCHEDULED,
    STARTING,
    STOPPED,
    TENSORBOARD,
    TO_MOVE,
    Ended,
    MachineUpload,
    RunState,
    continues,
)
from tfdeploy.agent.record.record import Record

SPEC = plan(ps=1, workers=2).run


def stopped_run() -> RunState:
    """A run whose worker-1 has never started."""
    run = RunState(SPEC, 1.0)
    for task in run.tasks.values():
        task.report = replace(task.report, machine="laptop")
        task.host, task.port, task.ready, task.seen = "127.0.0.1", 2222, True, 9.0
    for hostname in ("ps-0", "worker-0"):
        task = run.tasks[hostname]
        task.state, task.started, task.attempt, task.failures, task.losses = RUNNING, 5.0, 3, 2, 1
    run.address_book = dict.fromkeys(run.tasks, "127.0.0.1:2222")
    reconcile.stop_run(run, 10.0, to_move=True)
    for task in run.tasks.values():
        task.state, task.ended = STOPPED, 11.0
    run.tasks["worker-0"].end = Ended(143, "SIGTERM")
    run.uploads = {"laptop": MachineUpload("worker-0", 11.0)}
    return run


def test_a_run_is_stopped_to_be_moved_and_says_so() -> None:
    run = RunState(SPEC, 1.0)
    (event,) = reconcile.stop_run(run, 10.0, to_move=True)
    assert event.result is not None
    assert (event.result.state, event.result.cause) == (STOPPED, MOVED)
    reconcile.advance(run, 11.0)
    assert {(task.state, task.reason) for task in run.tasks.values()} == {(STOPPED, TO_MOVE)}
    assert continues(run)
    stopped = RunState(SPEC, 1.0)
    reconcile.stop_run(stopped, 10.0)
    reconcile.stop_run(stopped, 11.0, to_move=True)
    assert continues(stopped), "the user had stopped it before"


def test_the_stop_of_a_run_that_is_over_is_an_event_only_where_tensorboard_still_ran() -> None:
    run = RunState(SPEC, 1.0)
    reconcile.stop_run(run, 10.0)
    assert reconcile.stop_run(run, 11.0) == []
    jobs = {**SPEC.jobs, TENSORBOARD: RunJob(command=["tensorboard"])}
    run = RunState(replace(SPEC, tasks=[*SPEC.tasks, TaskSpec("tensorboard-0", TENSORBOARD, 0)], jobs=jobs), 1.0)
    reconcile.stop_run(run, 10.0)
    (event,) = reconcile.stop_run(run, 11.0)
    assert (event.kind, event.tasks) == (STOP_REQUESTED, ["tensorboard-0"])


def test_only_what_was_stopped_to_be_moved_continues_without_a_move() -> None:
    run = RunState(SPEC, 1.0)
    assert not continues(run)
    reconcile.stop_run(run, 10.0)
    assert not continues(run), "the user has stopped it"
    move.arrive(run)
    assert continues(run), "the user has moved it after that"


def test_tasks_begin_again_with_the_next_attempt() -> None:
    run = stopped_run()
    move.arrive(run)
    move.continue_run(run, 20.0)
    assert run.result is None
    assert not run.stop_requested
    assert (run.stopped_at, run.address_book, run.uploads, run.has_arrived) == (0.0, {}, {}, False)
    assert [(task.state, task.attempt) for task in run.tasks.values()] == [(STARTING, 4), (STARTING, 4), (SCHEDULED, 1)]
    for task in run.tasks.values():
        assert (task.report.machine, task.host, task.port, task.ready, task.seen) == ("", "", 0, False, 0.0)
        assert (task.failures, task.losses, task.end) == (0, 0, None)


FOLDERS = {
    "a URL": ("s3://bucket/train", "s3://bucket/train/run-01234567", "s3://bucket/train/run-01234567"),
    "a URL stays": ("{tmp}/other", "s3://bucket/train/run-01234567", "s3://bucket/train/run-01234567"),
    "an older checkpoint": ("{tmp}/used", "{tmp}/used/run", "{tmp}/used/run-2"),
    "another folder": ("{tmp}/new", "{tmp}/used/run", "{tmp}/new/run"),
    "another machine": ("{tmp}/new", "/not/here/run", "{tmp}/new/run"),
    "never a used folder": ("{tmp}/used", "/not/here/run", "{tmp}/used/run-2"),
    "to a URL": ("s3://bucket/train", "/not/here/run", "s3://bucket/train/run"),
}
"""The train_dir that is asked for, the folder of the former place, and the one that the run gets."""


@pytest.mark.parametrize("case", FOLDERS)
def test_the_run_gets_a_folder_of_the_new_place_unless_it_reaches_the_former_one(tmp_path: Path, case: str) -> None:
    base, former, expected = (text.format(tmp=tmp_path) for text in FOLDERS[case])
    (tmp_path / "used/run").mkdir(parents=True)
    (tmp_path / "used/run/checkpoint").touch()
    record = Record(tmp_path / "record")
    run = RunState(replace(SPEC, train_dir=former, restored_run=SPEC.id), 1.0)
    move.arrive(run)
    record.save(run)
    spec = move.claim_train_dir(record, replace(SPEC, train_dir=base), 0)
    again = move.claim_train_dir(record, replace(SPEC, train_dir=base), 0)
    stored = record.load(SPEC.id)
    assert stored is not None
    assert stored.spec.train_dir == expected
    assert spec.restored_run == again.restored_run == SPEC.id


def test_a_run_that_resumes_an_arrived_one_gets_its_folder_and_its_artifacts(tmp_path: Path) -> None:
    record = Record(tmp_path / "record")
    record.save(RunState(replace(SPEC, train_dir="/former/run"), 1.0, has_arrived=True))
    other = replace(SPEC, id="another", resume_from=SPEC.id, train_dir=str(tmp_path / "train"))
    assert move.claim_train_dir(record, other, 0).restored_run == SPEC.id
    earlier = record.load(SPEC.id)
    assert earlier is not None
    assert earlier.spec.train_dir == str(tmp_path / "train/run")
    new = replace(SPEC, id="new", train_dir=str(tmp_path / "train"))
    assert move.claim_train_dir(record, new, 0) == new
