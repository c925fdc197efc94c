"""A stream of bytes on disk with a position: what a task printed, kept byte for byte.

A stream is a row of segment files `NAME.BASE.log`; the position of a byte is BASE plus its place in the file. A copy
of a stream is brought up to date by `put` at the copy's own `end`, so a torn write or a repeated one does no harm.
"""

import contextlib
import os
import threading
from pathlib import Path
from typing import List, Optional

SEGMENT_BYTES = 64 * 1024 * 1024
"""A segment that has grown to this many bytes is followed by a new one."""

SEGMENTS_KEPT = 8
"""How many segments of one stream are kept; the oldest go first."""


class Stream:
    """The bytes that came through one pipe of one task in one run."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._lock = threading.RLock()

    def _bases(self) -> List[int]:
        before, after = f"{self._name}.", ".log"
        try:
            with os.scandir(self._folder) as files:
                names = [file.name for file in files if file.name.startswith(before) and file.name.endswith(after)]
        except FileNotFoundError:
            return []
        return sorted(int(name[len(before) : -len(after)]) for name in names)

    def _path(self, base: int) -> Path:
        return self._folder / f"{self._name}.{base}.log"

    @property
    def start(self) -> int:
        """The position of the oldest byte that is still kept."""
        with self._lock:
            bases = self._bases()
            return bases[0] if bases else 0

    @property
    def end(self) -> int:
        """The position after the newest byte."""
        with self._lock:
            bases = self._bases()
            return bases[-1] + self._path(bases[-1]).stat().st_size if bases else 0

    def put(self, position: int, data: bytes) -> int:
        """Keep `data`, whose first byte stands at `position`, and return the new end.

        What is already here is passed over. A position beyond the end begins a segment there: the gap was lost before
        it came to us, and is not hidden.
        """
        with self._lock:
            return self._put(position, data)

    def _put(self, position: int, data: bytes) -> int:
        bases = self._bases()
        end = bases[-1] + self._path(bases[-1]).stat().st_size if bases else position
        fresh = data[max(0, end - position) :]
        at = max(end, position)
        if not fresh and position <= end:
            return end
        begins = not bases or at > end or end - bases[-1] >= SEGMENT_BYTES
        base = at if begins else bases[-1]
        if not bases:
            self._folder.mkdir(parents=True, exist_ok=True)
        with self._path(base).open("ab") as segment:
            segment.write(fresh)
        if begins:
            self._forget([*bases, base][:-SEGMENTS_KEPT])
        return at + len(fresh)

    def read(self, position: int, limit: int) -> bytes:
        """At most `limit` bytes from `position` on, from one segment; empty at the end."""
        base = max((base for base in self._bases() if base <= position), default=None)
        try:
            with self._path(base if base is not None else position).open("rb") as segment:
                segment.seek(position - (base or 0))
                return segment.read(limit)
        except FileNotFoundError:
            return b""

    def next_segment(self, position: int) -> Optional[int]:
        """Where the first segment after `position` begins."""
        return next((base for base in self._bases() if base > position), None)

    def span(self, first: int, last: int) -> bytes:
        """All kept bytes from position `first` up to `last`."""
        parts = []
        at = max(first, self.start)
        while at < last:
            part = self.read(at, last - at)
            if not part:
                break
            parts.append(part)
            at += len(part)
        return b"".join(parts)

    def forget_before(self, position: int) -> None:
        """Drop the segments that end by `position`; a large last one that ends there gives way to a new one."""
        with self._lock:
            bases = self._bases()
            self._forget([base for base, following in zip(bases, bases[1:]) if following <= position])
            if bases and position == self.end and position - bases[-1] >= SEGMENT_BYTES // 16:
                self._path(position).touch()
                self._forget([bases[-1]])

    def restart_at(self, position: int) -> None:
        """Begin anew, empty, at `position`."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._forget(self._bases())
        self._path(position).touch()

    def _forget(self, bases: List[int]) -> None:
        for base in bases:
            with contextlib.suppress(FileNotFoundError):
                self._path(base).unlink()
