"""A snapshot of one cluster: its observed state, or its last record if it was destroyed; and the log lines of its tasks."""

import heapq
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from .. import registry
from ..agent.model.events import Event
from ..agent.model.run_state import RunState
from ..agent.record.output import Reader
from ..agent.record.output_lines import PIPES, Line
from ..agent.record.record import Record, ViewRequest
from ..backends.backend import load
from ..backends.base import GONE, ObservedMachines, ObservedState
from ..errors import NotFound
from ..registry import Entry
from ..report.expected_state import expected_of
from ..report.remedies import engine_remedy
from ..report.report import Report, report
from ..units import moment
from .pulumi import is_locked

ALL_EVENTS = 100_000

_LONGEST_START = 3600.0
"""In seconds. If the lock of an update cannot be seen, it has created the first task by then, even if it builds an image."""


class Snapshot(NamedTuple):
    """The state of one cluster at one moment."""

    entry: Entry
    report: Report
    observed: ObservedState

    @property
    def events(self) -> Sequence[Event]:
        """The events of the current run, oldest first."""
        return self.observed.view.events

    @property
    def run_state(self) -> RunState | None:
        """The state of the current run; None if no run was submitted."""
        return self.observed.view.run_state

    @property
    def is_finished(self) -> bool:
        """Whether waiting longer is useless: the run and its tasks have ended, or the cluster was destroyed."""
        return bool(self.entry.ended) or self.report.finished

    @property
    def is_gone(self) -> bool:
        """Whether its place responds and has nothing of the cluster that could run: no controller, no task, no machine."""
        return self.observed.is_gone


def take_snapshot(entry: Entry, log_lines: int = 0, events: int = ALL_EVENTS) -> Snapshot:
    """Observe a cluster once. Never fails because a part of the cluster is gone.

    Raises:
        NotFound: the cluster was destroyed and has no record.
    """
    request = ViewRequest(log_lines, events=events)
    backend = entry.cluster["backend"]
    observed = _last_state(entry, request) if entry.ended else load(backend).runner.observe(entry.cluster, "", request)
    expected = entry.expected if entry.expected.tasks else expected_of(observed.view.run_state)
    return Snapshot(entry, report(expected, observed), observed)


def refuse_endless_wait(snapshot: Snapshot) -> None:
    """Return if the run of this cluster may still come to an end.

    Raises:
        NotFound: nothing of the cluster exists, and no update is creating it: its first update was cancelled, or it was destroyed from
            another computer.
    """
    if snapshot.is_finished or not snapshot.is_gone or _may_be_updating(snapshot.entry):
        return
    # An update may have ended after the observation and before its lock was checked.
    entry = registry.latest(snapshot.entry)
    if not entry.ended and take_snapshot(entry, events=0).is_gone:
        backend = entry.cluster["backend"]
        raise NotFound(
            f"nothing of {entry.title} exists on {backend}, and no update is creating it. `pulumi up` creates it."
        )


def no_run(snapshot: Snapshot) -> NotFound:
    """The error of a command that needs a run where none is seen."""
    title, problems = snapshot.entry.title, "; ".join(snapshot.observed.problems)
    if problems:
        return NotFound(f"no run of {title} can be seen: {problems}. {engine_remedy(problems, '')}".rstrip())
    return NotFound(f"{title} has no run yet. `tfdeploy status` prints what it waits for.")


def snapshots(entry: Entry, pause: Callable[[], object]) -> Iterator[Snapshot]:
    """Observations of a cluster, with a pause after each, until waiting longer is useless; at least one.

    Raises:
        NotFound: nothing of the cluster exists.
    """
    snapshot = take_snapshot(entry)
    yield snapshot
    while not snapshot.is_finished:
        refuse_endless_wait(snapshot)
        pause()
        snapshot = take_snapshot(registry.latest(entry))
        yield snapshot


def records(entry: Entry, current: str) -> list[Record]:
    """The records of a cluster and of earlier ones of its stack that this version can read, the newest first. `current` is the folder
    of the observed record; empty for none."""
    folders = [*([Path(current)] if current else []), *registry.stored_records(entry)]
    return [record for record in map(Record, dict.fromkeys(folders)) if record.is_readable()]


