"""The terminal of this process, connected to a command that runs elsewhere."""

import os
import signal
import sys
import termios
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from ..agent.system.polling import wait_until

STDOUT, STDERR = 1, 2
_CHUNK = 1 << 16
_RESIZE_TIMEOUT, _RESIZE_PAUSE = 60.0, 0.05


class CommandStream(Protocol):
    """A command that runs elsewhere. Where it relays bytes, it is a `connection.Connection`, and its own words are why that failed."""

    tty: bool
    """Whether it has a terminal."""

    _stderr: bytes = b""

    def send(self, data: bytes) -> None:
        """Send input; OSError when the command does not read it any more."""

    def end(self) -> None:
        """Close the input."""

    def read(self) -> tuple[int, bytes]:
        """The next output, after STDOUT or STDERR; empty at the end. A terminal has only STDOUT."""

    def resize(self, rows: int, columns: int) -> bool:
        """Set the size of the terminal; False when that is refused, as before the command has started."""

    def exit_code(self) -> int:
        """The exit code, once the output has ended. Unreachable: the connection ended before the command."""

    def close(self) -> None:
        """Close the connection."""

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


def attach(stream: CommandStream) -> int:
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


def _forward_input(stream: CommandStream) -> None:
    with suppress(OSError):
        while data := os.read(0, _CHUNK):
            stream.send(data)
        stream.end()


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


@contextmanager
def _raw_terminal(stream: CommandStream) -> Iterator[None]:
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


def _resize(stream: CommandStream, lock: threading.Lock) -> None:
    """Set the size until the engine accepts it. With the lock, the last call sets the newest size."""

    def resized() -> bool:
        size = _terminal_size()
        return stream.resize(size.lines, size.columns)

    with lock:
        wait_until(resized, _RESIZE_TIMEOUT, _RESIZE_PAUSE)
