"""A command in a container, with its standard streams over one connection to the engine.

The connection is not opened by the SDK, which may lose the first bytes of the output, and cannot close the input over TLS.
The format: https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Container/operation/ContainerAttach.
"""

import io
import json
import os
import signal
import socket
import struct
import sys
import termios
import threading
import tty
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, cast

from docker.errors import APIError, NotFound

from ....agent.polling import wait_until
from ....errors import Unreachable
from .engine import Engine, engine_errors

STDOUT, STDERR = 1, 2
_CHUNK = 1 << 16
_HEADER = struct.Struct(">BxxxL")
_UPGRADED = (101, 200)
_EXIT_TIMEOUT, _EXIT_POLL = 30.0, 0.02
_RESIZE_TIMEOUT, _RESIZE_PAUSE = 60.0, 0.05


class ExecStream:
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


class ExecConnection(ExecStream):
    """A connection to a task through a container in the task's network (`connection.Connection`)."""

    _stderr = b""

    def receive(self) -> bytes:
        """The next bytes; empty at the end."""
        while True:
            kind, data = self.read()
            if kind == STDOUT or not data:
                return data
            self._stderr = (self._stderr + data)[-_CHUNK:]

    def why(self) -> str:
        """Why the connection failed; empty when it did not."""
        return self._stderr.decode("utf-8", "replace").strip()


def is_terminal() -> bool:
    """Whether standard input and output are a terminal."""
    return os.isatty(0) and os.isatty(1)


def terminal_size_env() -> dict[str, str]:
    """The size of the terminal in the variables that the agent's `exec` reads."""
    size = _terminal_size()
    return {"TFDEPLOY_LINES": str(size.lines), "TFDEPLOY_COLUMNS": str(size.columns)}


def attach(stream: ExecStream) -> int:
    """Connect the command to this process's standard streams until it ends; its exit code."""
    threading.Thread(target=_forward_input, args=(stream,), daemon=True).start()
    with _raw_terminal(stream):
        kind, data = stream.read()
        while data:
            _write(2 if kind == STDERR else 1, data)
            kind, data = stream.read()
        return stream.exit_code()


def _terminal_size() -> os.terminal_size:
    """Asked of the terminal: COLUMNS and LINES, set by a shell or a library, may be out of date."""
    return os.get_terminal_size(0)


def _forward_input(stream: ExecStream) -> None:
    with suppress(OSError):
        while data := os.read(0, _CHUNK):
            stream.send(data)
        stream.end()


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


@contextmanager
def _raw_terminal(stream: ExecStream) -> Iterator[None]:
    """Send every key to the command, and keep the size of its terminal equal to ours; restore ours at the end."""
    if not stream.tty:
        yield
        return

    lock = threading.Lock()

    def resize(*_: Any) -> None:
        threading.Thread(target=_resize, args=(stream, lock), daemon=True).start()

    settings = termios.tcgetattr(0)
    handler = signal.signal(signal.SIGWINCH, resize)
    try:
        tty.setraw(0, termios.TCSADRAIN)  # does not discard what has been typed
        resize()
        yield
    finally:
        signal.signal(signal.SIGWINCH, handler)
        termios.tcsetattr(0, termios.TCSADRAIN, settings)
        sys.stdout.flush()


def _resize(stream: ExecStream, lock: threading.Lock) -> None:
    """Set the size until the engine accepts it. With the lock, the last call sets the newest size."""

    def resized() -> bool:
        size = _terminal_size()
        return stream.resize(size.lines, size.columns)

    with lock:
        wait_until(resized, _RESIZE_TIMEOUT, _RESIZE_PAUSE)
