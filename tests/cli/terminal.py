"""A command in a pseudo-terminal, as a person has it before them."""

import os
import pty
import select
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.waiting import PATIENCE


class Terminal:
    """A command that runs with a terminal of its own."""

    def __init__(self, command: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        self.text = ""
        self.pid, self._file = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], list(command), dict(env))

    def type(self, text: str) -> None:
        """Type this; `\\x03` is Ctrl-C."""
        os.write(self._file, text.encode())

    def until(self, word: str, seconds: float = PATIENCE) -> None:
        """Read on until this has been shown."""
        deadline = time.monotonic() + seconds
        while word not in self.text:
            if time.monotonic() > deadline or not self._read(0.2):
                raise AssertionError(f"{word!r} was not shown within {seconds:g} s:\n{self.text}")

    def end(self, seconds: float = PATIENCE) -> int:
        """Read on until the command has ended; its exit code."""
        deadline = time.monotonic() + seconds
        while self._read(0.2):
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                raise AssertionError(f"it has not ended within {seconds:g} s:\n{self.text}")
        _, status = os.waitpid(self.pid, 0)
        os.close(self._file)
        return os.waitstatus_to_exitcode(status)

    def _read(self, seconds: float) -> bool:
        """Read what is there; whether more may come."""
        if not select.select([self._file], [], [], seconds)[0]:
            return True
        data = b""
        with suppress(OSError):
            data = os.read(self._file, 65536)
        self.text += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)
