"""A program's output on its way from its pipes to the disk. The pipes are always read, whatever the disk does.

A program blocks when its pipes are full. So a disk that is full for a moment must not stop the reading: some bytes wait in memory, and
what is more is dropped and counted.
"""

import os
import selectors
import threading
import time
from functools import lru_cache
from typing import IO

from ..record.output import Spool
from ..record.output_lines import PART_SECONDS, STDERR, STDOUT, Encoder, printed_bytes
from ..system.polling import boot_seconds

_CHUNK = 256 * 1024
_GATHER_SECONDS = 0.005

MAX_PENDING = 4 * 1024 * 1024
"""Bytes of the record that wait in memory for the disk."""

_RETRY_SECONDS = 0.2
"""The pause before the next write after one that failed."""

STORE_SECONDS = 8.0
"""How long after the program's end the last bytes wait for the disk before they are dropped."""

_COUNT_SECONDS = 60.0
"""While the disk stays full, the count of dropped bytes is published so often."""


@lru_cache(maxsize=None)
def _boot() -> float:
    return time.time() - boot_seconds()


def now() -> float:
    """The time of a line, in seconds since 1970. Within a launcher it never steps."""
    return _boot() + boot_seconds()


class Pump:
    """Reads a child's two pipes into the spool until both are closed."""

    def __init__(self, spool: Spool, stdout: IO[bytes], stderr: IO[bytes], attempt: int) -> None:
        self.dropped = 0
        """How many bytes of output were not stored. It changes when the disk takes bytes again, at the end, and every minute."""
        self._spool = spool
        self._encoders = {stdout: Encoder(STDOUT, attempt), stderr: Encoder(STDERR, attempt)}
        self._pending = bytearray()
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
            for pipe in self._encoders:
                pipe.close()  # whatever went wrong, the program gets an error at its next write, and does not block
        for encoder in self._encoders.values():
            self._add(encoder.rest())
        deadline = time.monotonic() + STORE_SECONDS
        while not self._flush() and time.monotonic() < deadline:
            time.sleep(_RETRY_SECONDS)
        if self._pending:
            self._drop(self._spool.cut() + self._pending)
        self.dropped = self._count

    def _read(self) -> None:
        with selectors.DefaultSelector() as selector:
            for pipe, encoder in self._encoders.items():
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, selectors.EVENT_READ, encoder)
            is_waiting = False
            while selector.get_map() and not self._stopping.is_set():
                ready = selector.select(timeout=PART_SECONDS / 2 if is_waiting else 0.5)
                for key, _ in ready:
                    data = os.read(key.fd, _CHUNK)
                    if data:
                        self._add(key.data.add(data, now()))
                    else:
                        selector.unregister(key.fileobj)
                for encoder in self._encoders.values():
                    self._add(encoder.rest(now()))
                is_waiting = any(encoder.is_waiting for encoder in self._encoders.values())
                self._flush()
                if ready:
                    time.sleep(_GATHER_SECONDS)

    def _add(self, lines: bytes) -> None:
        """Lines that are to be stored; those for which there is no room are dropped."""
        room = MAX_PENDING - len(self._pending)
        kept = lines if len(lines) <= room else lines[: lines.rfind(b"\n", 0, max(0, room)) + 1]
        self._pending += kept
        self._drop(lines[len(kept) :])

    def _flush(self) -> bool:
        """Write what waits, and return whether all of it is on the disk. A part may have been written when the disk is full."""
        at = time.monotonic()
        if at < self._retry_at:
            return False
        if self._pending:
            del self._pending[: self._spool.write(bytes(self._pending))]
        is_stored = not self._pending
        self._retry_at = 0.0 if is_stored else at + _RETRY_SECONDS
        if self._count != self.dropped and (is_stored or at >= self._count_at):
            self.dropped, self._count_at = self._count, at + _COUNT_SECONDS
        return is_stored

    def _drop(self, lines: bytes) -> None:
        count = printed_bytes(lines) if lines else 0
        if count and self._count == self.dropped:
            self._count_at = time.monotonic() + _COUNT_SECONDS
        self._count += count

    def finish(self, seconds: float) -> None:
        """Wait for the pipes to close, at most `seconds`: a grandchild may hold them open for ever. Then wait for the disk."""
        self._thread.join(seconds)
        self._stopping.set()
        self._thread.join(STORE_SECONDS + 1.0)
