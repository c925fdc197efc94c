"""An import that was cut off continues, one that failed at any step is repeated, and until its end nothing is decided."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.agent.imported import SPEC, Caller, checkpoint, given, recorded, run_state, sent, store
from tests.unit.cases import no_space, stored_run
from tests.unit.printing import write
from tfdeploy.agent.control import record_import
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.model import events
from tfdeploy.agent.model.events import Event
from tfdeploy.agent.model.run_state import MOVED, STOPPED, RunResult
from tfdeploy.agent.record import record_files, replica
from tfdeploy.agent.record.artifact_manifest import stored_artifacts
from tfdeploy.agent.record.output_lines import STDOUT
from tfdeploy.agent.record.record import Record, ViewRequest
from tfdeploy.agent.record.run_folders import RunRefused
from tfdeploy.agent.record.stored_artifact import NOT_COPIED, LeftOut
from tfdeploy.agent.system import files as agent_files
from tfdeploy.backends import lost_record
from tfdeploy.backends.lost_record import give_record, list_record

LOG = f"runs/{SPEC.id}/logs/worker-0/0.log"


@pytest.fixture
def controller(tmp_path: Path) -> Controller:
    return Controller(Record(tmp_path / "here"))


def stopped(folder: Path) -> Record:
    return recorded(folder, run_state(RunResult(STOPPED, MOVED, 2.0)))


@pytest.mark.parametrize("calls", range(1, 6))
def test_an_import_that_was_cut_off_continues(
    tmp_path: Path, controller: Controller, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    monkeypatch.setattr(replica, "PART", 1_000_000)
    there = stopped(tmp_path / "there")
    with suppress(ConnectionError):
        give_record(Caller(controller, calls), there.folder, 1.0, True)
    assert controller.view(ViewRequest()).run_state is None
    with pytest.raises(RunRefused):  # a launcher that still runs sends its output again
        controller.put_log(SPEC.id, "worker-0", "own", 0, 0, "an-instance", b"strange\n")
    write(there.log(SPEC.id, "worker-0"), [(STDOUT, b"step 2\n")])
    again = Controller(Record(tmp_path / "here"))
    caller = given(again, there)
    moved = sum(size for path, size in caller.calls if path == "/import/ranges")
    assert moved < 3_010_000 - max(0, calls - 2) * 900_000
    here = Record(tmp_path / "here")
    assert here.log(SPEC.id, "worker-0").printed(STDOUT) == b"step 1\nstep 2\n"


def test_what_is_not_whole_is_refused(tmp_path: Path, controller: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    there = stopped(tmp_path / "there")
    listed = list_record(there.folder)
    wanted = controller.record_import.begin(listed) or []
    with monkeypatch.context() as patch:
        patch.setattr(replica, "append", no_space)
        for _ in range(2):  # the second time by another call, which did not fail
            with suppress(OSError):
                controller.record_import.put(replica.pack(wanted, record_files.read_ranges(there.folder, wanted)))
    with pytest.raises(ValueError, match="has not arrived"):
        controller.finish_import(record_import.ImportRequest(1.0))
    (there.folder / LOG).write_bytes(b"changed")
    with monkeypatch.context() as patch:
        patch.setattr(lost_record, "list_record", lambda _: listed)
        with pytest.raises(ValueError, match=r"0\.log has not arrived, or has another hash"):
            given(controller, there)
    assert Record(tmp_path / "here").current() is None
    given(controller, there)
    assert Record(tmp_path / "here").log(SPEC.id, "worker-0").path(0).read_bytes() == b"changed"


@pytest.mark.parametrize(
    ("before", "after"), [("saved", "saved/model"), ("saved/model", "saved"), ("checkpoint", "checkpoint")]
)
def test_what_has_changed_arrives_anew_after_a_cut(
    tmp_path: Path, controller: Controller, before: str, after: str
) -> None:
    there = stopped(tmp_path / "there")
    for name, content in ((before, b"old"), (after, b"new")):
        store(there, SPEC.id, {name: content})
        sent(controller, there)
    store(there, SPEC.id, {after: b"now"})
    given(controller, there)
    assert (Record(tmp_path / "here").artifacts_folder(SPEC.id) / after).read_bytes() == b"now"


def test_a_run_that_was_submitted_meanwhile_is_not_replaced(tmp_path: Path, controller: Controller) -> None:
    request = sent(controller, stopped(tmp_path / "there"))
    controller.submit_run(replace(SPEC, id="newer", train_dir=str(tmp_path / "train"), resume_from=""))
    with pytest.raises(RunRefused, match="has runs already"):
        controller.finish_import(request)
    assert stored_run(Record(tmp_path / "here")).spec.id == "newer"


def test_the_end_of_an_import_that_is_sent_twice_is_the_end_once(tmp_path: Path, controller: Controller) -> None:
    request = sent(controller, stopped(tmp_path / "there"))
    controller.finish_import(request)
    controller.finish_import(request)
    assert stored_run(Record(tmp_path / "here")).moves == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")], ids=["killed", "full"])
def test_an_import_that_failed_at_any_write_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """Each write of it fails once: that of a part is half done then."""
    ended = RunResult(STOPPED, MOVED, 2.0)
    there = checkpoint(tmp_path / "there", run_state(ended), 5, has_data=False)
    there.save_other(run_state(ended, spec=replace(SPEC, id="earlier")))
    there.add_events(SPEC.id, [Event(events.RUN_SUBMITTED)])
    write(there.log(SPEC.id, "worker-0"), [(STDOUT, b"step 1\n")])
    store(there, "earlier", {"model.keras": b"weights"})
    writes = _fails_at(monkeypatch, tmp_path / "whole", there, 1_000, error)
    assert writes > 12
    for number in range(writes):
        folder = tmp_path / f"here-{number}"
        with suppress(KeyboardInterrupt, OSError):
            _fails_at(monkeypatch, folder, there, number, error)
        controller = Controller(Record(folder))
        if controller.view(ViewRequest()).run_state is None:  # what the next update asks
            given(controller, there)
        here = Record(folder)
        current = stored_run(here)
        assert (current.spec.id, current.moves, current.has_arrived) == (SPEC.id, 1, True)
        assert [event.kind for event in here.events(SPEC.id)] == [events.RUN_SUBMITTED, events.RECORD_RESTORED]
        assert here.runs() == sorted([SPEC.id, "earlier"])
        assert here.log(SPEC.id, "worker-0").printed(STDOUT) == b"step 1\n"
        assert (here.artifacts_folder("earlier") / "model.keras").read_bytes() == b"weights"
        assert stored_artifacts(here.run_folder(SPEC.id)) == ([], [LeftOut("c-5", 9, NOT_COPIED, "laptop")])
        assert not controller.submit_run(replace(SPEC, train_dir=str(tmp_path / f"train-{number}")))["decided"]


def _fails_at(monkeypatch: pytest.MonkeyPatch, folder: Path, there: Record, number: int, error: BaseException) -> int:
    """Give a record to a controller that fails at this write; how many there were."""
    controller, count = Controller(Record(folder)), 0

    def failing(write: Callable[..., None]) -> Callable[..., None]:
        def call(path: Path, data: bytes | str, *args: object, **kwargs: object) -> None:
            nonlocal count
            count += 1
            if count - 1 == number:
                if write is agent_files.append:
                    write(path, data[: len(data) // 2])
                raise error
            write(path, data, *args, **kwargs)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(replica, "append", failing(agent_files.append))
        for module in ("replica", "record", "artifact_manifest"):
            patch.setattr(f"tfdeploy.agent.record.{module}.write_whole", failing(agent_files.write_whole))
        given(controller, there)
    return count
