"""Lines as they come: each once, whether the cluster stands or is taken away meanwhile."""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .. import registry
from ..agent import lines
from ..agent.lines import PIPES, Reader
from ..agent.record import Record
from ..registry import Entry
from .looking import Seen, look


@dataclass(frozen=True)
class Line:
    """One line of one task."""

    at: float
    hostname: str
    pipe: str
    """`stdout` or `stderr`."""
    text: str
    """As a terminal would show it."""
    attempt: int = 1
    content: bytes = b""
    """As it was printed, without its newline."""


class Follower:
    """Follows what the tasks of one cluster print, from the beginning of its present run.

    `look` and `lines` in turn give each line that has come since; `rest`, at the end, what no newline has ended.
    """

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self._record = Record(Path())
        self._names: list[str] = []
        self._run = ("", 0.0)
        self._readers: dict[tuple[str, float, str], Reader] = {}

    def look(self) -> Seen:
        """One look, by which the lines are here that came until then.

        Raises:
            NotFound: the cluster was destroyed and has left no record.
        """
        self._entry = registry.known(self._entry)
        seen = look(self._entry)
        job = seen.sight.view["job"]
        if job is not None:
            self._run, self._names = (job["run"]["id"], job["given"]), list(job["tasks"])
            self._move(Record(Path(seen.sight.kept_at)))
        return seen

    def lines(self) -> list[Line]:
        """The lines that are here and were not given yet, oldest first."""
        found = [_line(hostname, item) for hostname, reader in self._present() for item in reader.more()]
        return sorted(found, key=lambda line: line.at)

    def rest(self) -> list[Line]:
        """What each task printed last and has ended with no newline."""
        found = [_line(hostname, item) for hostname, reader in self._present() for item in reader.unfinished()]
        return sorted(found, key=lambda line: line.at)

    def _present(self) -> Iterator[tuple[str, Reader]]:
        for hostname in self._names:
            key = (*self._run, hostname)
            if key not in self._readers:
                self._readers[key] = Reader(self._record.log(self._run[0], hostname))
            yield hostname, self._readers[key]

    def _move(self, record: Record) -> None:
        """The record stands elsewhere once its cluster is destroyed; the positions in it are the same."""
        if record.folder == self._record.folder:
            return
        self._record = record
        for (run, _, hostname), reader in self._readers.items():
            reader.go_on_in(record.log(run, hostname))


def printed(record: Record, run: str, hostnames: Sequence[str]) -> Iterator[Line]:
    """All that these tasks have printed in a run, in the order of time; what no newline has ended comes last."""
    readers = {hostname: Reader(record.log(run, hostname)) for hostname in hostnames}
    yield from heapq.merge(*(map(partial(_line, name), reader.more()) for name, reader in readers.items()), key=_at)
    yield from sorted((_line(name, item) for name, reader in readers.items() for item in reader.unfinished()), key=_at)


def _line(hostname: str, item: lines.Line) -> Line:
    return Line(item.at, hostname, PIPES[item.pipe], item.text, item.attempt, item.content)


def _at(line: Line) -> float:
    return line.at
