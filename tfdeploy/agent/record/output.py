"""The output of a task in one run: a text in the form of `output_lines`, in pieces `FIRST.log` of one folder.

FIRST is the offset of a piece's first byte in the output. Only the task's launcher begins pieces, so all copies have the same ones. A
copy may lack pieces, never the middle of one. What the launcher of another life had left is in pieces `FIRST.LAUNCHER.log`.
"""

import hashlib
import re
import threading
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from ..files import append
from .output_lines import MAX_FORM, MAX_PART, Joiner, Line, attempts_in, parse, printed

PIECE_BYTES = 8 * 1024 * 1024
"""A piece that has so many bytes is closed: it never changes again."""

_LONGEST_LINE = MAX_PART + MAX_FORM

MAX_PIECES = 128
"""So many pieces of a task are stored; the oldest are deleted first."""

MAX_STRAYS = 32
"""So many pieces of launchers that were replaced are stored."""

APART = "apart"
"""In place of a piece's first offset: these lines differ from those that are stored at their place."""

_PIECE = re.compile(r"([0-9]{1,18})(?:\.([0-9a-f]{1,8}))?\.log")
_BLOCK = 256 * 1024
_TAIL_BYTES = 32 * 1024
"""How many bytes from the end the search for a tail begins."""

_CHECKED = 4096
_MAX_DAMAGE = 1000
"""How many damaged places of a log are counted."""


class OutputDiffers(Exception):
    """These bytes do not follow, or do not equal, what is stored at their place."""


