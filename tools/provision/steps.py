"""Long steps that show a sign of life, also several at once, and locks that let two set-ups live side by side."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import IO

LAST_LINES = 20
_LAST_BYTES = 4096
_LAST_CHARACTERS = 60


class SetupError(Exception):
    """Set-up cannot continue; the message contains the remedy."""


class Stopped(Exception):
    """Another step failed, or Ctrl-C: there is nothing to add to that."""


_started: dict[subprocess.Popen[bytes], tuple[str, float, Path]] = {}
"""The commands that run now: what they do, since when, and the file with their output."""
_stopped = threading.Event()
_lock = threading.RLock()


def run(
    what: str, command: Sequence[str | Path], log: Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> None:
    """Run `command` with its output in `log`; print the progress, and the last lines if it fails."""
    with log.open("wb") as output:
        with _lock:
            if _stopped.is_set():
                raise Stopped
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                cwd=cwd,
            )
            start = time.monotonic()
            _started[process] = (what, start, log)
        _show(process)
        while not _ended(process):
            _show(process)
    with _lock:
        del _started[process]
    if process.returncode != 0:
        if _stopped.is_set():
            raise Stopped
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-LAST_LINES:])
        raise SetupError(
            f"{what}: `{Path(command[0]).name}` ended with exit code {process.returncode}. "
            f"Its last lines (all of them: {log}):\n{tail}"
        )
    report(f"{what}: done in {time.monotonic() - start:.0f} s")


def side_by_side(*steps: Callable[[], object]) -> None:
    """Take steps at the same time. The first that fails, or Ctrl-C, ends the commands of the others."""
    try:
        with ThreadPoolExecutor(len(steps) or 1) as pool:
            try:
                for step in as_completed([pool.submit(step) for step in steps]):
                    step.result()
            except BaseException:
                _stop()
                raise
    finally:
        _stopped.clear()


def _stop() -> None:
    """End what runs; nothing starts after it."""
    with _lock:
        _stopped.set()
        for process in _started:
            process.send_signal(signal.SIGINT)


def report(text: str) -> None:
    """A whole line, above the one of what runs."""
    with _lock:
        print(f"\r\033[K{text}" if sys.stdout.isatty() else text, flush=True)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold `file` alone, also against other processes; the lock ends with its holder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as handle:
        if not _taken(handle):
            report(f"another set-up is at work (it holds {file}); waiting for it")
            while not _taken(handle):
                if _stopped.wait(0.2):
                    raise Stopped
        yield


def _taken(handle: IO[str]) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(timeout=1 if sys.stdout.isatty() else 10)
    except subprocess.TimeoutExpired:
        return False
    return True


def _last_line(log: Path) -> str:
    """What a command has printed last, such as the package that it downloads; empty before that."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _LAST_BYTES))
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    except OSError:
        return ""
    return f" ({lines[-1][:_LAST_CHARACTERS]})" if lines else ""


def _show(process: subprocess.Popen[bytes]) -> None:
    """One line for all that runs, which renews itself, on a terminal; a line for this process elsewhere."""
    with _lock:
        now = time.monotonic()
        shown = {key: f"{what} … {now - since:.0f} s{_last_line(log)}" for key, (what, since, log) in _started.items()}
        if sys.stdout.isatty():
            print(f"\r\033[K{', '.join(shown.values())[: shutil.get_terminal_size().columns - 1]}", end="", flush=True)
        else:
            print(shown[process].removesuffix(" 0 s"), flush=True)
