"""The output of a task in one run: a text in the form of `output_lines`, in pieces `FIRST.log` of one folder.

FIRST is the offset of a piece's first byte in the output. Only the task's launcher begins pieces, so all copies have the same ones. A
copy may lack pieces, never the middle of one. What a launcher that was replaced still had is a log of its own.
"""

import re
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from ..system.files import append
from .output_lines import MAX_FORM, MAX_PART, Joiner, Line, attempts_in, parse, printed, printed_bytes

PIECE_BYTES = 8 * 1024 * 1024
"""A piece that has so many bytes is closed: it never changes again."""

_LONGEST_LINE = MAX_PART + MAX_FORM

MAX_PIECES = 128
"""So many pieces of a task are stored; the oldest are deleted first."""

DIFFERS = -1
"""In place of the end of a piece: it is another launcher's, or has other bytes at this place."""

_PIECE = re.compile(r"([0-9]{1,18})\.log")
_BLOCK = 256 * 1024
_TAIL_BYTES = 32 * 1024
"""How many bytes from the end the search for a tail begins."""

_LONGEST_TAIL = 8 * 1024 * 1024
"""So many bytes from the end, a tail takes a line without its beginning: one stream may have printed nothing for much longer."""

_MAX_DAMAGE = 1000
"""How many damaged places of a log are counted."""


