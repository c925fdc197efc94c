"""A task's address on this computer: each connection to a port of the loopback interface is carried to the task."""

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

from ..errors import BackendError
from .access import Dial, Line

LOOPBACK = "127.0.0.1"
_CHUNK = 1 << 16
_WAITING = 128


class Direct:
    """A connection to where this computer reaches (`access.Line`)."""

    def __init__(self, host: str, port: int) -> None:
        """Connect; where nobody listens, `why` says so."""
        self._socket: socket.socket | None = None
        self._why = ""
        try:
            self._socket = socket.create_connection((host, port))
        except OSError as error:
            self._why = f"{host}:{port}: {error.strerror or error}"

    def send(self, data: bytes) -> None:
        """Send bytes."""
        if self._socket is not None:
            self._socket.sendall(data)

    def end(self) -> None:
        """Say that there is nothing more to send."""
        if self._socket is not None:
            self._socket.shutdown(socket.SHUT_WR)

    def receive(self) -> bytes:
        """The next bytes; none at the end."""
        return self._socket.recv(_CHUNK) if self._socket is not None else b""

    def why(self) -> str:
        """Why there was no connection."""
        return self._why

    def close(self) -> None:
        """End it."""
        if self._socket is not None:
            self._socket.close()


class Forward:
    """A port of this computer that leads to a task, from `open` to `close`; only programs of this computer reach it."""

    def __init__(self, dial: Dial, port: int, complain: Callable[[str], None]) -> None:
        """Listen on a port, 0 for any that is free; what goes wrong with a connection is told to `complain`.

        Raises:
            BackendError: the port is taken.
        """
        self._dial = dial
        self._complain = complain
        try:
            self._listener = socket.create_server((LOOPBACK, port), backlog=_WAITING)
        except OSError as error:
            wrong = f"port {port} of this computer cannot be had ({os.strerror(error.errno or 0)})"
            raise BackendError(f"{wrong}. Choose another, or leave out --port.") from None
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def port(self) -> int:
        """Where it listens."""
        number: int = self._listener.getsockname()[1]
        return number

    def close(self) -> None:
        """Listen no more; connections that stand go on."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        with near:
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                far = self._dial()
            except (BackendError, OSError) as error:
                self._complain(str(error))
                return
            try:
                carry(near, far)
                if far.why():
                    self._complain(far.why())
            finally:
                far.close()


def carry(near: socket.socket, far: Line) -> None:
    """Carry bytes both ways until both sides have ended, each in its own time, or one has gone away."""
    there = threading.Thread(target=_there, args=(near, far), daemon=True)
    there.start()
    with suppress(OSError):
        while data := far.receive():
            near.sendall(data)
        near.shutdown(socket.SHUT_WR)
        there.join()


def _there(near: socket.socket, far: Line) -> None:
    with suppress(OSError):
        while data := near.recv(_CHUNK):
            far.send(data)
    with suppress(OSError):
        far.end()
