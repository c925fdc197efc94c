"""Files of this computer, sent in the same way as those of a task in a container."""

import socket
import threading
from contextlib import suppress
from pathlib import Path

from ..agent.launch.archive import send_archive
from .connection import SocketConnection

_CHUNK_BYTES = 1 << 20


class LocalFiles(SocketConnection):
    """A connection that brings the archive of a path of this computer."""

    def __init__(self, folder: Path, base: str, path: str) -> None:
        """Begin to send it; `folder` is the launcher's, where it is about a task."""
        near, far = socket.socketpair()
        threading.Thread(target=_send, args=(folder, base, path, far), daemon=True).start()
        super().__init__(near, chunk_bytes=_CHUNK_BYTES)


def _send(folder: Path, base: str, path: str, far: socket.socket) -> None:
    with suppress(OSError), far, far.makefile("wb") as stream:  # the client may close the connection
        send_archive(folder, base, path, stream)
