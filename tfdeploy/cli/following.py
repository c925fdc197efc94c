"""Lines as they come: each once, whether the cluster stands or is taken away meanwhile."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .. import registry
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
        found = [
            _line(hostname, item.at, item.pipe, item.text)
            for hostname, reader in self._present()
            for item in reader.more()
        ]
        return sorted(found, key=lambda line: line.at)

    def rest(self) -> list[Line]:
        """What each task printed last and has ended with no newline."""
        found = [
            _line(hostname, item.at, item.pipe, item.text)
            for hostname, reader in self._present()
            for item in reader.unfinished()
        ]
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


def _line(hostname: str, at: float, pipe: int, text: str) -> Line:
    return Line(at, hostname, PIPES[pipe], text)
