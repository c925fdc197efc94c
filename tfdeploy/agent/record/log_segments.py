"""A stream of bytes on disk with positions: the output of a task, byte for byte.

A stream is a sequence of segment files `NAME.BASE.log`; the position of a byte is BASE plus its place in the file. A copy
of a stream is brought up to date by `put` at the copy's own `end`, so a torn write or a repeated one does no harm.
"""

import contextlib
import os
import threading
from pathlib import Path
from typing import Dict, List, Optional

SEGMENT_BYTES = 64 * 1024 * 1024
"""A segment that has grown to this many bytes is followed by a new one."""

MAX_SEGMENTS = 8
"""How many segments of one stream are stored; the oldest are deleted first. Those that a gap has cut short do not count."""

_MAX_GAPS = 256


class Stream:
    """The bytes from one pipe of one task in one run."""

    def __init__(self, folder: Path, name: str, changed: Optional[threading.Event] = None) -> None:
        self._folder = folder
        self._name = name
        self._lock = threading.RLock()
        self._changed = changed or threading.Event()
        """Set after each change of the stored bytes by this object."""

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
        """The position of the oldest byte that is still stored."""
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
        """Store `data` at `position`, and return the new end. On an error a part of the bytes may be stored: `end` is after them.

        Bytes that are stored already are skipped. A position beyond the end begins a segment there: the bytes between were
        lost before they arrived, and the gap stays visible. A gap deletes nothing that is stored.

        Raises:
            ValueError: the stream has too many gaps.
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
        if bases and at > end and len(bases) >= MAX_SEGMENTS + _MAX_GAPS:
            raise ValueError(f"{self._name} has too many gaps")
        if not bases:
            self._folder.mkdir(parents=True, exist_ok=True)
        try:
            with self._path(base).open("ab", buffering=0) as segment:
                rest = memoryview(fresh)
                while rest:
                    rest = rest[segment.write(rest) :]
        finally:
            self._changed.set()
        if begins:
            self._delete(self._excess(bases))
        return at + len(fresh)

    def _excess(self, bases: List[int]) -> List[int]:
        """The oldest of these segments, before the newest `MAX_SEGMENTS` - 1 that are full."""
        full = [base for base in bases if self._path(base).stat().st_size >= SEGMENT_BYTES]
        oldest = full[1 - MAX_SEGMENTS] if len(full) >= MAX_SEGMENTS - 1 else 0
        return [base for base in bases if base < oldest]

    def read(self, position: int, limit: int) -> bytes:
        """At most `limit` bytes from `position`, from one segment; empty at the end."""
        base = max((base for base in self._bases() if base <= position), default=None)
        try:
            with self._path(base if base is not None else position).open("rb") as segment:
                segment.seek(position - (base or 0))
                return segment.read(limit)
        except FileNotFoundError:
            return b""

    def next_segment(self, position: int) -> Optional[int]:
        """The position of the first segment that begins after `position`."""
        return next((base for base in self._bases() if base > position), None)

    def span(self, first: int, last: int) -> bytes:
        """All stored bytes from position `first` to `last`."""
        parts = []
        at, last = max(first, self.start), min(last, self.end)  # to read at the end would open the file in vain
        while at < last:
            part = self.read(at, last - at)
            if not part:
                break
            parts.append(part)
            at += len(part)
        return b"".join(parts)

    def forget_before(self, position: int) -> None:
        """Delete the segments that end at or before `position`; a large last one that ends there is replaced by an empty one."""
        with self._lock:
            bases = self._bases()
            self._delete([base for base, following in zip(bases, bases[1:]) if following <= position])
            if bases and position == self.end and position - bases[-1] >= SEGMENT_BYTES // 16:
                self._delete([bases[-1]])
                with contextlib.suppress(OSError):  # a full disk: the next `put` names the position again
                    self._path(position).touch()

    def drop_overlaps(self, sizes: Dict[int, int]) -> None:
        """In a copy, delete segments whose bytes are in others that the original has, with these sizes by their positions, and the
        oldest beyond the limit."""
        end = max(base + size for base, size in sizes.items())
        with self._lock:
            self._delete([base for base in self._bases() if base not in sizes and min(sizes) < base < end])
            self._delete(self._excess(self._bases()))

    def restart_at(self, position: int) -> None:
        """Delete all bytes, and begin again at `position`."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._delete(self._bases())
        self._path(position).touch()
        self._changed.set()

    def _delete(self, bases: List[int]) -> None:
        for base in bases:
            with contextlib.suppress(FileNotFoundError):
                self._path(base).unlink()
