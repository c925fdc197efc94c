"""The open connections to the controller: how many there may be, and how long a caller without a token may take.

A caller without a token holds no place against one that has one: where there are too many of them, the oldest is closed.
"""

import io
import math
import socket
import threading
import time
from contextlib import suppress
from typing import Any, Dict, Set

MAX_CONNECTIONS = 4096
"""Three for each of 1,000 tasks, and some for users."""

MAX_STRANGERS = 256
"""How many connections may be open that have not shown a token yet."""

STRANGER_SECONDS, IDLE_SECONDS = 10.0, 120.0
"""How long a connection has for its first token, all in all; how long it may be silent after that."""


class Connections:
    """Counts connections, and closes those for which there is no place. Its methods may be called by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._strangers: Dict[Any, None] = {}
        """In the order in which they came."""
        self._callers: Set[Any] = set()

    @property
    def strangers(self) -> int:
        """How many connections have shown no token yet."""
        with self._lock:
            return len(self._strangers)

    def admit(self, connection: Any) -> bool:
        """Take a new connection; False where there is no place."""
        with self._lock:
            if len(self._callers) >= MAX_CONNECTIONS:
                return False
            if len(self._strangers) >= MAX_STRANGERS:
                oldest = next(iter(self._strangers))
                del self._strangers[oldest]
                with suppress(OSError):  # its thread notices it
                    oldest.shutdown(socket.SHUT_RDWR)
            self._strangers[connection] = None
            return True

    def welcome(self, connection: Any) -> bool:
        """A connection has shown a token. False where it was closed before."""
        with self._lock:
            if connection not in self._strangers:
                return False
            del self._strangers[connection]
            self._callers.add(connection)
            return True

    def forget(self, connection: Any) -> None:
        """A connection was closed."""
        with self._lock:
            self._strangers.pop(connection, None)
            self._callers.discard(connection)


class TimedReader(io.RawIOBase):
    """What a connection sends. Without a token it has until a deadline, however often it sends a byte."""

    def __init__(self, connection: Any, seconds: float) -> None:
        self._connection = connection
        self._deadline = time.monotonic() + seconds

    def welcome(self) -> None:
        """The caller has shown a token."""
        self._deadline = math.inf

    def readable(self) -> bool:
        """As of every stream that is read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what has arrived.

        Raises:
            OSError: the time is over, or the connection is broken.
        """
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise socket.timeout("the caller takes too long")
        self._connection.settimeout(min(left, IDLE_SECONDS))
        count: int = self._connection.recv_into(buffer)
        return count
