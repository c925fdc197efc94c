"""The agent's file server in a thread of this process, for files of this computer."""

import socket
import threading
from contextlib import suppress
from pathlib import Path

from ..agent.user_files.file_server import CHUNK_BYTES, serve_files


class ThreadConnection:
    """A connection to a file server of this process (`connection.Connection`)."""

    def __init__(self, folder: Path) -> None:
        """Start it; `folder` is the launcher's, where it is about a task."""
        self._socket, server = socket.socketpair()
        for end in (self._socket, server):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, CHUNK_BYTES)
        threading.Thread(target=_serve, args=(folder, server), daemon=True).start()

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self._socket.sendall(data)

    def end(self) -> None:
        """Close the sending half."""
        self._socket.shutdown(socket.SHUT_WR)

    def receive(self) -> bytes:
        """The next bytes; empty at the end."""
        return self._socket.recv(CHUNK_BYTES)

    def why(self) -> str:
        """There is always a connection."""
        return ""

    def close(self) -> None:
        """Close the connection, which ends the thread."""
        self._socket.close()


def _serve(folder: Path, server: socket.socket) -> None:
    # Closing the responses sends what is left of them, also where the client has closed the connection.
    with suppress(OSError), server, server.makefile("rb") as requests, server.makefile("wb") as responses:
        serve_files(folder, requests, responses)
