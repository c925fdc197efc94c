"""What of a record is not stored where it outlives the machine, as the machine has written it."""

from pathlib import Path

import pytest

from tfdeploy.agent.control import journal
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.model import events
from tfdeploy.agent.model.run_spec import RunJob, RunSpec, TaskSpec
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.agent.record.record import Record

RUN = RunSpec("r", [TaskSpec("worker-0", "worker", 0)], {"worker": RunJob()}, success="worker-0")
REFUSED = "PUT mnist-id/record/x: 403 <Error>\n<Code>AccessDenied</Code></Error>"


def test_a_refused_upload_is_an_event_once_it_lasts_a_minute(tmp_path: Path) -> None:
    notes, run, problem = journal.Journal(Record(tmp_path)), RunState(RUN, 0.0), tmp_path / "upload_problem"
    assert notes.note_upload(run, 100.0) == []
    problem.write_text(REFUSED)
    assert notes.note_upload(run, 200.0) == notes.note_upload(run, 259.0) == []
    (event,) = notes.note_upload(run, 260.0)
    assert (event.kind, event.reason) == (events.RECORD_NOT_STORED, "PUT mnist-id/record/x: 403 AccessDenied")
    assert run.upload_problem == event.reason
    assert notes.note_upload(run, 300.0) == []
    problem.unlink()
    assert [event.kind for event in notes.note_upload(run, 310.0)] == [events.RECORD_STORED]
    assert run.upload_problem == ""
    problem.write_text(REFUSED)
    assert notes.note_upload(run, 320.0) == []


def test_the_controller_notes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_REFUSED_SECONDS", 0.0)
    controller = Controller(Record(tmp_path))
    controller.submit_run(RUN)
    (tmp_path / "upload_problem").write_text(REFUSED)
    controller.tick()
    assert [event.kind for event in Record(tmp_path).events("r")] == ["run_submitted", events.RECORD_NOT_STORED]
