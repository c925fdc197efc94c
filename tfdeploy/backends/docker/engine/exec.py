"""A command in a container, with its standard streams over one connection to the engine.

The connection is not opened by the SDK, which may lose the first bytes of the output, and cannot close the input over TLS.
The format: https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Container/operation/ContainerAttach.
"""

import io
import json
import socket
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from docker.errors import APIError, NotFound

from ....agent.system.polling import wait_until
from ....errors import Unreachable
from ...terminal import STDOUT, CommandStream
from .engine import Engine, engine_errors

_CHUNK = 1 << 16
_HEADER = struct.Struct(">BxxxL")
_UPGRADED = (101, 200)
_EXIT_TIMEOUT, _EXIT_POLL = 30.0, 0.02


class ExecStream(CommandStream):
    """One command that runs in a container."""

    def __init__(
        self,
        engine: Engine,
        container: str,
        command: Sequence[str],
        env: Mapping[str, str] = {},
        tty: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Start the command. A `timeout` limits the time between two parts of its output, and of each part of its input.

        Raises:
            Unreachable: the engine does not respond.
            BackendError: the engine refuses the command.
        """
        self._engine, self.tty = engine, tty
        options = {"stdin": True, "tty": tty, "environment": dict(env)}
        with engine_errors(f"the container {container[:12]}"):
            self._id = engine.call(lambda api: api.exec_create(container, list(command), **options))["Id"]
        self._socket = engine.open_socket(timeout)
        try:
            self._reader = cast(io.BufferedReader, self._socket.makefile("rb", _CHUNK))
            self._start(json.dumps({"Detach": False, "Tty": tty}).encode())
        except (OSError, ValueError) as error:
            self.close()
            raise Unreachable(f"the Docker engine at {engine.host} does not respond ({error})") from None
        self._left_in_frame = 0
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
        if int((status.split() or ["", "0"])[1]) not in _UPGRADED:
            raise ConnectionError(status.strip() or "it closed the connection")

    def send(self, data: bytes | memoryview) -> None:
        """Send input; OSError when the command does not read it any more."""
        self._socket.sendall(data)

    def end(self) -> None:
        """Close the input."""
        self._socket.shutdown(socket.SHUT_WR)

    def read(self) -> tuple[int, bytes]:
        """The next output, after STDOUT or STDERR; empty at the end. A terminal has only STDOUT."""
        if self.tty:
            return STDOUT, self._reader.read1(_CHUNK)
        if not self._left_in_frame:
            header = self._reader.read(_HEADER.size)
            if len(header) < _HEADER.size:
                return STDOUT, b""
            self._kind, self._left_in_frame = _HEADER.unpack(header)
        data = self._reader.read1(min(self._left_in_frame, _CHUNK))
        self._left_in_frame -= len(data)
        return self._kind, data

    def resize(self, rows: int, columns: int) -> bool:
        """Set the size of the terminal; False when the engine refuses it, as it does before the command has started."""
        try:
            self._engine.call(lambda api: api.exec_resize(self._id, rows, columns))
        except (APIError, Unreachable):
            return False
        return True

    def exit_code(self) -> int:
        """The exit code, once the output has ended. The connection is closed first, so that the call takes its place.

        Raises:
            Unreachable: the container or the connection ended before the command.
        """
        self._reader.close()  # the socket stays open as long as its file is
        self.close()
        try:
            state = wait_until(self._final_state, _EXIT_TIMEOUT, _EXIT_POLL)
        except NotFound:
            state = None
        if state is None:
            raise Unreachable("the connection to the command ended before the command did")
        return int(state["ExitCode"])

    def _final_state(self) -> dict[str, Any] | None:
        state: dict[str, Any] = self._engine.call(lambda api: api.exec_inspect(self._id))
        return state if not state["Running"] and state["ExitCode"] is not None else None

    def close(self) -> None:
        """Close the connection."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
