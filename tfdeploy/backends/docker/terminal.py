"""This process' own streams, and its terminal where it has one, joined to a command in a container."""

import os
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .streams import STDERR, Stream

_CHUNK = 1 << 16
_SIZE_SECONDS, _PAUSE = 60.0, 0.05


def is_terminal() -> bool:
    """Whether somebody sits at both ends."""
    return os.isatty(0) and os.isatty(1)


def size() -> dict[str, str]:
    """The size of the window, as the agent's `enter` is told it."""
    window = _window()
    return {"TFDEPLOY_LINES": str(window.lines), "TFDEPLOY_COLUMNS": str(window.columns)}


def attach(stream: Stream) -> int:
    """Carry input there and output back, until the command ends; its exit code."""
    threading.Thread(target=_input, args=(stream,), daemon=True).start()
    with _raw(stream):
        kind, data = stream.read()
        while data:
            _write(2 if kind == STDERR else 1, data)
            kind, data = stream.read()
        return stream.code()


def _window() -> os.terminal_size:
    """The window's own size: COLUMNS and LINES, which a shell or a library may have set, are those of some time before."""
    return os.get_terminal_size(0)


def _input(stream: Stream) -> None:
    with suppress(OSError):
        while data := os.read(0, _CHUNK):
            stream.send(data)
        stream.end()


def _write(place: int, data: bytes) -> None:
    while data:
        data = data[os.write(place, data) :]


@contextmanager
def _raw(stream: Stream) -> Iterator[None]:
    """Every key goes there as it is, and there is the size of the window known; as it was, in the end."""
    if not stream.tty:
        yield
        return

    alone = threading.Lock()

    def resize(*_: Any) -> None:
        threading.Thread(target=_size, args=(stream, alone), daemon=True).start()

    before = termios.tcgetattr(0)
    former = signal.signal(signal.SIGWINCH, resize)
    try:
        tty.setraw(0, termios.TCSADRAIN)  # what has been typed already counts
        resize()
        yield
    finally:
        signal.signal(signal.SIGWINCH, former)
        termios.tcsetattr(0, termios.TCSADRAIN, before)
        sys.stdout.flush()


def _size(stream: Stream, alone: threading.Lock) -> None:
    """Have the size of the window known there, again until the engine takes it; who comes last has looked last."""
    with alone:
        deadline = time.monotonic() + _SIZE_SECONDS
        while time.monotonic() < deadline:
            window = _window()
            if stream.resize(window.lines, window.columns):
                return
            time.sleep(_PAUSE)
