"""The user's copy of a record: it becomes equal to the original, whatever happens meanwhile, and names what it lacks."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from tests.clusters import cluster_ref
from tests.components.processes import halted
from tests.unit.backends.distant import Cut, Distant, distant_record, same
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.agent.record import output, record, record_files, replica
from tfdeploy.agent.record.artifact_manifest import ArtifactList, save_manifest, stored_artifacts
from tfdeploy.agent.record.output_lines import STDERR, STDOUT
from tfdeploy.agent.record.record import RecordView, ViewRequest
from tfdeploy.agent.record.stored_artifact import CLUSTER_LIMIT, LIMIT, LeftOut
from tfdeploy.agent.system import files as agent_files
from tfdeploy.agent.wire.rpc import CallError
from tfdeploy.backends import controller_calls, record_copy
from tfdeploy.backends.docker.task_runner import DockerTaskRunner
from tfdeploy.backends.record_copy import RecordCopy, RecordCopyBusy, RecordCopyError
from tfdeploy.errors import BackendError, Unreachable
from tfdeploy.paths import state_folder

PART, PIECE = 60, 150


@pytest.fixture(autouse=True, scope="module")
def small_parts() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (replica, record_files):
            patch.setattr(module, "PART", PART)
        patch.setattr(output, "PIECE_BYTES", PIECE)
        patch.setattr(output, "MAX_PIECES", 10_000)
        patch.setattr(replica, "MAX_PIECES", 10_000)
        yield


@pytest.fixture
def present() -> Iterator[Distant]:
    with distant_record() as distant:
        distant.submit("run", 1)
        yield distant


def test_a_response_is_limited_and_checked(present: Distant, monkeypatch: pytest.MonkeyPatch) -> None:
    present.print(0, [(STDOUT, b"x" * 1_000), (STDERR, b"y" * 1_000)])
    sizes, call = [], Distant.call

    def damaged(distant: Distant, method: str, path: str, body: bytes = b"") -> bytes:
        response = call(distant, method, path, body)
        sizes.append(len(response) if path == "/ranges" else 0)
        return response[:-1] + b"z" if path == "/ranges" and len(sizes) > 2 else response

    monkeypatch.setattr(Distant, "call", damaged)
    with pytest.raises(CallError, match="arrived damaged"):
        present.update()
    assert PART < max(sizes) < PART + 200


def stored(distant: Distant) -> dict[str, bytes]:
    folder = distant.copy.artifacts_folder("run")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def rows(distant: Distant) -> list[tuple[str, bool]]:
    return [(row.name, row.is_complete) for row in stored_artifacts(distant.copy.run_folder("run"))[0]]


def test_what_takes_too_long_is_continued_by_the_next_observation(
    present: Distant, monkeypatch: pytest.MonkeyPatch
) -> None:
    present.store(one=b"content" * 20)
    monkeypatch.setattr(record_copy, "OBSERVATION_SECONDS", 0.0)
    present.update()
    assert rows(present) == [("one", False)]
    monkeypatch.setattr(record_copy, "OBSERVATION_SECONDS", 9.0)
    with suppress(Cut):
        present.update(2)
    present.calls.clear()
    present.update()
    assert rows(present) == [("one", True)]
    assert present.calls.count("/ranges") == 2, "the first part had arrived"


def test_a_copy_deletes_what_is_listed_no_more_only_where_a_limit_is_stated(present: Distant) -> None:
    present.store(one=b"content")
    present.update()
    for left_out, left in ((LIMIT, {"one": b"content"}), (CLUSTER_LIMIT, {})):
        save_manifest(present.record.run_folder("run"), ArtifactList([], [LeftOut("one", 7, left_out, "m")]))
        present.update()
        assert stored(present) == left


class SilentController:
    def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        raise Unreachable("the controller does not respond")

    def json(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        raise Unreachable("the controller does not respond")


def test_nothing_is_deleted_while_artifacts_have_not_arrived(present: Distant, monkeypatch: pytest.MonkeyPatch) -> None:
    """`destroy` fails after a time; what has arrived is there, and the next one continues."""
    for name in ("DOWNLOAD_SECONDS", "OBSERVATION_SECONDS"):
        monkeypatch.setattr(record_copy, name, 0.0)
    present.store(one=b"abc")
    monkeypatch.setattr(DockerTaskRunner, "end_run", lambda *_: None)
    runner, retain = DockerTaskRunner(cast(Any, None), cast(Any, None)), cast(Any, {"volumes": True, "record": True})
    monkeypatch.setattr(DockerTaskRunner, "controller", lambda *_: present)
    with pytest.raises(RecordCopyError, match=r"could not be copied to .* within .*: run the command again"):
        runner.delete_all(cluster_ref(), "", retain)
    monkeypatch.setattr(DockerTaskRunner, "controller", lambda *_: SilentController())
    lacking = r"these artifacts could not be copied: one of run run"
    with pytest.raises(BackendError, match=f"does not respond, and {lacking}"):
        runner.delete_all(cluster_ref(), "", retain)
    monkeypatch.setattr(record_copy, "DOWNLOAD_SECONDS", 60.0)
    monkeypatch.setattr(DockerTaskRunner, "controller", lambda *_: present)
    artifact = present.record.artifacts_folder("run") / "one"
    artifact.write_bytes(b"abd")  # damaged: it has not the hash of the list
    with pytest.raises(BackendError, match=f"cannot send all of them, and {lacking}.* Nothing is deleted"):
        runner.delete_all(cluster_ref(), "", retain)
    artifact.write_bytes(b"abc")
    assert RecordCopy(cluster_ref()).download(present)
    assert stored(present) == {"one": b"abc"}
    present.store(one=b"abcd")
    with suppress(Cut):
        present.update(1)
    assert (
        RecordCopy(cluster_ref())
        .retire({"volumes": False, "record": False})
        .startswith(f"{lacking}; the record is retained in ")
    )


ERRORS = {
    errno.ENOSPC: "No space left on device. Free space on that disk",
    errno.EIO: "Input/output error. Repair this",
    errno.EROFS: "Read-only file system. Repair this",
    errno.EACCES: "Permission denied. Repair this",
}


@pytest.mark.parametrize("code", ERRORS)
def test_an_error_of_the_disk_is_a_sentence_and_the_copy_continues_where_it_was(
    present: Distant, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    """The record is not lost: `destroy`, which deletes the volume with the record after the download, is refused."""
    present.print(0, [(STDOUT, b"trained")])
    record_copy._warn.cache_clear()
    copy, append = RecordCopy(cluster_ref()), agent_files.append

    def limited(path: Path, data: bytes) -> None:
        append(path, data[:3])
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(replica, "append", limited)
        patch.setattr(controller_calls, "view", lambda *_: RecordView(5.0))
        sentence = f"the record cannot be copied to {copy.folder}: .*{ERRORS[code]}"
        for action in (copy.update, copy.download):
            with pytest.raises(RecordCopyError, match=sentence):
                action(present)
        for _ in range(2):
            view, silent_since = record_copy.observed_view(cast(Any, present), copy, None, ViewRequest(), False, [])
            assert (view.at, silent_since) == (5.0, None), "the controller responds, and is not shown as silent"
        assert len(caplog.messages) == 1
        patch.setattr(DockerTaskRunner, "end_run", lambda *_: None)
        patch.setattr(DockerTaskRunner, "controller", lambda *_: present)
        runner = DockerTaskRunner(cast(Any, None), cast(Any, None))
        with pytest.raises(RecordCopyError, match=sentence):  # there is no engine from which anything could be deleted
            runner.delete_all(cluster_ref(), "", {"volumes": True, "record": True})
    present.update()
    same(present.record, present.copy)


def test_a_copy_keeps_the_run_that_the_current_one_resumes(present: Distant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "MAX_RUNS", 1)
    assert present.run is not None
    present.run.spec = replace(present.run.spec, resume_from="resumed")
    present.record.save(present.run)
    present.update()
    for run_id in ("resumed", "other", "latest"):
        present.copy.save_other(RunState(replace(present.run.spec, id=run_id), 1.0))
    present.update()
    assert present.copy.runs() == sorted(["run", "resumed", "latest"])


def test_only_the_user_can_enter_the_state_folder_also_where_nothing_was_stored_before(present: Distant) -> None:
    copy = RecordCopy(cluster_ref())
    assert not state_folder().exists()
    copy.download(SilentController())
    assert [folder.stat().st_mode & 0o777 for folder in (state_folder(), copy.home)] == [0o700, 0o700]


HOLDS = """
import sys
from tfdeploy.agent.system.locks import Path, locked
with locked(Path(sys.argv[1])):
    print(flush=True)
    input()
