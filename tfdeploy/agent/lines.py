"""What a task printed, from bytes back to lines: two streams and an index of when each chunk came.

Every chunk that the launcher reads from a pipe gets one entry in the index: time, pipe, attempt, position, length. The
raw bytes stand untouched in the streams `stdout` and `stderr`, so that a person can read them too.
"""

import re
import struct
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Pattern, Set, Tuple

from .stream import Stream

STDOUT, STDERR = 1, 2
PIPES = {STDOUT: "stdout", STDERR: "stderr"}
NAMES = ("stdout", "stderr", "index")
"""The streams of one task in one run."""

_ENTRY = struct.Struct("<dBIQI")
_BLOCK = 4096
"""How many entries of the index are read at once."""

_TAIL_BLOCK = 256
"""From how many entries back a tail begins to be sought."""

_AHEAD = 256 * 1024
"""How many bytes of a stream are read at once."""

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

    @property
    def redrawn(self) -> bool:
        """Whether a carriage return hides its beginning, as progress bars have it."""
        return b"\r" in self.content.rstrip(b"\r")


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

    def attempts(self) -> List[int]:
        """The attempts that have printed anything, the newest last."""
        index = self.streams["index"]
        begin = _whole_entry(index.start)
        found: Set[int] = set()
        while True:
            block = index.span(begin, begin + _BLOCK * _ENTRY.size)
            whole = len(block) - len(block) % _ENTRY.size
            found.update(_Entry(*fields).attempt for fields in _ENTRY.iter_unpack(block[:whole]))
            begin += whole
            if not whole:
                following = index.next_segment(begin)
                if following is None:
                    return sorted(found)
                begin = _whole_entry(following)

    def tail(self, count: int) -> List[Line]:
        """The last `count` lines of both pipes, in the order of time.

        It reads the index from a little way back, and from farther back until no line in the answer shows torn: where
        reading begins in the midst, the first line of each pipe may lack its beginning.
        """
        index = self.streams["index"]
        first, last = _whole_entry(index.start), index.end
        span = _TAIL_BLOCK * _ENTRY.size
        while count > 0:
            begin = max(first, last - last % _ENTRY.size - span)
            reader = Reader(self, begin)
            found = sorted([*reader.more(), *reader.unfinished()], key=lambda line: line.at)
            heads = {line.pipe: place for place, line in reversed(list(enumerate(found)))}
            torn = any(place >= len(found) - count and not found[place].redrawn for place in heads.values())
            if begin == first or (len(found) >= count and not torn):
                return found[-count:]
            span *= 4
        return []


class Reader:
    """Reads lines forward, and can be asked again for those that came since."""

    def __init__(self, log: Log, begin: int = 0) -> None:
        self._log = log
        self._index = begin
        self._rest: Dict[int, List[bytes]] = {pipe: [] for pipe in PIPES}
        self._last: Dict[int, _Entry] = {}

    def go_on_in(self, log: Log) -> None:
        """Read on in this log, which is the same one in another place."""
        self._log = log

    def more(self) -> Iterator[Line]:
        """The lines that have been completed since the last call."""
        index = self._log.streams["index"]
        while True:
            block = index.span(self._index, self._index + _BLOCK * _ENTRY.size)
            whole = len(block) - len(block) % _ENTRY.size
            if self._index < index.start:
                self._index = _whole_entry(index.start)
            elif whole:
                self._index += whole
                for item, data in self._contents(block[:whole]):
                    yield from self._lines(item, data)
            else:
                following = index.next_segment(self._index + len(block))
                if following is None:
                    return
                self._index = _whole_entry(following)

    def _contents(self, block: bytes) -> Iterator[Tuple[_Entry, bytes]]:
        """The entries with their bytes; each stream is read in large pieces."""
        pieces = dict.fromkeys(PIPES, (0, b""))
        for fields in _ENTRY.iter_unpack(block):
            item = _Entry(*fields)
            end = item.position + item.length
            base, data = pieces[item.pipe]
            if item.position < base or end > base + len(data):
                stream = self._log.streams[PIPES[item.pipe]]
                base = max(item.position, stream.start)
                data = stream.span(base, max(end, base + _AHEAD))
                pieces[item.pipe] = base, data
            yield item, data[max(0, item.position - base) : max(0, end - base)]

    def _lines(self, item: _Entry, data: bytes) -> Iterator[Line]:
        before = self._last.get(item.pipe)
        rest = self._rest[item.pipe]
        if before is not None and any(rest) and before.attempt != item.attempt:
            yield Line(before.at, before.pipe, before.attempt, b"".join(rest))
            rest.clear()
        self._last[item.pipe] = item
        first, *others = data.split(b"\n")
        rest.append(first)
        for content in others:
            yield Line(item.at, item.pipe, item.attempt, b"".join(rest))
            rest[:] = [content]

    def unfinished(self) -> List[Line]:
        """The last piece of each pipe that no newline has ended yet."""
        return [
            Line(item.at, pipe, item.attempt, b"".join(self._rest[pipe]))
            for pipe, item in sorted(self._last.items(), key=lambda pair: pair[1].at)
            if any(self._rest[pipe])
        ]


def _whole_entry(position: int) -> int:
    """Where in the index the first whole entry from `position` on begins."""
    return position + -position % _ENTRY.size


class Matches:
    """The last match of each pattern in one task's lines, kept up to date at little cost."""

    def __init__(self, log: Log, patterns: Dict[str, str]) -> None:
        self._reader = Reader(log)
        self._patterns: Dict[str, Pattern[str]] = {name: re.compile(text) for name, text in patterns.items()}
        self._found: Dict[str, Tuple[float, str]] = {}

    def latest(self) -> Dict[str, str]:
        """Name of the metric to the text that its pattern found last: group 1 where the pattern has a group."""
        for line in self._reader.more():
            self._found.update(self._matches(line))
        found = dict(self._found)
        for line in self._reader.unfinished():
            for name, match in self._matches(line).items():
                found[name] = max(match, found.get(name, match), key=lambda pair: pair[0])
        return {name: text for name, (_, text) in found.items()}

    def _matches(self, line: Line) -> Dict[str, Tuple[float, str]]:
        text = line.content.decode("utf-8", "replace")
        last = {name: match for name, pattern in self._patterns.items() for match in pattern.finditer(text)}
        return {name: (line.at, match.group(1 if match.re.groups else 0) or "") for name, match in last.items()}
