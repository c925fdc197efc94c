"""A command in a container, with its standard streams over one connection to the engine.

The connection is opened here, not by the SDK: that may lose the first bytes of an answer, and cannot end the input over TLS.
https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Container/operation/ContainerAttach has the form of the bytes.
"""

import io
import json
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from docker.errors import APIError, NotFound

from ...errors import Unreachable
from .engine import Engine, refusals

STDOUT, STDERR = 1, 2
_CHUNK = 1 << 16
_HEADER = struct.Struct(">BxxxL")
_SWITCHED = (101, 200)
_END_SECONDS, _POLL_SECONDS = 30.0, 0.02


class Stream:
    """One command that runs in a container."""

    def __init__(
        self,
        engine: Engine,
        container: str,
        command: Sequence[str],
        env: Mapping[str, str] = {},
        tty: bool = False,
        seconds: float | None = None,
    ) -> None:
        """Start it; it has input, unless it may say nothing for so many `seconds` only.

        Raises:
            Unreachable: the engine does not answer.
            BackendError: it will not.
        """
        self._engine, self.tty = engine, tty
        options = {"stdin": seconds is None, "tty": tty, "environment": dict(env)}
        with refusals(f"the container {container[:12]}"):
            self._id = engine.call(lambda api: api.exec_create(container, list(command), **options))["Id"]
        self._socket = engine.connection(seconds)
        try:
            self._reader = cast(io.BufferedReader, self._socket.makefile("rb", _CHUNK))
            self._start(json.dumps({"Detach": False, "Tty": tty}).encode())
        except (OSError, ValueError) as error:
            self.close()
            raise Unreachable(f"the Docker engine at {engine.host} does not answer ({error})") from None
        self._left = 0
        self._kind = STDOUT

    def _start(self, body: bytes) -> None:
        head = (
            f"POST /exec/{self._id}/start HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._socket.sendall(head.encode() + body)
        status = self._reader.readline().decode("latin-1")
        while self._reader.readline().strip():
            pass
        if int((status.split() or ["", "0"])[1]) not in _SWITCHED:
            raise ConnectionError(status.strip() or "it closed the connection")

    def send(self, data: bytes) -> None:
        """More input; OSError when nobody takes it any more."""
        self._socket.sendall(data)

    def end(self) -> None:
        """End the input."""
        self._socket.shutdown(socket.SHUT_WR)

    def read(self) -> tuple[int, bytes]:
        """The next output, and whether it is STDOUT or STDERR; no bytes at the end. A terminal has only one."""
        if self.tty:
            return STDOUT, self._reader.read1(_CHUNK)
        if not self._left:
            header = self._reader.read(_HEADER.size)
            if len(header) < _HEADER.size:
                return STDOUT, b""
            self._kind, self._left = _HEADER.unpack(header)
        data = self._reader.read1(min(self._left, _CHUNK))
        self._left -= len(data)
        return self._kind, data

    def resize(self, rows: int, columns: int) -> bool:
        """The terminal has another size now; False where the engine does not take it, as it does before the command has started."""
        try:
            self._engine.call(lambda api: api.exec_resize(self._id, rows, columns))
        except (APIError, Unreachable):
            return False
        return True

    def code(self) -> int:
        """The exit code, once its output has ended.

        Raises:
            Unreachable: its container, or the connection, ended before it did.
        """
        deadline = time.monotonic() + _END_SECONDS
        while time.monotonic() < deadline:
            try:
                seen: dict[str, Any] = self._engine.call(lambda api: api.exec_inspect(self._id))
            except NotFound:
                break
            if not seen["Running"] and seen["ExitCode"] is not None:
                return int(seen["ExitCode"])
            time.sleep(_POLL_SECONDS)
        raise Unreachable("the connection to the command ended before the command did")

    def close(self) -> None:
        """End the connection."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class Relayed:
    """A connection to a task through a container that is in its network (`access.Line`)."""

    def __init__(self, engine: Engine, container: str, command: Sequence[str]) -> None:
        """Have the container connect."""
        self._stream = Stream(engine, container, command)
        self._said = b""

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self._stream.send(data)

    def end(self) -> None:
        """Say that there is nothing more to send."""
        self._stream.end()

    def receive(self) -> bytes:
        """The next bytes; none at the end."""
        while True:
            kind, data = self._stream.read()
            if kind == STDOUT or not data:
                return data
            self._said += data

    def why(self) -> str:
        """Why there was no connection."""
        return self._said.decode("utf-8", "replace").strip()

    def close(self) -> None:
        """End it."""
        self._stream.close()
