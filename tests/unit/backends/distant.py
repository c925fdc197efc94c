"""A cluster's record where its controller is, and the user's copy of it: for the tests of how one follows the other."""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clusters import cluster_ref
from tests.unit.printing import Chunk, folder, write
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.control.controller_server import _ranges
from tfdeploy.agent.model.events import TASK_INTERRUPTED, Event
from tfdeploy.agent.model.run_spec import RunSpec, TaskSpec
from tfdeploy.agent.model.run_state import FormerTask, RunState
from tfdeploy.agent.record import replica
from tfdeploy.agent.record.artifact_manifest import ArtifactList, ManifestArtifact, ManifestFile, save_manifest
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.record.record_files import SEARCH_FILE
from tfdeploy.agent.system import files as agent_files
from tfdeploy.backends.record_copy import RecordCopy, RecordUpdate


class Cut(ConnectionError):
    """The connection, or the process that copies, has gone."""


class Distant:
    """A controller with a record, called over a connection that can be cut."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._lives = 0
        self.calls_left = 1_000_000
        self.calls: list[str] = []
        self.run: RunState | None = None
        self.begin_life()

    def begin_life(self) -> None:
        """Another cluster of the same name, which has run nothing yet."""
        self._lives += 1
        self.record = Record(self._home / f"record-{self._lives}")
        self.run = None

    @property
    def copy(self) -> Record:
        """The copy, as a process that has just begun sees it."""
        return RecordCopy(cluster_ref()).record

    def submit(self, run_id: str, tasks: int) -> None:
        """A run becomes the current one, or the current one grows."""
        count = max(tasks, len(self.run.tasks) if self.run and self.run.spec.id == run_id else 0)
        items = [TaskSpec(f"worker-{index}", "worker", index) for index in range(count)]
        self.run = RunState(RunSpec(run_id, items, {}), float(self._lives))
        self.record.save(self.run)

    def print(self, place: int, chunks: Sequence[Chunk]) -> None:
        if self.run:
            names = list(self.run.tasks)
            write(self.record.log(self.run.spec.id, names[place % len(names)]), chunks)

    def shrink(self) -> None:
        """The last task of the current run is removed, as by an update with fewer workers."""
        if self.run and len(self.run.tasks) > 1:
            hostname = [*self.run.tasks][-1]
            del self.run.tasks[hostname]
            self.run.former[hostname] = FormerTask(attempt=1)
            self.record.save(self.run)

    def happen(self, text: str) -> None:
        if self.run:
            self.record.add_events(self.run.spec.id, [Event(TASK_INTERRUPTED, 1.0, reason=text)])

    def store(self, kind: str = "keras", version: str = "1", **files: bytes) -> None:
        """The current run has these artifacts, each of one file."""
        assert self.run is not None
        run_folder, listed = self.record.run_folder(self.run.spec.id), []
        for name, data in files.items():
            path = run_folder / "artifacts" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            file = ManifestFile(name, len(data), version, _sha256(data))
            listed.append(ManifestArtifact(kind, name, "m", 0, [file]))
        save_manifest(run_folder, ArtifactList(listed))

    def call(self, _method: str, path: str, body: bytes = b"") -> bytes:
        if self.calls_left <= 0:
            raise Cut
        self.calls_left -= 1
        self.calls.append(path)
        controller, data = Controller(self.record), json.loads(body)
        controller._run = self.run
        if path == "/ranges":
            return _ranges(controller.record, **data)
        return json.dumps(controller.list_files(**data).to_dict()).encode()

    def json(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.call(method, path, json.dumps(body).encode()))
        return content

    def update(self, calls: int = 1_000_000) -> RecordUpdate:
        """Update the copy; the connection is cut after so many calls."""
        self.calls_left = calls
        try:
            return RecordCopy(cluster_ref()).update(self)
        finally:
            self.calls_left = 1_000_000

    @contextmanager
    def torn_after(self, writes: int) -> Iterator[None]:
        """The process that copies is killed in the midst of writing, after it has written so many pieces."""
        left, append = iter(range(writes)), agent_files.append

        def torn(path: Path, data: bytes) -> None:
            if next(left, None) is None:
                append(path, data[: len(data) // 2])
                raise Cut
            append(path, data)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(replica, "append", torn)
            yield


def same(record: Record, copy: Record, adds_events: bool = False) -> None:
    """The copy has every file that the record has, byte for byte. A controller that is given it adds an event."""
    assert (copy.record_id(), copy.runs()) == (record.record_id(), record.runs())
    for pattern in ("events.jsonl", "logs/*/*", "artifacts/*", SEARCH_FILE):
        for path in record.folder.glob(f"runs/*/{pattern}"):
            copied = (copy.folder / path.relative_to(record.folder)).read_bytes()
            is_longer = adds_events and pattern == "events.jsonl"
            assert copied[: path.stat().st_size if is_longer else None] == path.read_bytes(), path
    for run_id in record.runs():
        run, copied_run = record.load(run_id), copy.load(run_id)
        assert run is not None
        assert copied_run is not None
        assert run.to_dict() == copied_run.to_dict()
    assert (copy.folder / "current").read_text() == (record.folder / "current").read_text()


@contextmanager
def distant_record() -> Iterator[Distant]:
    """A record and its copy in a folder that is deleted at the end."""
    with folder() as home, pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "XDG_STATE_HOME", str(home / "state"))
        yield Distant(home)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
