"""An import that was cut off continues, one that failed is repeated, and an emptying that was cut off leaves nothing behind."""

import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.agent.imported import SPEC, call_of, checkpoint, recorded, run_state, sent
from tests.unit.printing import write
from tfdeploy.agent import events
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.events import Event
from tfdeploy.agent.files import write_whole
from tfdeploy.agent.record import record_import
from tfdeploy.agent.record.artifact_manifest import (
    stored_artifacts,
)
from tfdeploy.agent.record.output_lines import STDOUT
from tfdeploy.agent.record.record import Record, ViewRequest
from tfdeploy.agent.record.record_import import ImportRequest
from tfdeploy.agent.record.run_folders import RunRefused
from tfdeploy.agent.record.stored_artifact import NOT_COPIED, LeftOut
from tfdeploy.agent.run_state import MOVED, STOPPED, RunResult


@pytest.fixture
def controller(tmp_path: Path) -> Controller:
    return Controller(Record(tmp_path / "here"))


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_an_import_that_was_cut_off_continues(
    tmp_path: Path, controller: Controller, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    monkeypatch.setattr("tfdeploy.agent.record.replica.PART", 1_000_000)
    there = recorded(tmp_path / "there", run_state(RunResult(STOPPED, MOVED, 2.0)))
    left, moved = iter(range(calls)), []

    def call(method: str, path: str, body: bytes) -> bytes:
        if next(left, None) is None:
            raise ConnectionError
        return call_of(controller.record)(method, path, body)

    with pytest.raises(ConnectionError):
        record_import.send(there.folder, call)
    write(there.log(SPEC.id, "worker-0"), [(STDOUT, b"step 2\n")])

    def resumed(method: str, path: str, body: bytes) -> bytes:
        moved.append(len(body) if path == "/import/ranges" else 0)
        return call_of(controller.record)(method, path, body)

    digest = record_import.send(there.folder, resumed)
    assert sum(moved) < 3_010_000 - (calls - 1) * 900_000
    controller.finish_import(ImportRequest(digest, 1.0, is_moved=True))
    here = Record(tmp_path / "here")
    assert here.log(SPEC.id, "worker-0").printed(STDOUT) == b"step 1\nstep 2\n"


def test_what_is_not_whole_changes_nothing(tmp_path: Path, controller: Controller) -> None:
    there = recorded(tmp_path / "there", run_state(RunResult(STOPPED, MOVED, 2.0)))
    request = sent(controller, there)
    (path,) = (tmp_path / "here/import").rglob("0.log")
    path.write_bytes(b"another")
    with pytest.raises(ValueError, match=r"0\.log has not arrived, or has another hash"):
        controller.finish_import(request)
    with pytest.raises(ValueError, match="another record"):
        controller.finish_import(replace(request, sha256="0"))
    assert Record(tmp_path / "here").current() is None
    controller.finish_import(sent(controller, there))
    assert Record(tmp_path / "here").current() is not None


@pytest.mark.parametrize(
    ("before", "after"), [("saved", "saved/model"), ("saved/model", "saved"), ("checkpoint", "checkpoint")]
)
def test_what_has_changed_arrives_anew_after_an_import_was_cut_off(
    tmp_path: Path, controller: Controller, before: str, after: str
) -> None:
    there = recorded(tmp_path / "there", run_state(RunResult(STOPPED, MOVED, 2.0)))
    folder = there.artifacts_folder(SPEC.id)
    for name in (before, after):
        shutil.rmtree(folder)
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("old" if name == before else "new")
        sent(controller, there)
    (folder / after).write_text("now")
    controller.finish_import(sent(controller, there))
    assert (Record(tmp_path / "here").artifacts_folder(SPEC.id) / after).read_text() == "now"


STEPS = (
    [(record_import, "write_whole")] * 6
    + [(record_import, "save_manifest")]
    + [(Record, "save_other")] * 2
    + [(Record, "add_events")]
    + [(Path, "rename")] * 2
    + [(shutil, "rmtree")] * 2
)
"""What an import calls that changes files, each time that it calls it."""


@pytest.mark.parametrize("number", range(len(STEPS)))
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")], ids=["killed", "full"])
def test_an_import_that_failed_at_any_step_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: BaseException
) -> None:
    owner, name = STEPS[number]
    ended = RunResult(STOPPED, MOVED, 2.0)
    there = checkpoint(tmp_path / "there", run_state(ended), 5, has_data=False)
    there.save_other(run_state(ended, spec=replace(SPEC, id="earlier")))
    there.add_events(SPEC.id, [Event(events.RUN_SUBMITTED)])
    controller = Controller(Record(tmp_path / "here"))
    request = sent(controller, there)
    calls, original = iter(range(99)), getattr(owner, name)

    def fail(*args: object, **kwargs: object) -> object:
        if next(calls) == STEPS[:number].count(STEPS[number]):
            raise error
        return original(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fail)
        with pytest.raises(type(error)):
            controller.finish_import(request)
    if not isinstance(error, OSError):
        controller = Controller(Record(tmp_path / "here"))
    if controller.view(ViewRequest()).run_state is None:  # what the next update asks
        with suppress(RunRefused):  # this call has done the rest
            controller.finish_import(sent(controller, there))
    here = Record(tmp_path / "here")
    current = here.current()
    assert current is not None
    assert (current.spec.id, current.moves, current.has_arrived) == (SPEC.id, 1, True)
    assert [event.kind for event in here.events(SPEC.id)] == [events.RUN_SUBMITTED, events.RECORD_RESTORED]
    assert here.runs() == sorted([SPEC.id, "earlier"])
    assert stored_artifacts(here.run_folder(SPEC.id)) == ([], [LeftOut("c-5", 9, NOT_COPIED, "laptop")])
    assert not controller.submit_run(replace(SPEC, train_dir=str(tmp_path / "train")))["decided"]


@pytest.mark.parametrize("name", ["format", "record_id", "current"])
def test_the_next_controller_finishes_an_import_whose_runs_are_in_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    there = recorded(tmp_path / "there", run_state(RunResult(STOPPED, MOVED, 2.0)))
    here = Record(tmp_path / "here")
    controller = Controller(here)
    request = sent(controller, there)

    def die(path: Path, *args: object, **kwargs: object) -> None:
        if path == here.folder / name:
            raise KeyboardInterrupt
        write_whole(path, *args, **kwargs)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(record_import, "write_whole", die)
        with pytest.raises(KeyboardInterrupt):
            controller.finish_import(request)
    Controller(Record(here.folder))
    after = Record(here.folder)
    current = after.current()
    assert current is not None
    assert (current.spec.id, current.moves, after.record_id()) == (SPEC.id, 1, there.record_id())
    assert not (here.folder / "import/whole").exists()


def test_an_emptying_that_was_cut_off_leaves_nothing_in_what_is_given_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = recorded(tmp_path / "here", run_state(RunResult(STOPPED, MOVED, 2.0)))
    here.save_other(run_state(spec=replace(SPEC, id="earlier")))
    there = recorded(tmp_path / "there", run_state(RunResult(STOPPED, MOVED, 3.0), moves=1))
    there.set_record_id(here.record_id())
    controller = Controller(here)

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", die)
        with pytest.raises(KeyboardInterrupt):
            controller.empty(there.record_id(), 1)
    again = Controller(Record(here.folder))
    assert again.view(ViewRequest()).run_state is None
    again.finish_import(sent(again, there))
    assert Record(here.folder).runs() == [SPEC.id]