class Log:
    """The output of one task in one run. A reader sees what is stored by any process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damage: Set[Tuple[str, int]] = set()
        """The places where readers have found something else than lines."""
        self._lock = threading.RLock()
        self._has_cut = False

    def pieces(self, launcher: str = "") -> List[int]:
        """The first offsets of the pieces, in order: the task's own ones, or those of a launcher that was replaced."""
        return sorted(first for first, other in self._names() if other == launcher)

    def strays(self) -> List[str]:
        """The launchers that were replaced and have left pieces."""
        return sorted({launcher for _, launcher in self._names() if launcher})

    def _names(self) -> List[Tuple[int, str]]:
        try:
            found = [_PIECE.fullmatch(path.name) for path in self.folder.iterdir()]
        except FileNotFoundError:
            return []
        return [(int(name[1]), name[2] or "") for name in found if name]

    def path(self, first: int, launcher: str = "") -> Path:
        """The file of a piece."""
        return self.folder / (f"{first}.{launcher}.log" if launcher else f"{first}.log")

    def size(self, first: int, launcher: str = "") -> int:
        """The bytes of a piece; 0 where it does not exist."""
        try:
            return self.path(first, launcher).stat().st_size
        except FileNotFoundError:
            return 0

    def sizes(self) -> Dict[int, int]:
        """The pieces and their sizes."""
        return {first: self.size(first) for first in self.pieces()}

    def checks(self) -> Dict[str, Tuple[int, str]]:
        """The pieces by their first offsets: their sizes, and their hashes as of `check`."""
        return {str(first): (size, self.check(first, size)) for first, size in self.sizes().items()}

    def check(self, first: int, size: int) -> str:
        """A hash by which two copies see that the first bytes of a piece are the same: that of the last of them, which have times."""
        begin = max(0, size - _CHECKED)
        return hashlib.sha256(self._read(first, begin, size - begin)).hexdigest()

    @property
    def end(self) -> int:
        """The offset after the last newline."""
        pieces = self.pieces()
        return pieces[-1] + self._whole_size(pieces[-1]) if pieces else 0

    def store(self, first: int, at: int, data: bytes, launcher: str = "") -> int:
        """Store whole lines of a piece at this offset, which only the writer of a copy does; the piece's new end. Where the copy ends
        before `at`, nothing is stored. Bytes that are stored already are skipped.

        Raises:
            OutputDiffers: other bytes are stored there, or the place is another piece's.
            OSError: the disk is full. A part of the bytes may be stored.
        """
        with self._lock:
            self.cut_tails()
            end = first + self.size(first, launcher)
            if not first <= at or at + len(data) > first + PIECE_BYTES + _LONGEST_LINE:
                raise ValueError(f"a piece that begins at {first} has no {len(data)} bytes at {at}")
            if at > end:
                return end
            known = self._read(first, at - first, len(data), launcher)
            others = self.pieces(launcher)
            following = min((other for other in others if other > first), default=at + len(data))
            before = max((other for other in others if other < first), default=first)
            is_inside = end == first and before + self.size(before, launcher) > first
            if known != data[: len(known)] or at + len(data) > following or is_inside:
                raise OutputDiffers
            if len(known) < len(data):
                append(self.path(first, launcher), data[len(known) :])
                self._delete(self.pieces()[:-MAX_PIECES])
            return max(end, at + len(data))

    def store_stray(self, at: int, data: bytes, launcher: str) -> bool:
        """Store lines of a launcher that was replaced in a piece of its own; whether that is its first one.

        Raises:
            ValueError: there are too many.
        """
        with self._lock:
            is_first = launcher not in self.strays()
            mine = [first for first in self.pieces(launcher) if first <= at <= first + self.size(first, launcher)]
            if not mine and sum(bool(name) for _, name in self._names()) >= MAX_STRAYS:
                raise ValueError("too many launchers of this task were replaced")
            first = mine[-1] if mine and at + len(data) <= mine[-1] + PIECE_BYTES else at
            append(self.path(first, launcher), data[first + self.size(first, launcher) - at :])
            return is_first

    def cut_tails(self) -> None:
        """Once, before anything is written: cut off what follows the last newline of each piece, as after a crash of the machine."""
        if not self._has_cut:
            self._has_cut = True
            for first, launcher in self._names():
                self.cut_tail(first, launcher)

    def cut_tail(self, first: int, launcher: str = "") -> int:
        """Cut off what follows the last newline of a piece, as zeros of a power failure; how many bytes."""
        size, whole = self.size(first, launcher), self._whole_size(first, launcher)
        if whole < size:
            with self.path(first, launcher).open("r+b") as file:
                file.truncate(whole)
        return size - whole

    def _whole_size(self, first: int, launcher: str = "") -> int:
        """The bytes of a piece until its last newline."""
        end = self.size(first, launcher)
        while end > 0:
            begin = max(0, end - _LONGEST_LINE)
            newline = self._read(first, begin, end - begin, launcher).rfind(b"\n")
            if newline >= 0:
                return begin + newline + 1
            end = begin
        return 0

    def _delete(self, pieces: List[int]) -> None:
        for first in pieces:
            self.path(first).unlink(missing_ok=True)

    def _read(self, first: int, offset: int, size: int, launcher: str = "") -> bytes:
        if offset >= self.size(first, launcher):
            return b""
        try:
            with self.path(first, launcher).open("rb") as file:
                file.seek(offset)
                return file.read(size)
        except FileNotFoundError:
            return b""

    def read(self, position: int, size: int, launcher: str = "") -> bytes:
        """At most so many bytes from this offset, of one piece; empty at its end."""
        first = max((first for first in self.pieces(launcher) if first <= position), default=None)
        return b"" if first is None else self._read(first, position - first, size, launcher)

    def following(self, position: int, launcher: str = "") -> Optional[int]:
        """The first offset of the first piece after this one."""
        return min((first for first in self.pieces(launcher) if first > position), default=None)

    def printed(self, pipe: int) -> bytes:
        """The bytes of one stream, as the program printed them."""
        return b"".join(printed(self._read(first, 0, self.size(first)), pipe) for first in self.pieces())

    def attempts(self) -> List[int]:
        """The attempts that have printed anything, the newest last. Within a piece they never decrease."""
        attempts: Set[int] = set()
        for first, launcher in self._names():
            size = self.size(first, launcher)
            earliest = attempts_in(self._read(first, 0, MAX_FORM, launcher))
            latest = attempts_in(self._read(first, max(0, size - _LONGEST_LINE), size, launcher))
            is_one = len(earliest) == 1 and earliest == latest
            attempts |= earliest if is_one else attempts_in(self._read(first, 0, size, launcher))
        return sorted(attempts)

    def tail(self, count: int) -> List[Line]:
        """The last `count` lines, oldest first, those without a newline at the end. It reads from a place near the end, then from
        earlier ones until each returned line is complete: the first line of each stream may lack its beginning."""
        pieces = self.pieces()
        start, end = (pieces[0], pieces[-1] + self.size(pieces[-1])) if pieces else (0, 0)
        span = _TAIL_BYTES
        while count > 0:
            begin = self._next_line(max(start, end - span))
            reader = Reader(self, begin)
            lines = [*reader.own_lines(), *reader.unfinished()]
            heads = {line.pipe: place for place, line in reversed(list(enumerate(lines)))}
            torn = any(place >= len(lines) - count and not lines[place].redrawn for place in heads.values())
            if end - span <= start or (len(lines) >= count and not torn):
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
        self._positions: Dict[str, int] = {"": begin}
        self._joiners = {"": Joiner()}
        for launcher, (position, rest) in (state or {}).items():
            self._positions[launcher], self._joiners[launcher] = int(position), Joiner(rest)

    def state(self) -> Dict[str, Any]:
        """Where this reader is, as JSON; only after all lines of `more`."""
        return {launcher: [at, self._joiners[launcher].state()] for launcher, at in self._positions.items()}

    def continue_in(self, log: Log) -> None:
        """Continue at the same offset in this log, a copy in another folder."""
        self._log = log

    def more(self) -> Iterator[Line]:
        """The lines that have been completed since the last call."""
        yield from self.own_lines()
        for launcher in self._log.strays():
            yield from self._lines(launcher)

    def own_lines(self) -> Iterator[Line]:
        """The same without what was left by launchers that were replaced."""
        return self._lines("")

    def unfinished(self) -> List[Line]:
        """What no newline has ended yet, in each stream."""
        return [line for joiner in self._joiners.values() for line in joiner.unfinished()]

    def _lines(self, launcher: str) -> Iterator[Line]:
        joiner = self._joiners.setdefault(launcher, Joiner())
        while True:
            position = self._positions.setdefault(launcher, 0)
            block = self._log.read(position, _BLOCK, launcher)
            end = block.rfind(b"\n") + 1
            if end == 0 and len(block) < _BLOCK:
                following = self._log.following(position, launcher)
                if following is None:
                    return
                self._positions[launcher] = following
                continue
            self._positions[launcher] = position + (end or len(block))
            for line in block[: end or len(block)].split(b"\n")[: None if end == 0 else -1]:
                part = parse(line.lstrip(b"\0"))
                if part is None and len(self._log.damage) < _MAX_DAMAGE:
                    self._log.damage.add((launcher, position))
                if part is not None:
                    yield from joiner.add(part)
                position += len(line) + 1
