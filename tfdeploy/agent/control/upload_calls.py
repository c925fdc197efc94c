"""The calls by which launchers upload artifacts, at the controller."""

import threading
from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, List, Set, Tuple

from ..model import events
from ..model.events import Event
from ..model.run_state import UPLOAD_GIVEN_UP, UPLOADING, RunState
from ..record.artifact_manifest import ManifestArtifact
from ..record.artifact_store import ArtifactStore
from ..record.record import Record
from ..record.stored_artifact import LeftOut
from .artifact_uploads import attempt, expire, machine_of, machines_in

_MAX_EVENTS = 20
"""So many artifacts that are left out get an event. The list of the record has all of them."""


class UploadCalls:
    """Takes what launchers upload. Its methods may be called by any thread."""

    def __init__(
        self,
        record: Record,
        find: Callable[[str, str], RunState],
        commit: Callable[[RunState, List[Event], str], None],
    ) -> None:
        """`find` is the run that a task uploads artifacts of; `commit` saves what happened, and the task whose upload has ended."""
        self._find, self._commit = find, commit
        self._store = ArtifactStore(record.folder / "runs")
        self._lock = threading.Lock()
        self._told: Set[Tuple[str, ...]] = set()
        self._given_up: Set[Tuple[str, str]] = set()
        """Runs and machines of which what has arrived was deleted."""

    def begin(self, run_id: str, hostname: str, data: Dict[str, Any]) -> Dict[str, Any]:
        """List artifacts; what is wanted of each."""
        run, listed = self._find(run_id, hostname), data["artifacts"]
        machine = _machine(run, hostname)
        drafts = self._store.begin(run.spec.id, machine, listed, machines_in(run, UPLOADING) - {machine})
        sizes = {file["name"]: int(file["size"]) for item in listed for file in item["files"]}
        count = sum(sizes[name] - end for wanted in drafts for name, (_, end) in wanted.items())
        if count and data["at_end"]:
            names = [str(item["name"]) for item in listed]
            begun = Event(events.ARTIFACTS_BEGUN, task=hostname, machine=machine, artifacts=names, count=count)
            self._commit(run, [begun], "")
        return {"drafts": drafts}

    def put(self, run_id: str, hostname: str, draft: str, offset: int, data: bytes) -> int:
        """Append a part to a draft; its end."""
        return self._store.put(run_id, _machine(self._find(run_id, hostname), hostname), draft, offset, data)

    def store(self, run_id: str, hostname: str, item: Dict[str, Any]) -> Dict[str, Any]:
        """Store an artifact that has arrived; what is wanted of it else, and whether it is refused."""
        run = self._find(run_id, hostname)
        drafts, is_refused = self._store.store(run.spec.id, _machine(run, hostname), attempt(run, hostname), item)
        return {"drafts": drafts, "is_refused": is_refused}

    def end(self, run_id: str, hostname: str, data: Dict[str, Any]) -> None:
        """The launcher has uploaded what it can."""
        run = self._find(run_id, hostname)
        self._commit(run, self._end(run, hostname, data), hostname if data["at_end"] else "")

    def _end(self, run: RunState, hostname: str, data: Dict[str, Any]) -> List[Event]:
        """What happened. While the run trains, the first checkpoint is an event, and each reason why one is left out."""
        machine = _machine(run, hostname)
        reported = [LeftOut.from_dict(item) for item in data["left_out"]]
        try:
            stored, left_out = self._store.end(run.spec.id, machine, data["names"], reported)
            removed = self._store.remove_excess(run.spec.id, run.spec.resume_from)
        except OSError as error:  # as on a full disk: the events wait until they can be written
            reason = error.strerror or str(error)
            return [Event(events.ARTIFACTS_LOST, task=hostname, machine=machine, reason=reason)]
        happened = [replace(event, task=hostname, machine=machine) for event in _ended(stored, left_out)]
        new = [event for event in happened if self._is_new(run, event) or data["at_end"]]
        return [*new, *([Event(events.ARTIFACTS_REMOVED, artifacts=removed)] if removed else [])]

    def _is_new(self, run: RunState, event: Event) -> bool:
        """Whether the events of this run have none like it since the controller started."""
        key = (run.spec.id, event.kind, event.machine, event.reason)
        with self._lock:
            is_new = key not in self._told
            self._told.add(key)
        return is_new

    def expire(self, run: RunState, now: float) -> List[Event]:
        """Mark uploads that are lost or take too long, and delete what has arrived where no launcher continues it; what happened."""
        happened = expire(run, now)
        given_up = {(run.spec.id, machine) for machine in machines_in(run, UPLOAD_GIVEN_UP)}
        for run_id, machine in given_up - self._given_up:
            self._store.discard(run_id, machine)
        self._given_up = given_up
        return happened


def _machine(run: RunState, hostname: str) -> str:
    """The machine for which this task uploads."""
    machine = machine_of(run, hostname)
    return run.tasks[hostname].report.machine if machine is None else machine


def _ended(stored: List[ManifestArtifact], left_out: List[LeftOut]) -> Iterator[Event]:
    """What this upload has stored, and what it left out. What an earlier one has stored is not named again."""
    for item in left_out[:_MAX_EVENTS]:
        yield Event(events.ARTIFACT_LEFT_OUT, artifacts=[item.name], reason=item.reason, count=item.size)
    if stored:
        size, names = sum(item.size for item in stored), [item.name for item in stored]
        yield Event(events.ARTIFACTS_STORED, artifacts=names, count=size)
