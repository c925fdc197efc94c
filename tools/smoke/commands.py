"""Runs the commands of the smoke test, and ends them well when it is interrupted."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from tools.smoke.findings import Step

_PATIENCE_SECONDS = 120.0
"""How long an interrupted command may take to end by itself."""
_AFTER_KILL_SECONDS = 10.0


class Commands:
    """The commands that were run in a folder, with their output."""

    def __init__(self, folder: Path, environment: Mapping[str, str], patience: float = _PATIENCE_SECONDS) -> None:
        self._folder = folder
        self._environment = {**os.environ, **environment}
        self._patience = patience
        self.steps: list[Step] = []

    def run(self, *command: str, shown: bool = True) -> Step:
        """Run a command, and print its output. Ctrl-C reaches it too, and is raised when it has ended."""
        if shown:
            print_if_possible(f"\n$ {' '.join(command)}")
        begun = time.monotonic()
        lines: list[str] = []
        arrived: list[int] = []
        with ExitStack() as start:
            # A signal that arrives while the command is being started is handled when it can be ended.
            start.enter_context(_handlers(lambda number, _frame: arrived.append(number)))
            process = self._start(command)
            reader = threading.Thread(target=_read, args=(process, lines, shown), daemon=True)
            reader.start()
            try:
                start.close()
                for number in arrived:
                    signal.raise_signal(number)
                process.wait()
            except KeyboardInterrupt:
                with uninterruptible(f"`{' '.join(command[:2])}` is ending. Please wait."):
                    process.send_signal(signal.SIGINT)
                    self._end(process, reader)
                raise
            finally:
                exit_code = self._end(process, reader)
                self.steps.append(Step(" ".join(command), time.monotonic() - begun, exit_code, "".join(lines)))
        return self.steps[-1]

    def _start(self, command: Sequence[str]) -> "subprocess.Popen[str]":
        """Start it in another session: Ctrl-C reaches it only from here."""
        return subprocess.Popen(
            command,
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def _end(self, process: "subprocess.Popen[str]", reader: threading.Thread) -> int:
        """Wait for the command and for its output, which its children may hold open; kill what takes too long."""
        deadline = time.monotonic() + self._patience
        with suppress(subprocess.TimeoutExpired):
            process.wait(self._patience)
        reader.join(max(0.0, deadline - time.monotonic()))
        if process.returncode is None or reader.is_alive():
            _kill_session(process.pid)
            reader.join(_AFTER_KILL_SECONDS)
        return process.wait()


def print_if_possible(text: str, end: str = "\n") -> None:
    """Print where that is possible: a closed terminal or pipe must not keep the cluster from being destroyed."""
    with suppress(OSError, RuntimeError):  # RuntimeError: a signal handler prints while its program does.
        print(text, end=end, flush=True)


def _read(process: "subprocess.Popen[str]", lines: list[str], shown: bool) -> None:
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            lines.append(line)
            if shown:
                print_if_possible(line, end="")


def _kill_session(session: int) -> None:
    """Kill the processes of a session. Each of Pulumi's plugins has its own process group."""
    with suppress(OSError):
        listing = subprocess.run(["ps", "-A", "-o", "pid="], capture_output=True, text=True, check=False).stdout
        for number in map(int, listing.split()):
            with suppress(OSError):
                if os.getsid(number) == session:
                    os.kill(number, signal.SIGKILL)
    with suppress(OSError):
        os.killpg(session, signal.SIGKILL)


@contextmanager
def interruptible() -> Iterator[None]:
    """Have SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt, as Ctrl-C does."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handlers(interrupt):
        yield


@contextmanager
def uninterruptible(message: str) -> Iterator[None]:
    """Respond to signals with a message alone."""

    def refuse(_number: int, _frame: FrameType | None) -> None:
        print_if_possible(message)

    with _handlers(refuse):
        yield


@contextmanager
def _handlers(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Have another handler of SIGINT, SIGTERM and SIGHUP."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    _set(dict.fromkeys(before, handler))
    try:
        yield
    finally:
        _set(before)


def _set(handlers: Mapping[signal.Signals, Any]) -> None:
    """Set handlers, all before one of them is called."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, handlers)
    try:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
