"""The calls by which launchers upload artifacts, at the controller."""

import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, List, Set, Tuple

from .. import events
from ..events import Event
from ..record.artifact_manifest import ManifestArtifact
from ..record.artifact_store import ArtifactStore
from ..record.record import Record
from ..record.stored_artifact import LeftOut
from ..run_state import RunState
from .artifact_uploads import (
    are_given_up,
    attempt,
    expire,
    machine_of,
    may_replace,
    others_remain,
    uploads_checkpoints,
)

_MAX_EVENTS = 20
"""So many artifacts that are left out get an event. The list of the record has all of them."""


class UploadRefused(Exception):
    """The launcher is not asked to upload, or not any more."""


class UploadCalls:
    """Takes what launchers upload, and knows when each was heard last. Its methods may be called by any thread."""

    def __init__(self, record: Record, steady: Callable[[], float]) -> None:
        self._record = record
        self._store = ArtifactStore(record.folder / "runs")
        self._steady = steady
        self._lock = threading.Lock()
        self._begun = steady()
        self._called_at: Dict[str, float] = {}
        self._active: Dict[str, int] = {}
        self._told: Set[Tuple[str, ...]] = set()

    def listen(self) -> None:
        """The controller has not listened until now: the silence of launchers begins again."""
        with self._lock:
            self._begun = self._steady()

    def note_call(self, hostname: str) -> None:
        """The launcher of this task has called."""
        with self._lock:
            self._called_at[hostname] = self._steady()

    def silent_seconds(self, hostname: str) -> float:
        """How long the launcher of this task has sent nothing."""
        with self._lock:
            if self._active.get(hostname):
                return 0.0
            return self._steady() - max(self._called_at.get(hostname, 0.0), self._begun)

    def has_called(self, hostname: str) -> bool:
        """Whether the launcher of this task has called since the controller listens."""
        with self._lock:
            return self._called_at.get(hostname, self._begun - 1.0) >= self._begun

    def begin(self, run: RunState, hostname: str, data: Dict[str, Any]) -> Tuple[List[int], List[Event]]:
        """List files; how much of each is stored already, and what happened."""
        machine, is_at_end = _machine(run, hostname)
        listed, is_alone = data["artifacts"], not others_remain(run, machine)
        ends = self._store.begin(
            run.spec.id, machine, attempt(run, hostname), listed, is_alone, may_replace(run, machine)
        )
        files = [file for item in listed for file in item["files"]]
        count = sum(int(file["size"]) - end for file, end in zip(files, ends) if end >= 0)
        if not count or not is_at_end:
            return ends, []
        names = [str(item["name"]) for item in listed]
        return ends, [Event(events.ARTIFACTS_BEGUN, task=hostname, machine=machine, artifacts=names, count=count)]

    def put(self, run: RunState, hostname: str, index: int, offset: int, hashes: Tuple[str, str], data: bytes) -> int:
        """Store a part; the end of its file. `hashes` are that of the part, and after the last one that of the file."""
        return self._store.put(run.spec.id, _machine(run, hostname)[0], index, offset, *hashes, data)

    def end(self, run: RunState, hostname: str, data: Dict[str, Any]) -> List[Event]:
        """The launcher has uploaded what it can; what happened. While the run trains, the first checkpoint is an event, and each reason
        why one is left out; at its end, what differs from the upload before."""
        machine, is_at_end = _machine(run, hostname)
        reported = [LeftOut.from_dict(item) for item in data["left_out"]]
        try:
            stored, left_out = self._store.end(run.spec.id, machine, reported, not others_remain(run, machine))
            removed = self._store.remove_excess(run.spec.id, run.spec.resume_from)
        except OSError as error:  # as on a full disk: the events wait until they can be written
            reason = error.strerror or str(error)
            return [Event(events.ARTIFACTS_LOST, task=hostname, machine=machine, reason=reason)]
        happened = [replace(event, task=hostname, machine=machine) for event in _ended(stored, left_out)]
        return [*(event for event in happened if self._is_new(run, event, is_at_end)), *_removed(removed)]

    def _is_new(self, run: RunState, event: Event, is_at_end: bool) -> bool:
        """Whether the events of this run do not have the same since the controller started."""
        what = f"{event.artifacts} {event.count}" if is_at_end else ""
        key = (run.spec.id, event.kind, event.machine, event.reason, what)
        with self._lock:
            is_new = key not in self._told
            self._told.add(key)
        return is_new

    def expire(self, run: RunState, now: float) -> List[Event]:
        """Mark uploads that are lost or take too long, and delete what has arrived if no launcher continues it; what happened."""
        happened = expire(run, now, self.silent_seconds, self.has_called)
        for event in happened:
            self._store.drop(run.spec.id, event.machine)
        if are_given_up(run):
            self._store.discard(run.spec.id)
        return happened

    @contextmanager
    def contact(self, hostname: str) -> Iterator[None]:
        """While a call of this launcher is executed it is not silent, however long that takes."""
        self._count(hostname, 1)
        try:
            yield
        finally:
            self._count(hostname, -1)

    def _count(self, hostname: str, number: int) -> None:
        with self._lock:
            self._active[hostname] = self._active.get(hostname, 0) + number
            self._called_at[hostname] = self._steady()


def _machine(run: RunState, hostname: str) -> Tuple[str, bool]:
    """The machine for which this task uploads, and whether that is at the end of what it runs."""
    machine = machine_of(run, hostname)
    if machine is None and not uploads_checkpoints(run, hostname):
        raise UploadRefused(f"{hostname} is not asked to upload artifacts of the run {run.spec.id}")
    return (run.tasks[hostname].machine, False) if machine is None else (machine, True)


def _ended(stored: List[ManifestArtifact], left_out: List[LeftOut]) -> Iterator[Event]:
    """What this upload has stored, and what it left out. What an earlier one has stored is not named again."""
    for item in left_out[:_MAX_EVENTS]:
        yield Event(events.ARTIFACT_LEFT_OUT, artifacts=[item.name], reason=item.reason, count=item.size)
    if stored:
        size, names = sum(item.size for item in stored), [item.name for item in stored]
        yield Event(events.ARTIFACTS_STORED, artifacts=names, count=size)


def _removed(runs: List[str]) -> List[Event]:
    return [Event(events.ARTIFACTS_REMOVED, artifacts=runs)] if runs else []