def _may_be_updating(entry: Entry) -> bool:
    locked = is_locked(entry.cluster["project"], entry.cluster["stack"], entry.login or registry.login())
    return time.time() - entry.begun < _LONGEST_START if locked is None else locked


def _last_state(entry: Entry, request: ViewRequest) -> ObservedState:
    """The state of a destroyed cluster, from its record."""
    folder = registry.latest_record(entry)
    if folder is None:
        raise NotFound(f"{entry.title} was destroyed at {moment(entry.ended)} and has no record.")
    record = Record(folder, is_copy=True)
    return ObservedState(
        at=time.time(),
        view=record.view(request, record.current()),
        controller_silent_since=record.last_alive(),
        engine={},
        record_folder=str(folder),
        problems=[f"the cluster was destroyed at {moment(entry.ended)}"],
        machines=ObservedMachines(others=GONE),
    )


class LogLine(NamedTuple):
    """One line that a task printed."""

    at: float
    hostname: str
    pipe: str
    """`stdout` or `stderr`."""
    text: str
    """Without escape sequences."""
    attempt: int = 1
    content: bytes = b""
    """The bytes that were printed, without the newline."""


class Follower:
    """Reads the log lines of one cluster from the beginning of its current run.

    Call `take_snapshot`, then `lines`, again and again: each line is returned once. `unfinished_lines` returns, at the end, lines
    without a newline.
    """

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self._record = Record(Path())
        self._hostnames: list[str] = []
        self._run = ("", 0.0)
        self._readers: dict[tuple[str, float, str], Reader] = {}

    def take_snapshot(self) -> Snapshot:
        """Observe the cluster. Afterwards, `lines` has all lines up to this moment.

        Raises:
            NotFound: the cluster was destroyed and has no record.
        """
        self._entry = registry.latest(self._entry)
        snapshot = take_snapshot(self._entry)
        state = snapshot.run_state
        if state is not None:
            self._use_record(Record(Path(snapshot.observed.record_folder)))
            self._run, self._hostnames = (state.spec.id, state.submitted_at), self._record.hostnames(state)
        return snapshot

    def lines(self) -> list[LogLine]:
        """The complete lines that were not returned before, oldest first."""
        lines = [_log_line(hostname, line) for hostname, reader in self._current_readers() for line in reader.more()]
        return sorted(lines, key=_time)

    def unfinished_lines(self) -> list[LogLine]:
        """The last line of each task that has no newline at its end, oldest first."""
        readers = self._current_readers()
        return sorted((_log_line(name, line) for name, reader in readers for line in reader.unfinished()), key=_time)

    def _current_readers(self) -> Iterator[tuple[str, Reader]]:
        for hostname in self._hostnames:
            key = (*self._run, hostname)
            if key not in self._readers:
                self._readers[key] = Reader(self._record.log(self._run[0], hostname))
            yield hostname, self._readers[key]

    def _use_record(self, record: Record) -> None:
        """Continue in another folder: `pulumi destroy` moves the record. Positions in the files stay valid."""
        if record.folder == self._record.folder:
            return
        self._record = record
        for (run, begun, hostname), reader in self._readers.items():
            self._readers[run, begun, hostname] = Reader(record.log(run, hostname), state=reader.state())


def read_lines(record: Record, run: str, hostnames: Sequence[str]) -> Iterator[LogLine]:
    """All lines of these tasks in a run, oldest first; lines without a newline come last."""
    readers = {hostname: Reader(record.log(run, hostname)) for hostname in hostnames}
    streams = (map(partial(_log_line, name), reader.more()) for name, reader in readers.items())
    yield from heapq.merge(*streams, key=_time)
    unfinished = (_log_line(name, line) for name, reader in readers.items() for line in reader.unfinished())
    yield from sorted(unfinished, key=_time)


def _log_line(hostname: str, line: Line) -> LogLine:
    return LogLine(line.at, hostname, PIPES[line.pipe], line.text, line.attempt, line.content)


def _time(line: LogLine) -> float:
    return line.at
