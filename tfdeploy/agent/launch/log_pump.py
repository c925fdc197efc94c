"""A program's output on its way from its pipes to the disk. The pipes are always read, whatever the disk does.

A program blocks when its pipes are full. So a disk that is full for a moment must not stop the reading: some bytes wait in memory, and
what is more is dropped and counted.
"""

import contextlib
import os
import selectors
import threading
import time
from typing import IO

from ..record.log_lines import ENTRY_BYTES, PIPES, STDERR, STDOUT, Log, entry
from ..record.log_segments import Stream

_CHUNK = 256 * 1024
_GATHER_SECONDS = 0.005

MAX_PENDING = 4 * 1024 * 1024
"""Bytes of one stream that wait in memory for the disk."""

_RETRY_SECONDS = 0.2
"""The pause before the next write after one that failed."""

STORE_SECONDS = 8.0
"""How long after the program's end the last bytes wait for the disk before they are dropped."""

_COUNT_SECONDS = 60.0
"""While the disk stays full, the count of dropped bytes is published so often."""


class _Writer:
    """Appends to a stream. What the disk does not take waits in memory."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._stored = stream.end
        self._pending = bytearray()

    @property
    def end(self) -> int:
        """The position after the last byte that was added."""
        return self._stored + len(self._pending)

    @property
    def room(self) -> int:
        """How many more bytes may wait."""
        return MAX_PENDING - len(self._pending)

    def add(self, data: bytes) -> bytes:
        """Take these bytes, and return those for which there is no room."""
        room = self.room
        self._pending += data[:room]
        return data[room:]

    def flush(self) -> bool:
        """Write what waits, and return whether all of it is on the disk. A part may have been written when the disk is full."""
        if not self._pending:
            return True
        try:
            end = self._stream.put(self._stored, bytes(self._pending))
        except OSError:
            end = self._stored
            with contextlib.suppress(OSError):
                end = max(end, self._stream.end)
        del self._pending[: end - self._stored]
        self._stored = end
        return not self._pending

    def discard(self) -> bytes:
        """Forget what waits, and return it."""
        data = bytes(self._pending)
        self._pending.clear()
        return data


class Pump:
    """Reads a child's two pipes into the spool until both are closed."""

    def __init__(self, log: Log, stdout: IO[bytes], stderr: IO[bytes], attempt: int) -> None:
        self.dropped = 0
        """How many bytes of output were not stored."""
        """What was not stored. It changes when the disk takes bytes again, at the end, and every minute."""
        self.received = 0
        """How many bytes the child has printed."""
        self._attempt = attempt
        self._pipes = {stdout: STDOUT, stderr: STDERR}
        self._writers = {pipe: _Writer(log.streams[name]) for pipe, name in PIPES.items()}
        self._index = _Writer(log.streams["index"])
        self._count = 0
        self._count_at = 0.0
        self._retry_at = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._read()
        finally:
            for pipe in self._pipes:
                pipe.close()  # whatever went wrong, the program gets an error at its next write, and does not block
        deadline = time.monotonic() + STORE_SECONDS
        while not self._flush() and time.monotonic() < deadline:
            time.sleep(_RETRY_SECONDS)
        for writer in self._writers.values():
            self._drop(writer.discard())
        self.dropped = self._count

    def _read(self) -> None:
        with selectors.DefaultSelector() as selector:
            for pipe in self._pipes:
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, selectors.EVENT_READ)
            while selector.get_map() and not self._stopping.is_set():
                ready = selector.select(timeout=0.5)
                for key, _ in ready:
                    data = os.read(key.fd, _CHUNK)
                    if data:
                        self._take(self._pipes[key.fileobj], data)  # type: ignore[index]
                    else:
                        selector.unregister(key.fileobj)
                self._flush()
                if ready:
                    time.sleep(_GATHER_SECONDS)

    def _take(self, pipe: int, data: bytes) -> None:
        self.received += len(data)
        writer = self._writers[pipe]
        position = writer.end
        if self._index.room < ENTRY_BYTES:
            self._drop(data)
            return
        self._drop(writer.add(data))
        if writer.end > position:
            self._index.add(entry(time.time(), pipe, self._attempt, position, writer.end - position))

    def _flush(self) -> bool:
        """Write what waits; the index last, so that it has no entry for bytes that are missing."""
        now = time.monotonic()
        if now < self._retry_at:
            return False
        unstored = [writer for writer in self._writers.values() if not writer.flush()]
        is_stored = not unstored and self._index.flush()
        self._retry_at = 0.0 if is_stored else now + _RETRY_SECONDS
        if self._count != self.dropped and (is_stored or now >= self._count_at):
            self.dropped, self._count_at = self._count, now + _COUNT_SECONDS
        return is_stored

    def _drop(self, data: bytes) -> None:
        if not data:
            return
        if self._count == self.dropped:
            self._count_at = time.monotonic() + _COUNT_SECONDS
        self._count += len(data)

    def finish(self, seconds: float) -> None:
        """Wait for the pipes to close, at most `seconds`: a grandchild may hold them open for ever. Then wait for the disk."""
        self._thread.join(seconds)
        self._stopping.set()
        self._thread.join(STORE_SECONDS + 1.0)
