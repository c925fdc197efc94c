"""What a launcher has on its disk of the output of its task: it alone begins pieces, and deletes those that have arrived."""

import threading
from pathlib import Path
from typing import Dict, Set, Tuple

from . import output
from .output import Log
from .output_lines import printed_bytes


class Spool(Log):
    """The pieces that a launcher writes, in a folder of its own."""

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
        """Append lines; how many bytes of them are stored, fewer where the disk is full. The next call has the others."""
        stored = 0
        with self._lock:
            while stored < len(data):
                first, size = self._open_piece()
                end = data.find(b"\n", stored + max(0, output.PIECE_BYTES - size - 1)) + 1 or len(data)
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
        is_full = size >= output.PIECE_BYTES and self._read(first, size - 1, 1) == b"\n"
        is_behind = first < self._last or first + size < self._least or first in self.apart
        if not is_full and not is_behind:
            return first, size
        for oldest in pieces[: 1 - output.MAX_PIECES]:
            self.lost_bytes += printed_bytes(self._read(oldest, self.arrived.get(oldest, 0), self.size(oldest)))
            self.path(oldest).unlink()
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
        """Cut off a line of which the disk has only a part; the part."""
        with self._lock:
            torn = self.read(self.end, output.PIECE_BYTES)
            self.cut_tail(max(self.pieces(), default=0))
            return torn

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
