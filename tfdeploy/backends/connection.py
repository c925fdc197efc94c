"""Connections to tasks, whatever they lead through."""

import socket
from collections.abc import Callable
from typing import Protocol


class Connection(Protocol):
    """One connection to a task."""

    def send(self, data: bytes) -> None:
        """Send bytes; OSError when the other side no longer reads."""

    def end(self) -> None:
        """Close this side's direction; the other direction stays open."""

    def receive(self) -> bytes:
        """The next bytes; none at the end."""

    def why(self) -> str:
        """Why there was no connection; known at the end, empty where there was one."""

    def close(self) -> None:
        """Close it in both directions."""


Connect = Callable[[], Connection]
"""Opens a new connection."""


class SocketConnection:
    """A connection over a socket; without one, `why` returns the reason."""

    def __init__(self, near: socket.socket | None, reason: str = "", chunk_bytes: int = 1 << 16) -> None:
        self._socket, self._reason, self._chunk_bytes = near, reason, chunk_bytes

    def send(self, data: bytes) -> None:
        """Send bytes."""
        if self._socket is not None:
            self._socket.sendall(data)

    def end(self) -> None:
        """Close this side's direction."""
        if self._socket is not None:
            self._socket.shutdown(socket.SHUT_WR)

    def receive(self) -> bytes:
        """The next bytes; none at the end."""
        return self._socket.recv(self._chunk_bytes) if self._socket is not None else b""

    def why(self) -> str:
        """Why there was no connection."""
        return self._reason

    def close(self) -> None:
        """Close it."""
        if self._socket is not None:
            self._socket.close()
