"""A controller whose disk was lost gets the copy of its record, with what launchers could not report. Nothing newer is replaced."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.clusters import cluster_ref
from tests.unit.agent.imported import SPEC, recorded, run_state
from tests.unit.agent.served import Served
from tests.unit.agent.served import served as served
from tests.unit.cases import stored_run
from tests.unit.printing import write
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.model import events
from tfdeploy.agent.model.run_state import INTERRUPTED, RUNNING, SUCCEEDED, Ended, LauncherReport, RunState, TaskState
from tfdeploy.agent.record.output import Log, Reader
from tfdeploy.agent.record.output_lines import STDOUT
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.system.files import append
from tfdeploy.backends import lost_record
from tfdeploy.backends.record_copy import RecordCopy, RecordLost
from tfdeploy.errors import BackendError

CLUSTER = cluster_ref()
SECONDS = 5.0
LOGS = ["worker-0", "worker-0-left", "worker-0-left1"]


@pytest.fixture
def copy() -> Record:
    """The copy on this computer: worker-0 runs its second attempt."""
    run = run_state(address_book={"worker-0": "worker-0:2222"})
    task = run.tasks["worker-0"]
    task.attempt, task.state, task.report = 2, RUNNING, LauncherReport("worker-0", "one")
    task.host, task.port = "worker-0", 2222
    record = recorded(RecordCopy(CLUSTER).folder, run)
    record.touch(1_000.0)
    return record


def current(record: Record) -> RunState:
    return stored_run(record)


def test_an_empty_controller_gets_the_copy_once(served: Served, copy: Record) -> None:
    controller = served.client()
    with pytest.raises(RecordLost, match="its disk was lost"):
        RecordCopy(CLUSTER).update(controller)
    assert current(copy).spec.id == SPEC.id, "an observation of an empty record does not put the copy by"
    sentence = lost_record.restore(controller, CLUSTER, SECONDS)
    assert "it gets that of 1970-01-01 00:16:40Z" in sentence
    assert served.controller.record.record_id() == copy.record_id()
    assert lost_record.restore(controller, CLUSTER, SECONDS) == ""
    kinds = [event.kind for event in served.controller.record.events(SPEC.id)]
    assert kinds == [events.RUN_SUBMITTED, events.RECORD_RESTORED]
    served.controller.submit_run(replace(SPEC, train_dir="/elsewhere"))
    run = current(served.controller.record)
    assert (run.spec.train_dir, run.tasks["worker-0"].attempt) == ("/former/run", 2), "the same run, not another one"
    RecordCopy(CLUSTER).update(controller)


def test_a_controller_that_has_a_record_keeps_it(served: Served, copy: Record) -> None:
    served.controller.submit_run(replace(SPEC, id="newer", train_dir="/elsewhere/t", resume_from=""))
    assert lost_record.restore(served.client(), CLUSTER, SECONDS) == ""
    assert served.controller.record.runs() == ["newer"]


def test_a_record_that_cannot_be_restored_is_an_error_and_no_other_run_begins(
    served: Served, copy: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Controller, "finish_import", fail)
        with pytest.raises(BackendError, match=r"could not be restored: .*the disk is full"):
            lost_record.restore(served.client(), CLUSTER, SECONDS)
    assert served.controller.record.current() is None
    assert lost_record.restore(served.client(), CLUSTER, SECONDS)


def left(folder: Path, attempt: int, exit_: Ended | None, sent: bytes = b"step 1\n") -> None:
    """The folder of a launcher that has not reported the end of its program, nor what it printed after 'step 1'."""
    write(Log(folder / "spool" / SPEC.id), [(STDOUT, sent)])
    write(Log(folder / "spool" / SPEC.id), [(STDOUT, b"step 2\n")], attempt)
    append(Log(folder / "spool" / SPEC.id).path(0), b"torn")
    if exit_:
        note = {"run_id": SPEC.id, "attempt": attempt, "port": 1, "started": 3.0, "ended_at": 4.0, "boot": ""}
        (folder / "exit.json").write_text(json.dumps({**note, "exit": exit_.to_dict()}))


@pytest.mark.parametrize(
    ("attempt", "exit_", "state", "next_attempt"),
    [
        (2, Ended(0, at=5.0), SUCCEEDED, 2),
        (3, Ended(0, at=5.0), SUCCEEDED, 3),
        (2, Ended(143, at=5.0, cause=INTERRUPTED), INTERRUPTED, 3),
        (1, Ended(0, at=5.0), RUNNING, 2),
        (2, None, RUNNING, 2),
    ],
    ids=["succeeded", "the copy is older", "stopped", "an earlier attempt", "it has not run"],
)
def test_what_a_stopped_launcher_has_stored_is_in_the_copy(
    copy: Record, tmp_path: Path, attempt: int, exit_: Ended | None, state: str, next_attempt: int
) -> None:
    left(tmp_path / "left", attempt, exit_)
    for _ in range(2):  # an update that was interrupted is repeated
        lost_record.add_left(CLUSTER, "worker-0", tmp_path / "left")
    record = RecordCopy(CLUSTER).record
    task: TaskState = current(record).tasks["worker-0"]
    assert (task.state, task.attempt) == (state, next_attempt)
    assert record.log(SPEC.id, "worker-0").printed(STDOUT) == b"step 1\nstep 2\n"
    assert record.log(SPEC.id, "worker-0").path(0).read_bytes().endswith(b"step 2\n"), "no torn line"
    assert len(record.events(SPEC.id)) == (2 if state != RUNNING else 1)


def test_output_that_differs_is_stored_apart_and_a_stranger_adds_nothing(copy: Record, tmp_path: Path) -> None:
    for text in (b"another", b"a third"):
        left(tmp_path / text.decode(), 2, None, text + b"\n")
        lost_record.add_left(CLUSTER, "worker-0", tmp_path / text.decode())
    lost_record.add_left(CLUSTER, "worker-9", tmp_path / "another")
    record = RecordCopy(CLUSTER).record
    lines = {name: [line.text for line in Reader(record.log(SPEC.id, name)).more()] for name in LOGS}
    assert lines == {
        "worker-0": ["step 1"],
        "worker-0-left": ["another", "step 2"],
        "worker-0-left1": ["a third", "step 2"],
    }
    assert record.hostnames(current(record)) == LOGS


def test_what_was_never_copied_is_not_restored(
    served: Served, copy: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert lost_record.restore(served.client(), CLUSTER, SECONDS) == ""
    assert served.controller.record.runs() == []