"""


def test_a_suspended_command_that_copies_the_record_blocks_no_other_one(
    present: Distant, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    record_copy._warn.cache_clear()
    for name in ("_SHORT_WAIT", "_LONG_WAIT"):
        monkeypatch.setattr(record_copy, name, 0.2)
    monkeypatch.setattr(controller_calls, "view", lambda *_: RecordView(5.0))
    present.update()
    copy = RecordCopy(cluster_ref())
    command = [sys.executable, "-c", HOLDS, str(copy.home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with halted(process.pid):
            view, silent_since = record_copy.observed_view(cast(Any, present), copy, None, ViewRequest(), False, [])
            assert (view.at, silent_since) == (5.0, None)
            (warning,) = caplog.messages
            assert "or is suspended (Ctrl-Z). Resume or end it." in warning
            with pytest.raises(RecordCopyBusy):
                copy.download(present)
    present.print(0, [(STDOUT, b"more")])
    present.update()
    same(present.record, present.copy)


def test_a_copy_has_limits_whatever_the_cluster_lists(present: Distant, monkeypatch: pytest.MonkeyPatch) -> None:
    present.store(one=b"12345", two=b"123456", three=b"1")
    with monkeypatch.context() as patch:
        patch.setattr(replica, "CLUSTER_BYTES", 10)
        present.update()
    assert rows(present) == [("one", True), ("two", False), ("three", False)]


@pytest.mark.parametrize("text", ["", "{}", "nonsense", '{"artifacts": [{}], "left_out": []}'])
def test_a_list_of_artifacts_that_cannot_be_read_deletes_nothing(present: Distant, text: str) -> None:
    present.store(one=b"content")
    present.update()
    (present.record.run_folder("run") / "artifacts.json").write_text(text)
    present.update()
    assert stored(present) == {"one": b"content"}
