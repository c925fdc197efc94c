"""The output of a task, from bytes back to lines: two streams and an index with the time of each chunk.

Every chunk that the launcher reads from a pipe gets one entry in the index: time, pipe, attempt, position, length. The
raw bytes are stored unchanged in the streams `stdout` and `stderr`, so that a person can read them too.
"""

import base64
import struct
import threading
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from .log_segments import Stream
from .terminal_text import last_state

STDOUT, STDERR = 1, 2
PIPES = {STDOUT: "stdout", STDERR: "stderr"}
NAMES = ("stdout", "stderr", "index")
"""The streams of one task in one run."""

_ENTRY = struct.Struct("<dBIQI")
_BLOCK = 4096
"""How many entries of the index are read at once."""

_TAIL_BLOCK = 256
"""How many entries from the end the search for a tail begins."""

_AHEAD = 256 * 1024
"""How many bytes of a stream are read at once."""

_SHOWN = 4000

MAX_LINE = 64 * 1024
"""Of a longer line only so many bytes are held, and of a progress bar what follows the last carriage return."""

_MAX_ATTEMPT, _MAX_CHUNK = 10_000_000, 64 * 1024 * 1024
_EARLIEST, _LATEST = 1e-6, 1e11
"""What an entry of an index may contain; another one is damaged."""

_MAX_DAMAGE = 1000
"""How many damaged places of a log are counted."""


