"""Connections to tasks, whatever they lead through."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from ..errors import Unreachable

_FILE_CHUNK_BYTES = 1 << 20


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
    """A connection over a socket."""

    def __init__(self, near: socket.socket, chunk_bytes: int = 1 << 16) -> None:
        self._socket, self._chunk_bytes = near, chunk_bytes

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self._socket.sendall(data)

    def end(self) -> None:
        """Close this side's direction."""
        self._socket.shutdown(socket.SHUT_WR)

    def receive(self) -> bytes:
        """The next bytes; none at the end."""
        return self._socket.recv(self._chunk_bytes)

    def why(self) -> str:
        """Nothing: there is a connection."""
        return ""

    def close(self) -> None:
        """Close it."""
        self._socket.close()


def direct(host: str, port: int) -> SocketConnection:
    """A connection to an address that this computer reaches itself; raises Unreachable where nothing listens there."""
    try:
        return SocketConnection(socket.create_connection((host, port)))
    except OSError as error:
        raise Unreachable(f"{host}:{port}: {error.strerror or error}") from None


class LocalFiles(SocketConnection):
    """A connection that brings the archive of a path of this computer."""

    def __init__(self, folder: Path, base: str, path: str) -> None:
        """Begin to send it; `folder` is the launcher's, where it is about a task."""
        near, far = socket.socketpair()
        threading.Thread(target=_send, args=(folder, base, path, far), daemon=True).start()
        super().__init__(near, chunk_bytes=_FILE_CHUNK_BYTES)


def _send(folder: Path, base: str, path: str, far: socket.socket) -> None:
    from ..agent.launch.copy_archive import send_archive  # takes long to load

    with suppress(OSError), far, far.makefile("wb") as stream:  # the client may close the connection
        send_archive(folder, base, path, stream)
