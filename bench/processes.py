"""What a benchmark starts, ours and the peer's: each command has a deadline, and fails with its last lines of output."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypeVar

import psutil

from .ending import undisturbed

T = TypeVar("T")

SECONDS = 120.0
"""How long one command may take, by default."""

_LAST_LINES = 30
_PAUSE = 0.01
_CHECK_SECONDS = 1.0


class BenchError(Exception):
    """A row could not be measured; the message has the last lines of what failed."""


class LeftOut(Exception):
    """A row cannot be measured here; the message is the reason, in one line."""


class Watched(Protocol):
    """Something that must not fail while a condition is waited for."""

    def check(self) -> None:
        """Raise BenchError, with the last lines of output, when it has failed."""

    def tail(self) -> str:
        """The last lines of its output."""


class Process:
    """A process with its output in a file, and all that it starts."""

    def __init__(
        self,
        command: Sequence[str],
        output_file: Path,
        folder: Path,
        environment: Mapping[str, str],
        new_session: bool = False,
    ) -> None:
        """Start it in its own process group, so that a terminal's Ctrl-C does not reach it."""
        self._command = command
        self._output_file = output_file
        with output_file.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=None if new_session else 0,
                start_new_session=new_session,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def output(self) -> str:
        """All that it has printed."""
        return self._output_file.read_text(errors="replace")

    def tail(self) -> str:
        """The last lines of its output."""
        return f"`{' '.join(self._command)}` printed at last:\n{last_lines(self.output())}"

    def check(self) -> None:
        """Raise BenchError when it has ended with an error."""
        if code := self._process.poll():
            raise BenchError(failure(self._command, f"exit code {code}", self.output()))

    def finish(self, seconds: float) -> str:
        """Wait for its end; what it printed.

        Raises:
            BenchError: it failed, or did not end within `seconds`.
        """
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise BenchError(failure(self._command, f"not within {seconds:g} s", self.output())) from None
        self.check()
        return self.output()

    def interrupt(self, seconds: float) -> bool:
        """End it as Ctrl-C does, by force after so many seconds; whether it ended by itself."""
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        return True

    def kill(self) -> None:
        """Kill it and all that it started."""
        with suppress(psutil.NoSuchProcess):
            for process in family(self.pid):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        self._process.wait()


def family(pid: int) -> list[psutil.Process]:
    """A process and all that it has started."""
    first = psutil.Process(pid)
    return [first, *first.children(recursive=True)]


def run(
    *command: str,
    seconds: float = SECONDS,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    merged: bool = False,
) -> str:
    """What a command prints on stdout; `merged`, on stderr too.

    Raises:
        BenchError: it failed, or did not end within `seconds`: then it is killed.
    """
    process: subprocess.Popen[str] | None = None
    try:
        with undisturbed():
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if merged else subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        printed, complaints = process.communicate(timeout=seconds)
    except BaseException as error:
        if process is not None:
            with process, suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        if isinstance(error, subprocess.TimeoutExpired):
            raise BenchError(failure(command, f"not within {seconds:g} s", "")) from None
        raise
    if process.returncode:
        raise BenchError(failure(command, f"exit code {process.returncode}", printed + (complaints or "")))
    return printed


def docker(*arguments: str, seconds: float = SECONDS, merged: bool = False) -> str:
    """What a docker command prints, on the engine that DOCKER_HOST names.

    Raises:
        BenchError: it failed, or the engine did not respond within `seconds`.
    """
    return run("docker", *arguments, seconds=seconds, merged=merged).strip()


def failure(command: Sequence[str], end: str, printed: str) -> str:
    """The message of a command that failed: its exit code, or that it was too late."""
    return f"`{' '.join(command)}` ended: {end}; its last lines:\n{last_lines(printed)}"


def last_lines(text: str) -> str:
    """The end of a text, as an error message shows it."""
    return "\n".join(text.splitlines()[-_LAST_LINES:])


def until(condition: Callable[[], T | None], what: str, *watched: Watched, seconds: float = 180.0) -> T:
    """The first true value of `condition`.

    Raises:
        BenchError: something that is watched has failed, or there was no true value within `seconds`.
    """
    deadline = time.monotonic() + seconds
    check = time.monotonic()
    while not (value := condition()):
        if time.monotonic() > check:
            for each in watched:
                each.check()
            check = time.monotonic() + _CHECK_SECONDS
        if time.monotonic() > deadline:
            raise BenchError("\n".join([f"{what}: not within {seconds:g} s", *(each.tail() for each in watched)]))
        time.sleep(_PAUSE)
    return value