class Line(NamedTuple):
    """One line that a task printed, without its newline."""

    at: float
    pipe: int
    attempt: int
    content: bytes
    omitted: int = 0
    """How many further bytes it has, which are only in the streams."""

    @property
    def text(self) -> str:
        """The text as a terminal shows it, with its escape sequences. Long lines are cut."""
        shown = self.content
        if any(control in shown for control in (b"\r", b"\b", b"\x1b")):
            shown = last_state(shown.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        cut = f"… ({len(shown) + self.omitted} bytes)" if len(shown) + self.omitted > _SHOWN else ""
        return shown[:_SHOWN].decode("utf-8", "replace") + cut

    @property
    def redrawn(self) -> bool:
        """Whether a carriage return hides its beginning, as in progress bars."""
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
        self.changed = threading.Event()
        """Set when this object has changed the stored bytes."""
        self.streams = {name: Stream(folder, name, self.changed) for name in NAMES}
        self.damage: Set[int] = set()
        """The positions in the index where readers have found something else than entries."""

    def ends(self) -> Dict[str, int]:
        """The end position of each stream."""
        return {name: stream.end for name, stream in self.streams.items()}

    def attempts(self) -> List[int]:
        """The attempts that have printed anything, the newest last."""
        index = self.streams["index"]
        begin = _whole_entry(index.start)
        attempts: Set[int] = set()
        while True:
            block = index.span(begin, begin + _BLOCK * _ENTRY.size)
            whole = len(block) - len(block) % _ENTRY.size
            attempts.update(_Entry(*fields).attempt for fields in _ENTRY.iter_unpack(block[:whole]))
            begin += whole
            if not whole:
                following = index.next_segment(begin)
                if following is None:
                    return sorted(attempts)
                begin = _whole_entry(following)

    def tail(self, count: int) -> List[Line]:
        """The last `count` lines of both pipes, oldest first.

        It reads the index from a position near the end, then from earlier ones until every returned line is complete: the
        first line of each pipe may lack its beginning.
        """
        index = self.streams["index"]
        first, last = _whole_entry(index.start), index.end
        span = _TAIL_BLOCK * _ENTRY.size
        while count > 0:
            begin = max(first, last - last % _ENTRY.size - span)
            reader = Reader(self, begin)
            lines = sorted([*reader.more(), *reader.unfinished()], key=lambda line: line.at)
            heads = {line.pipe: place for place, line in reversed(list(enumerate(lines)))}
            torn = any(place >= len(lines) - count and not lines[place].redrawn for place in heads.values())
            if begin == first or (len(lines) >= count and not torn):
                return lines[-count:]
            span *= 4
        return []


class Reader:
    """Reads lines forward; each call of `more` returns those that were added since the last one."""

    def __init__(self, log: Log, begin: int = 0, state: Optional[Dict[str, Any]] = None) -> None:
        """Begin at this position of the index, or continue where a reader was when it returned `state`."""
        self._log = log
        self._index = begin
        self._rest = {pipe: _Rest() for pipe in PIPES}
        self._last: Dict[int, _Entry] = {}
        if state:
            self._index = state["index"]
            self._last = {int(pipe): _Entry(*item) for pipe, item in state["last"].items()}
            for pipe, (text, omitted) in state["rest"].items():
                self._rest[int(pipe)] = _Rest(base64.b64decode(text), omitted)

    def state(self) -> Dict[str, Any]:
        """Where this reader is, as JSON; only after all lines of `more`."""
        rest = {pipe: (base64.b64encode(rest.content).decode(), rest.omitted) for pipe, rest in self._rest.items()}
        return {"index": self._index, "last": self._last, "rest": rest}

    def continue_in(self, log: Log) -> None:
        """Continue at the same position in this log, a copy in another folder."""
        self._log = log

    def more(self) -> Iterator[Line]:
        """The lines that have been completed since the last call."""
        index = self._log.streams["index"]
        while True:
            block = index.span(self._index, self._index + _BLOCK * _ENTRY.size)
            if self._index < index.start:
                self._index = _whole_entry(index.start)
            elif len(block) >= _ENTRY.size:
                items, used = self._entries(block)
                self._index += used
                for item, data in self._contents(items):
                    yield from self._lines(item, data)
            else:
                following = index.next_segment(self._index + len(block))
                if following is None:
                    return
                self._index = _whole_entry(following)

    def _entries(self, block: bytes) -> Tuple[List[_Entry], int]:
        """The entries in a block, and how many of its bytes they took. Where something else is, they begin again after it."""
        whole = len(block) - len(block) % _ENTRY.size
        items = [_Entry(*fields) for fields in _ENTRY.iter_unpack(block[:whole])]
        if all(map(_is_possible, items)):
            return items, whole
        items, at = [], 0
        ends = {pipe: self._log.streams[name].end for pipe, name in PIPES.items()}
        while at + _ENTRY.size <= len(block):
            item = _Entry(*_ENTRY.unpack_from(block, at))
            if _is_possible(item) and item.position + item.length <= ends[item.pipe]:
                items.append(item)
                at += _ENTRY.size
                continue
            if len(self._log.damage) < _MAX_DAMAGE:
                self._log.damage.add(self._index + at)
            at = self._next_entry(block, at + 1, ends)
        return items, at

    def _next_entry(self, block: bytes, at: int, ends: Dict[int, int]) -> int:
        """Where the next entry begins; the end of the block, less what may be the beginning of one, where it has none."""
        last = len(block) - _ENTRY.size
        while at <= last:
            item = _Entry(*_ENTRY.unpack_from(block, at))
            if _is_possible(item) and item.length and item.position + item.length <= ends[item.pipe]:
                return at
            at += 1
        return max(at, last + 1)

    def _contents(self, items: List[_Entry]) -> Iterator[Tuple[_Entry, bytes]]:
        """The entries with their bytes; each stream is read in large pieces."""
        pieces = dict.fromkeys(PIPES, (0, b""))
        for item in items:
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
        if before is not None and rest and before.attempt != item.attempt:
            yield Line(before.at, before.pipe, before.attempt, rest.content, rest.omitted)
            rest.clear()
        self._last[item.pipe] = item
        first, *others = data.split(b"\n")
        rest.add(first)
        for content in others:
            yield Line(item.at, item.pipe, item.attempt, rest.content, rest.omitted)
            rest.clear()
            rest.add(content)

    def unfinished(self) -> List[Line]:
        """The last piece of each pipe that no newline has ended yet."""
        return [
            Line(item.at, pipe, item.attempt, self._rest[pipe].content, self._rest[pipe].omitted)
            for pipe, item in sorted(self._last.items(), key=lambda pair: pair[1].at)
            if self._rest[pipe]
        ]


class _Rest:
    """The beginning of a line that no newline has ended yet. It never holds much more than `MAX_LINE` bytes."""

    def __init__(self, content: bytes = b"", omitted: int = 0) -> None:
        self.omitted = omitted
        self._pieces = [content]
        self._size = len(content)

    def __bool__(self) -> bool:
        return self._size > 0

    @property
    def content(self) -> bytes:
        """What is held of it."""
        if len(self._pieces) > 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]

    def clear(self) -> None:
        """Begin another line."""
        self._pieces, self._size, self.omitted = [b""], 0, 0

    def add(self, piece: bytes) -> None:
        """Add bytes. Beyond the limit, what a carriage return has hidden is dropped first, then the end."""
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size <= MAX_LINE:
            return
        whole = self.content
        shown = max(0, whole.rstrip(b"\r").rfind(b"\r"))
        if shown:
            whole, self.omitted = whole[shown:], 0
        self.omitted += max(0, len(whole) - MAX_LINE // 2)
        self._pieces = [whole[: MAX_LINE // 2]]
        self._size = len(self._pieces[0])


def _is_possible(item: _Entry) -> bool:
    """Whether an entry may have been written by a launcher."""
    return (
        item.pipe in PIPES
        and (item.at == 0 or _EARLIEST < item.at < _LATEST)
        and item.attempt < _MAX_ATTEMPT
        and item.length < _MAX_CHUNK
        and item.position < 1 << 60
    )


def _whole_entry(position: int) -> int:
    """The position of the first whole index entry at or after `position`."""
    return position + -position % _ENTRY.size
