"""What a task printed, from bytes back to lines: two streams and an index of when each chunk came.

Every chunk that the launcher reads from a pipe gets one entry in the index: time, pipe, attempt, position, length. The
raw bytes stand untouched in the streams `stdout` and `stderr`, so that a person can read them too.
"""

import re
import struct
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Pattern

from .stream import Stream

STDOUT, STDERR = 1, 2
PIPES = {STDOUT: "stdout", STDERR: "stderr"}
NAMES = ("stdout", "stderr", "index")
"""The streams of one task in one run."""

_ENTRY = struct.Struct("<dBIQI")
_BLOCK = 4096
_SHOWN = 4000


class Line(NamedTuple):
    """One line that a task printed, without its newline."""

    at: float
    pipe: int
    attempt: int
    content: bytes

    @property
    def text(self) -> str:
        """As a terminal would show it: what follows the last carriage return; long lines cut."""
        shown = self.content.rstrip(b"\r").rsplit(b"\r", 1)[-1]
        cut = f"… ({len(shown)} bytes)" if len(shown) > _SHOWN else ""
        return shown[:_SHOWN].decode("utf-8", "replace") + cut


class _Entry(NamedTuple):
    at: float
    pipe: int
    attempt: int
    position: int
    length: int


ENTRY_BYTES = _ENTRY.size


def entry(at: float, pipe: int, attempt: int, position: int, length: int) -> bytes:
    """An index entry as bytes."""
    return _ENTRY.pack(at, pipe, attempt, position, length)


class Log:
    """The three streams of one task in one run."""

    def __init__(self, folder: Path) -> None:
        self.streams = {name: Stream(folder, name) for name in NAMES}

    def ends(self) -> Dict[str, int]:
        """How far each stream has come."""
        return {name: stream.end for name, stream in self.streams.items()}

    def tail(self, count: int) -> List[Line]:
        """The last `count` lines of both pipes, in the order of time."""
        index = self.streams["index"]
        first, last = index.start, index.end
        span = _BLOCK * _ENTRY.size
        while count > 0:
            begin = max(first, last - last % _ENTRY.size - span)
            reader = Reader(self, begin)
            found = list(reader.more()) + reader.unfinished()
            if len(found) > count + len(PIPES) or begin == first:
                return found[-count:]
            span *= 4
        return []


class Reader:
    """Reads lines forward, and can be asked again for those that came since."""

    def __init__(self, log: Log, begin: int = 0) -> None:
        self._log = log
        self._index = begin
        self._rest: Dict[int, bytes] = {}
        self._last: Dict[int, _Entry] = {}

    def more(self) -> Iterator[Line]:
        """The lines that have been completed since the last call."""
        index = self._log.streams["index"]
        while True:
            block = index.read(self._index, _BLOCK * _ENTRY.size)
            whole = len(block) - len(block) % _ENTRY.size
            if whole:
                self._index += whole
                for item in _entries(block[:whole]):
                    yield from self._lines(item)
                continue
            following = index.next_segment(self._index)
            if following is None:
                return
            self._index = following

    def _lines(self, item: _Entry) -> Iterator[Line]:
        data = self._log.streams[PIPES[item.pipe]].span(item.position, item.position + item.length)
        before = self._last.get(item.pipe)
        rest = self._rest.get(item.pipe, b"")
        if before is not None and rest and before.attempt != item.attempt:
            yield Line(before.at, before.pipe, before.attempt, rest)
            rest = b""
        *whole, self._rest[item.pipe] = (rest + data).split(b"\n")
        self._last[item.pipe] = item
        for content in whole:
            yield Line(item.at, item.pipe, item.attempt, content)

    def unfinished(self) -> List[Line]:
        """The last piece of each pipe that no newline has ended yet."""
        return [
            Line(item.at, pipe, item.attempt, self._rest[pipe])
            for pipe, item in sorted(self._last.items(), key=lambda pair: pair[1].at)
            if self._rest.get(pipe)
        ]


def _entries(block: bytes) -> Iterator[_Entry]:
    return (_Entry(*fields) for fields in _ENTRY.iter_unpack(block))


class Matches:
    """The last match of each pattern in one task's lines, kept up to date at little cost."""

    def __init__(self, log: Log, patterns: Dict[str, str]) -> None:
        self._reader = Reader(log)
        self._patterns: Dict[str, Pattern[str]] = {name: re.compile(text) for name, text in patterns.items()}
        self._found: Dict[str, str] = {}

    def latest(self) -> Dict[str, str]:
        """Name of the metric to the text that its pattern found last: group 1 where the pattern has a group."""
        for line in self._reader.more():
            self._take(line, self._found)
        found = dict(self._found)
        for line in self._reader.unfinished():
            self._take(line, found)
        return found

    def _take(self, line: Line, found: Dict[str, str]) -> None:
        text = line.content.decode("utf-8", "replace")
        for name, pattern in self._patterns.items():
            for match in pattern.finditer(text):
                found[name] = match.group(1 if pattern.groups else 0) or ""