class Log:
    """The output of one task in one run. A reader sees what is stored by any process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damage: Set[int] = set()
        """The places where readers have found something else than lines."""
        self._lock = threading.RLock()
        self._has_cut = False

    def pieces(self) -> List[int]:
        """The first offsets of the pieces, in order."""
        try:
            names = [_PIECE.fullmatch(path.name) for path in self.folder.iterdir()]
        except FileNotFoundError:
            return []
        return sorted(int(name[1]) for name in names if name)

    def path(self, first: int) -> Path:
        """The file of a piece."""
        return self.folder / f"{first}.log"

    def size(self, first: int) -> int:
        """The bytes of a piece; 0 where it does not exist."""
        try:
            return self.path(first).stat().st_size
        except FileNotFoundError:
            return 0

    def sizes(self) -> Dict[int, int]:
        """The pieces and their sizes."""
        return {first: self.size(first) for first in self.pieces()}

    @property
    def end(self) -> int:
        """The offset after the last newline."""
        pieces = self.pieces()
        return pieces[-1] + self._whole_size(pieces[-1]) if pieces else 0

    def store(self, first: int, at: int, data: bytes) -> int:
        """Store whole lines of a piece at this offset, which only the writer of a copy does; the piece's new end. Where the copy ends
        before `at`, nothing is stored. Bytes that are stored already are skipped. `DIFFERS`, and nothing is stored, where other bytes
        are there, or the place is another piece's.

        Raises:
            OSError: the disk is full. A part of the bytes may be stored.
        """
        with self._lock:
            self.cut_tails()
            end = first + self.size(first)
            if not first <= at or at + len(data) > first + PIECE_BYTES + _LONGEST_LINE:
                raise ValueError(f"a piece that begins at {first} has no {len(data)} bytes at {at}")
            if at > end:
                return end
            known = self._read(first, at - first, len(data))
            others = self.pieces()
            following = self.following(first) or at + len(data)
            before = max((other for other in others if other < first), default=first)
            is_inside = end == first and before + self.size(before) > first
            if known != data[: len(known)] or at + len(data) > following or is_inside:
                return DIFFERS
            if len(known) < len(data):
                append(self.path(first), data[len(known) :])
                self._delete(self.pieces()[:-MAX_PIECES])
            return max(end, at + len(data))

    def cut_tails(self) -> None:
        """Once, before anything is written: cut off what follows the last newline of each piece, as after a crash of the machine."""
        if not self._has_cut:
            self._has_cut = True
            for first in self.pieces():
                self.cut_tail(first)

    def cut_tail(self, first: int) -> None:
        """Cut off what follows the last newline of a piece, as zeros of a power failure."""
        whole = self._whole_size(first)
        if whole < self.size(first):
            with self.path(first).open("r+b") as file:
                file.truncate(whole)

    def _whole_size(self, first: int) -> int:
        """The bytes of a piece until its last newline."""
        end = self.size(first)
        while end > 0:
            begin = max(0, end - _LONGEST_LINE)
            newline = self._read(first, begin, end - begin).rfind(b"\n")
            if newline >= 0:
                return begin + newline + 1
            end = begin
        return 0

    def _delete(self, pieces: List[int]) -> None:
        for first in pieces:
            self.path(first).unlink(missing_ok=True)

    def _read(self, first: int, offset: int, size: int) -> bytes:
        if offset >= self.size(first):
            return b""
        try:
            with self.path(first).open("rb") as file:
                file.seek(offset)
                return file.read(size)
        except FileNotFoundError:
            return b""

    def read(self, position: int, size: int) -> bytes:
        """At most so many bytes from this offset, of one piece; empty at its end."""
        first = max((first for first in self.pieces() if first <= position), default=None)
        return b"" if first is None else self._read(first, position - first, size)

    def following(self, position: int) -> Optional[int]:
        """The first offset of the first piece after this one."""
        return min((first for first in self.pieces() if first > position), default=None)

    def printed(self, pipe: int) -> bytes:
        """The bytes of one stream, as the program printed them."""
        return b"".join(printed(self._read(first, 0, self.size(first)), pipe) for first in self.pieces())

    def attempts(self) -> List[int]:
        """The attempts that have printed anything, the newest last."""
        found = (attempts_in(self._read(first, 0, size)) for first, size in self.sizes().items())
        return sorted(set().union(*found))

    def tail(self, count: int) -> List[Line]:
        """The last `count` lines, oldest first, those without a newline at the end. It reads from a place near the end, then from
        earlier ones until each returned line is complete: the first line of each stream may lack its beginning. From `_LONGEST_TAIL` on
        it reads earlier ones only while there are fewer lines."""
        pieces = self.pieces()
        start, end = (pieces[0], pieces[-1] + self.size(pieces[-1])) if pieces else (0, 0)
        span = _TAIL_BYTES
        while count > 0:
            begin = self._next_line(max(start, end - span))
            reader = Reader(self, begin)
            lines = [*reader.more(), *reader.unfinished()]
            heads = {line.pipe: place for place, line in reversed(list(enumerate(lines)))}
            torn = any(place >= len(lines) - count and not lines[place].redrawn for place in heads.values())
            if end - span <= start or (len(lines) >= count and (not torn or span >= _LONGEST_TAIL)):
                return lines[-count:]
            span *= 4
        return []

    def _next_line(self, position: int) -> int:
        """Where the first line at or after this offset begins."""
        if position in self.pieces():
            return position
        block = self.read(position - 1, _LONGEST_LINE)
        newline = block.find(b"\n")
        return position + newline if newline >= 0 else self.following(position) or self.end


class Reader:
    """Reads lines forward; each call of `more` returns those that were added since the last one."""

    def __init__(self, log: Log, begin: int = 0, state: Optional[Dict[str, Any]] = None) -> None:
        """Begin at this offset of the output, or continue where a reader was when it returned `state`."""
        self._log = log
        self.position = int(state["position"]) if state else begin
        """The offset of what follows the lines that were read."""
        self._joiner = Joiner(state["rests"] if state else None)

    def state(self, shown_only: bool = False) -> Dict[str, Any]:
        """Where this reader is, as JSON: after a block, or after all lines of `more`. With `shown_only`, lines that have not ended lack
        what a terminal shows no longer, such as the earlier states of a progress bar."""
        return {"position": self.position, "rests": self._joiner.state(shown_only)}

    def unfinished(self) -> List[Line]:
        """What no newline has ended yet, in each stream."""
        return self._joiner.unfinished()

    def more(self) -> Iterator[Line]:
        """The lines that have been completed since the last call."""
        for block in iter(self.block, None):
            yield from (line for _, line in block)

    def block(self) -> Optional[List[Tuple[int, Line]]]:
        """The lines that end in the next bytes, each with the offset of its last part; None where there are no more bytes."""
        position = self.position
        # It is asked before the read: a piece that is followed by another has all of its bytes.
        following = self._log.following(position)
        block = self._log.read(position, _BLOCK)
        end = block.rfind(b"\n") + 1
        if end == 0 and len(block) < _BLOCK:
            self.position = position if following is None else following
            return None if following is None else []
        self.position += end or len(block)
        lines = []
        for text in block[: end or len(block)].split(b"\n")[: None if end == 0 else -1]:
            part = parse(text.lstrip(b"\0"))
            if part is None and len(self._log.damage) < _MAX_DAMAGE:
                self._log.damage.add(position)
            if part is not None:
                lines += [(position, line) for line in self._joiner.add(part)]
            position += len(text) + 1
        return lines


class Spool(Log):
    """What a launcher has on its disk of the output of its task: it alone begins pieces, and deletes those that have arrived."""

    def __init__(self, folder: Path, arrived: Dict[int, int]) -> None:
        """`arrived` has the pieces that the controller has, and their sizes. What is written continues after them."""
        super().__init__(folder)
        self.changed = threading.Event()
        """Set after each write."""
        self.arrived = arrived
        self.apart: Set[int] = set()
        """The pieces of which the controller has other bytes."""
        self.lost_bytes = 0
        """What the program has printed and the limit has deleted before it had arrived."""
        self._last = max(arrived, default=0)
        self._least = self._last + arrived.get(self._last, 0)
        self.cut_tails()

    def write(self, data: bytes) -> int:
        """Append lines; how many bytes of them are stored, fewer where the disk is full or fails. The next call has the others."""
        stored = 0
        with self._lock, suppress(OSError):
            while stored < len(data):
                first, size = self._open_piece()
                end = data.find(b"\n", stored + max(0, PIECE_BYTES - size - 1)) + 1 or len(data)
                count = self._append(first, data[stored:end])
                stored += count
                if stored < end:
                    break
        self.changed.set()
        return stored

    def _open_piece(self) -> Tuple[int, int]:
        """The piece that is written to, and its size. One that is full is followed by another at the end of its last line."""
        pieces = self.pieces()
        first = pieces[-1] if pieces else self._least
        size = self.size(first)
        is_full = size >= PIECE_BYTES and self._read(first, size - 1, 1) == b"\n"
        is_behind = first < self._last or first + size < self._least or first in self.apart
        if not is_full and not is_behind:
            return first, size
        for oldest in pieces[: 1 - MAX_PIECES]:
            lost = printed_bytes(self._read(oldest, self.arrived.get(oldest, 0), self.size(oldest)))
            self.path(oldest).unlink()
            self.lost_bytes += lost
        return max(self._least, first + size), 0

    def _append(self, first: int, data: bytes) -> int:
        rest = memoryview(data)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with self.path(first).open("ab", buffering=0) as file:
                while rest:
                    rest = rest[file.write(rest) :]
        except OSError:
            pass
        return len(data) - len(rest)

    def cut(self) -> bytes:
        """Cut off a line of which the disk has only a part; the part. On a disk that fails, the next launcher does it."""
        with self._lock, suppress(OSError):
            torn = self.read(self.end, PIECE_BYTES)
            self.cut_tail(max(self.pieces(), default=0))
            return torn
        return b""

    def lines(self, first: int, offset: int, size: int) -> bytes:
        """Whole lines of a piece, at most so many bytes."""
        data = self._read(first, offset, size)
        return data[: data.rfind(b"\n") + 1]

    def forget_arrived(self) -> None:
        """Delete the pieces that have arrived and are not written to any more."""
        with self._lock:
            for first in {*self.pieces()[:-1], *self.apart}:
                size = self.size(first)
                if size and self.arrived.get(first, 0) >= size:
                    self._least = max(self._least, first + size)
                    self.path(first).unlink()
