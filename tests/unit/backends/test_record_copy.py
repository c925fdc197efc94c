"""The user's copy of a record."""

import base64
import errno
import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from tests.clusters import cluster_ref
from tests.unit.simulation import World
from tfdeploy.agent.record import record
from tfdeploy.agent.record.artifact_manifest import ArtifactList, ManifestArtifact, ManifestFile
from tfdeploy.agent.record.log_segments import Stream
from tfdeploy.agent.record.record import RecordView, ViewRequest
from tfdeploy.agent.record.record_sync import CopyChanges
from tfdeploy.agent.run_state import RunState
from tfdeploy.backends import record_copy
from tfdeploy.backends.docker import task_runner
from tfdeploy.backends.docker.task_runner import DockerTaskRunner
from tfdeploy.backends.record_copy import RecordCopy, RecordCopyError
from tfdeploy.errors import BackendError, Unreachable
from tfdeploy.paths import state_folder

CLUSTER = cluster_ref()


class SilentController:
    """A controller that does not respond."""

    def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        raise Unreachable("the controller does not respond")

    def json(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        raise Unreachable("the controller does not respond")


class Disk:
    """A controller with one run, while this computer's disk takes no bytes of logs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
        self.job = World(workers=1).job
        self.has_space = False
        put = Stream.put

        def limited(stream: Stream, position: int, data: bytes) -> int:
            if not self.has_space:
                put(stream, position, data[:3])
                raise OSError(code, os.strerror(code))
            return put(stream, position, data)

        monkeypatch.setattr(Stream, "put", limited)

    def json(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        if path == "/view":
            return RecordView(5.0, self.job).to_dict()
        at = (body or {}).get("ends", {}).get("worker-0", {}).get("stdout", 0)
        piece = {"stdout": [at, base64.b64encode(b"trained"[at:]).decode()]}
        run_id = self.job.spec.id
        return CopyChanges("one", [run_id], run_id, run_id, self.job, logs={"worker-0": piece}, at=5.0).to_dict()

    def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        raise AssertionError(path)


ERRORS = {
    errno.ENOSPC: "No space left on device. Free space on that disk",
    errno.EIO: "Input/output error. Repair this",
    errno.EROFS: "Read-only file system. Repair this",
    errno.EACCES: "Permission denied. Repair this",
}


@pytest.mark.parametrize("code", ERRORS)
def test_an_error_of_the_disk_is_a_sentence_and_the_copy_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    """The record is not lost: `destroy`, which deletes the volume with the record after the download, is refused."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    task_runner._warn.cache_clear()
    disk, copy = Disk(monkeypatch, code), RecordCopy(CLUSTER)
    sentence = f"the record cannot be copied to {copy.folder}: .*{ERRORS[code]}"
    for action in (copy.update, copy.download):
        with pytest.raises(RecordCopyError, match=sentence):
            action(disk)
    for _ in range(2):
        view, silent_since = task_runner._view(cast(Any, disk), copy, None, ViewRequest(), is_preview=False)
        assert (view.at, silent_since) == (5.0, None), "the controller responds, and is not shown as silent"
    assert len(caplog.messages) == 1
    monkeypatch.setattr(DockerTaskRunner, "end_run", lambda *_: None)
    monkeypatch.setattr(DockerTaskRunner, "controller", lambda *_: disk)
    with pytest.raises(RecordCopyError, match=sentence):  # there is no engine from which anything could be deleted
        DockerTaskRunner(cast(Any, None), cast(Any, None)).delete_all(CLUSTER, "", {"volumes": True, "record": True})
    disk.has_space = True
    copy.update(disk)
    stream = copy.record.log(disk.job.spec.id, "worker-0").streams["stdout"]
    assert stream.span(0, 100) == b"trained"


def test_nothing_is_deleted_while_artifacts_are_on_their_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`destroy` fails after a time; what has arrived is there, and the next one continues."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(record_copy, "DOWNLOAD_SECONDS", 0.0)
    disk, copy = Disk(monkeypatch, errno.ENOSPC), RecordCopy(CLUSTER)
    disk.has_space = True
    files = [ManifestFile("model.keras", 3, "1", hashlib.sha256(b"abc").hexdigest())]
    manifest = ArtifactList([ManifestArtifact("keras", "model.keras", "m", 0, files)]).to_dict()
    replies = disk.json
    monkeypatch.setattr(disk, "json", lambda *args: {**replies(*args), "artifacts": manifest})
    monkeypatch.setattr(record_copy, "OBSERVATION_SECONDS", 0.0)
    monkeypatch.setattr(disk, "call", lambda *_: b"abc")
    monkeypatch.setattr(DockerTaskRunner, "end_run", lambda *_: None)
    monkeypatch.setattr(DockerTaskRunner, "controller", lambda *_: disk)
    with pytest.raises(
        RecordCopyError, match=r"could not be copied to .* within .*: run the command again, and it continues"
    ):
        DockerTaskRunner(cast(Any, None), cast(Any, None)).delete_all(CLUSTER, "", {"volumes": True, "record": True})
    monkeypatch.setattr(DockerTaskRunner, "controller", lambda *_: SilentController())
    runner = DockerTaskRunner(cast(Any, None), cast(Any, None))
    with pytest.raises(
        BackendError, match=r"does not respond, and these artifacts could not be copied: model\.keras of run"
    ):
        runner.delete_all(CLUSTER, "", {"volumes": True, "record": True})
    monkeypatch.setattr(record_copy, "DOWNLOAD_SECONDS", 60.0)
    assert copy.download(disk)
    assert (copy.record.artifacts_folder(disk.job.spec.id) / "model.keras").read_bytes() == b"abc"


def test_a_copy_keeps_the_run_that_the_current_one_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(record, "MAX_RUNS", 1)
    disk, copy = Disk(monkeypatch, errno.ENOSPC), RecordCopy(CLUSTER)
    disk.has_space = True
    disk.job.spec = replace(disk.job.spec, resume_from="resumed")
    copy.update(disk)
    for run_id in ("resumed", "other", "latest"):
        copy.record.save_other(RunState(replace(disk.job.spec, id=run_id), 1.0))
    copy.update(disk)
    assert copy.record.runs() == sorted([disk.job.spec.id, "resumed", "latest"])


def test_only_the_user_can_enter_the_state_folder_also_where_nothing_was_stored_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    copy = RecordCopy(CLUSTER)
    assert not state_folder().exists()
    copy.download(SilentController())
    assert [folder.stat().st_mode & 0o777 for folder in (state_folder(), copy.home)] == [0o700, 0o700]
