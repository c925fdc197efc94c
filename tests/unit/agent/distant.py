"""A record where the controller is, and a copy of it where somebody looks: for the tests of how the one follows the other."""

import json
import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.unit.printing import Chunk, write
from tfdeploy.agent.events import TASK_INTERRUPTED, Event
from tfdeploy.agent.record import record_sync
from tfdeploy.agent.record.log import NAMES, PIPES
from tfdeploy.agent.record.log_segments import Stream
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.record.record_sync import CopyChanges, CopyPosition
from tfdeploy.agent.run_spec import RunSpec, TaskSpec
from tfdeploy.agent.run_state import FormerTask, RunState

_ENTRY = struct.Struct("<dBIQI")

Call = Callable[[CopyPosition], CopyChanges]


class Cut(OSError):
    """The connection, or the process that looks, has gone."""


class Distant:
    """A cluster's record, and its copy."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lives = 0
        self.job: RunState | None = None
        self.begin_life()

    def begin_life(self) -> None:
        """Another cluster of the same name, which has run nothing yet."""
        self._lives += 1
        self.record = Record(self._folder / f"record-{self._lives}")
        self.job = None

    @property
    def mirror(self) -> Record:
        """The copy, as a process that has just begun sees it."""
        return Record(self._folder / "mirror")

    def give(self, run: str, tasks: int) -> None:
        """A run becomes the present one, or a present one grows."""
        count = max(tasks, len(self.job.tasks) if self.job and self.job.spec.id == run else 0)
        items = [TaskSpec(f"worker-{index}", "worker", index) for index in range(count)]
        self.job = RunState(RunSpec(run, items, {}), float(self._lives))
        self.record.save(self.job)

    def print(self, place: int, chunks: Sequence[Chunk]) -> None:
        """A task of the present run prints."""
        if self.job:
            names = list(self.job.tasks)
            write(self.record.log(self.job.spec.id, names[place % len(names)]), chunks)

    def shrink(self) -> None:
        """The last task of the present run is removed, as by an update with fewer workers."""
        if self.job and len(self.job.tasks) > 1:
            hostname = [*self.job.tasks][-1]
            del self.job.tasks[hostname]
            self.job.former[hostname] = FormerTask(attempt=1)
            self.record.save(self.job)

    def tell(self, text: str) -> None:
        """Something happens in the present run."""
        if self.job:
            self.record.add_events(self.job.spec.id, [Event(TASK_INTERRUPTED, 1.0, reason=text)])

    def call(self, ask: CopyPosition) -> CopyChanges:
        """What the controller answers, as it comes over the wire."""
        asked = CopyPosition.from_dict(json.loads(json.dumps(ask.to_dict())))
        changes = record_sync.changes_since(self.record, self.job, asked, 1.0)
        return CopyChanges.from_dict(json.loads(json.dumps(changes.to_dict())))

    def look(self, call: Call | None = None) -> CopyChanges:
        """Bring the copy on."""
        return record_sync.update_copy(self.mirror, call or self.call, self.put_by)

    def put_by(self) -> None:
        """What is there is another life's."""
        shutil.rmtree(self.mirror.folder, ignore_errors=True)

    def cut_after(self, calls: int) -> Call:
        """The connection goes after so many calls."""
        left = iter(range(calls))

        def call(ask: CopyPosition) -> CopyChanges:
            if next(left, None) is None:
                raise Cut
            return self.call(ask)

        return call

    def repeated(self, ask: CopyPosition) -> CopyChanges:
        """Each answer is taken twice."""
        answer = self.call(ask)
        if answer.record_id == ask.record_id:
            record_sync.apply(self.mirror, answer)
        return answer

    @contextmanager
    def torn_after(self, puts: int) -> Iterator[None]:
        """The process that looks is killed in the midst of writing, after it has written so many pieces."""
        left = iter(range(puts))
        put = Stream.put

        def torn(stream: Stream, position: int, data: bytes) -> int:
            if next(left, None) is None:
                put(stream, position, data[: len(data) // 2])
                raise Cut
            return put(stream, position, data)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Stream, "put", torn)
            yield

    def account(self, record: Record, run: str) -> dict[str, Any]:
        """All that a record tells of a run."""
        job = record.load(run)
        assert job is not None
        streams = {name: record.log(run, name).streams for name in record.hostnames(job)}
        return {
            "run_state": job.to_dict(),
            "events": record.events(run),
            "logs": {
                (hostname, name): (found[name].start, found[name].end, found[name].span(0, found[name].end))
                for hostname, found in streams.items()
                for name in NAMES
            },
        }

    def promised(self) -> list[str]:
        """What the copy's indices tell of bytes that are not there; nothing, if all is well."""
        found = []
        for run in self.mirror.runs():
            for folder in sorted((self.mirror.run_folder(run) / "logs").glob("*")):
                streams = self.mirror.log(run, folder.name).streams
                index = streams["index"].span(0, streams["index"].end)
                for _, pipe, _, position, length in _ENTRY.iter_unpack(
                    index[: len(index) // _ENTRY.size * _ENTRY.size]
                ):
                    if position + length > streams[PIPES[pipe]].end:
                        found.append(f"{run}/{folder.name}: {PIPES[pipe]} {position}+{length}")
        return found
