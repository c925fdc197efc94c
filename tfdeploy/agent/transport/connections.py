"""The open connections to the controller: how many there may be, and how long a caller without a token may take.

A caller without a token holds no place against one that has one: where there are too many, the oldest connection of the address that
has the most of them is closed.
"""

import io
import math
import socket
import threading
import time
from collections import Counter
from contextlib import suppress
from typing import Any, Dict

MAX_CONNECTIONS = 4096
"""Three for each of 1,000 tasks, and some for users."""

MAX_STRANGERS = 256
"""How many connections may be open that have not shown a token yet. So many of all are for users, whatever launchers do."""

MAX_OF_A_TASK = 32
"""How many connections one task may have. Its launcher has a few."""

STRANGER_SECONDS, IDLE_SECONDS = 10.0, 120.0
"""How long a connection has for its first token, all in all; how long it may be silent after that."""


class Connections:
    """Counts connections, and closes those for which there is no place. Its methods may be called by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._strangers: Dict[Any, str] = {}
        self._callers: Dict[Any, str] = {}

    @property
    def strangers(self) -> int:
        """How many connections have shown no token yet."""
        with self._lock:
            return len(self._strangers)

    def admit(self, connection: Any, address: Any) -> bool:
        """Take a new connection from this address; False where there is no place."""
        with self._lock:
            is_full = len(self._strangers) + len(self._callers) >= MAX_CONNECTIONS
            if len(self._strangers) >= MAX_STRANGERS or (is_full and self._strangers):
                self._close_oldest()
            elif is_full:
                return False
            self._strangers[connection] = str(address[0]) if address else ""
            return True

    def _close_oldest(self) -> None:
        crowded = Counter(self._strangers.values()).most_common(1)[0][0]
        oldest = next(connection for connection, address in self._strangers.items() if address == crowded)
        del self._strangers[oldest]
        with suppress(OSError):  # its thread notices it
            oldest.shutdown(socket.SHUT_RDWR)

    def welcome(self, connection: Any, hostname: str, is_user: bool) -> bool:
        """A connection has shown a token: of a user, or of the task `hostname`, which is empty for launchers of version 0.1.0. False
        where it has no place."""
        with self._lock:
            if self._strangers.pop(connection, None) is None:
                return False
            launchers = sum(name != _USER for name in self._callers.values()) if not is_user else 0
            own = sum(name == hostname for name in self._callers.values()) if hostname else 0
            if launchers >= MAX_CONNECTIONS - MAX_STRANGERS or own >= MAX_OF_A_TASK:
                return False
            self._callers[connection] = _USER if is_user else hostname
            return True

    def forget(self, connection: Any) -> None:
        """A connection was closed."""
        with self._lock:
            self._strangers.pop(connection, None)
            self._callers.pop(connection, None)


_USER = "user"
"""No hostname: those end with a number."""


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
