"""Replication of a record: a copy on the user's disk is updated from the controller's record.

`changes_since` runs at the controller, `apply` at the copy. A copy is appended to at its own ends, so that a call that is cut short
or repeated does no harm.
"""

import base64
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

from ..run_state import RunState
from ..transport.rpc import PROTOCOL
from .artifact_manifest import ArtifactList, load_manifest
from .log import NAMES, PIPES
from .log_segments import Stream
from .record import NAME, Record

_MAX_BYTES = 1024 * 1024
"""How many bytes of logs one reply contains at most, before base64."""

_MAX_ROUNDS = 256
"""How many calls one update makes at most; the next update continues."""

Pieces = Dict[str, List[Any]]
"""Name of a stream to the position and the bytes (as base64) of its next piece."""


@dataclass(frozen=True)
class CopyPosition:
    """How much of one run a copy has."""

    record_id: str
    run_id: str = ""
    """Empty for a copy that has no run yet."""
    ends: Dict[str, Dict[str, int]] = field(default_factory=dict)
    """Hostname to the end of each of its streams."""
    events: int = 0
    """Bytes of the events file."""

    def to_dict(self) -> Dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> "CopyPosition":
        """From JSON. Fields of a newer version are ignored."""
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})


@dataclass(frozen=True)
class CopyChanges:
    """What the controller's record has of one run beyond a position."""

    record_id: str
    runs: List[str]
    current: str
    """The id of the current run."""
    run_id: str
    """The run that this is about."""
    run_state: Optional[RunState] = None
    more: bool = False
    """There is more than fits into this reply."""
    events_at: int = 0
    """Where in the events file `events` begins."""
    events: str = ""
    logs: Dict[str, Pieces] = field(default_factory=dict)
    at: Optional[float] = None
    """The controller's time."""
    protocol: int = PROTOCOL
    """The version of the agent's calls."""
    artifacts: Optional[Dict[str, Any]] = None
    """The manifest of the run's artifacts; None without artifacts, and from a controller of an older version."""

    def to_dict(self) -> Dict[str, Any]:
        """As JSON."""
        return {**vars(self), "run_state": self.run_state.to_dict() if self.run_state else None}

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> "CopyChanges":
        """From JSON. Fields of a newer version are ignored."""
        data = {"protocol": 0, **{name: data[name] for name in cls.__dataclass_fields__ if name in data}}
        return cls(**{**data, "run_state": RunState.from_dict(data["run_state"]) if data["run_state"] else None})


Call = Callable[[CopyPosition], CopyChanges]
"""A call to the controller."""


def position(record: Record, run_id: str) -> CopyPosition:
    """How much of a run this record has; `""` for a record without runs."""
    run = record.load(run_id) if run_id else None
    ends = {hostname: record.log(run_id, hostname).ends() for hostname in record.hostnames(run)} if run else {}
    return CopyPosition(record.record_id(), run_id, ends, record.events_end(run_id) if run_id else 0)


def changes_since(record: Record, run: Optional[RunState], since: CopyPosition, at: float) -> CopyChanges:
    """What this record has beyond a copy's position. `run` is the current run; it is also the subject where the copy's is unknown."""
    current = run.spec.id if run else ""
    runs = record.runs()
    run_id = since.run_id if since.run_id in runs else current
    subject = run if run_id == current else record.load(run_id)
    record_id = record.record_id()
    if subject is None or since.record_id != record_id:
        return CopyChanges(record_id, runs, current, run_id, subject, at=at)
    begin = since if run_id == since.run_id else CopyPosition(record_id)
    logs, more, left = {}, False, _MAX_BYTES
    for hostname in record.hostnames(subject):
        if left <= 0:
            more = True
            break
        pieces, is_complete = _next_pieces(record.log(run_id, hostname).streams, begin.ends.get(hostname, {}), left)
        logs[hostname], more = pieces, more or not is_complete
        left -= sum(len(piece[1]) for piece in pieces.values())
    events = record.events_from(run_id, begin.events)
    more = more or left <= 0
    artifacts = _artifacts(record.run_folder(run_id))
    return CopyChanges(
        record_id, runs, current, run_id, subject, more, begin.events, events, logs, at, artifacts=artifacts
    )


def _artifacts(run_folder: Path) -> Optional[Dict[str, Any]]:
    """The manifest; None where there is none, or where it cannot be read now: a copy stays as it is then."""
    try:
        manifest = load_manifest(run_folder)
    except OSError:
        return None
    return manifest.to_dict() if manifest != ArtifactList() else None


def _next_pieces(streams: Dict[str, Stream], ends: Dict[str, int], limit: int) -> Tuple[Pieces, bool]:
    """The next pieces of a task's streams, and whether these are all. The index never describes bytes that are still missing."""
    pieces: Pieces = {}
    goals = {name: streams[name].end for name in reversed(NAMES)}
    is_complete = True
    for name in NAMES:
        start, data = _next_piece(streams[name], ends.get(name, 0), goals[name], limit)
        if name in PIPES.values() or is_complete:
            if data:
                pieces[name] = [start, base64.b64encode(data).decode()]
            is_complete = is_complete and start + len(data) >= goals[name]
    return pieces, is_complete


def _next_piece(stream: Stream, begin: int, goal: int, limit: int) -> Tuple[int, bytes]:
    """The bytes of one segment from `begin` to `goal`, and where they start."""
    start = max(begin, stream.start)
    data = stream.read(start, max(0, min(limit, goal - start)))
    following = stream.next_segment(start) if not data else None
    if following is None:
        return start, data
    return following, stream.read(following, max(0, min(limit, goal - following)))


def apply(record: Record, changes: CopyChanges) -> None:
    """Write changes into a copy. Changes of another record are ignored."""
    run = changes.run_state
    names = [changes.run_id, *([run.spec.id, *run.tasks] if run else []), *changes.logs]
    if not all(NAME.fullmatch(name) for name in names if name):
        return  # a cluster must not name files outside of the record
    if run is None or changes.record_id != record.record_id():
        return
    for hostname, pieces in changes.logs.items():
        streams = record.log(changes.run_id, hostname).streams
        for name in NAMES:
            if name in pieces:
                start, text = pieces[name]
                streams[name].put(start, base64.b64decode(text))
    record.put_events(changes.run_id, changes.events_at, changes.events)
    if changes.run_id == changes.current:
        record.save(run)
    else:
        record.save_other(run)
    record.touch(changes.at)


def update_copy(record: Record, call: Call, start_over: Callable[[], None]) -> CopyChanges:
    """Update the copy of the current run, and return the last reply.

    `start_over` moves the copy aside. It is called when the controller's record is another one, because the cluster was recreated.
    """
    current = record.current()
    run_id = current.spec.id if current else ""
    for _ in range(_MAX_ROUNDS):
        changes = call(position(record, run_id))
        if changes.record_id != record.record_id():
            start_over()
            record.set_record_id(changes.record_id)
            run_id = ""
            continue
        apply(record, changes)
        if not changes.more and changes.run_id == changes.current:
            break
        run_id = changes.run_id if changes.more else changes.current
    return changes


def update_all_runs(record: Record, call: Call) -> List[CopyChanges]:
    """Update the copies of all runs, after `update_copy`; the last reply about each."""
    replies = []
    for run_id in call(position(record, "")).runs:
        while True:
            before = position(record, run_id)
            changes = call(before)
            apply(record, changes)
            if changes.run_id != run_id or not changes.more or position(record, run_id) == before:
                replies.append(changes)
                break
    return replies
