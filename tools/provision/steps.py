"""Long steps that show a sign of life, and locks that let two set-ups live side by side."""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

LAST_LINES = 20


class SetupError(Exception):
    """Set-up cannot continue; the message contains the remedy."""


def run(
    what: str,
    command: Sequence[str | Path],
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> None:
    """Run `command` with its output in `log`; print the progress, and the last lines if it fails."""
    start = time.monotonic()
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            cwd=cwd,
        ) as process,
    ):
        _show(f"{what} …")
        while not _ended(process):
            _show(f"{what} … {time.monotonic() - start:.0f} s")
    if process.returncode != 0:
        _end_line()
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-LAST_LINES:])
        raise SetupError(
            f"{what}: `{Path(command[0]).name}` ended with exit code {process.returncode}. "
            f"Its last lines (all of them: {log}):\n{tail}"
        )
    _show(f"{what}: done in {time.monotonic() - start:.0f} s")
    _end_line()


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold `file` alone, also against other processes; the lock ends with its holder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another set-up is at work (it holds {file}); waiting for it", flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(timeout=1 if sys.stdout.isatty() else 10)
    except subprocess.TimeoutExpired:
        return False
    return True


def _show(text: str) -> None:
    """One line that renews itself on a terminal; a line each elsewhere."""
    if sys.stdout.isatty():
        print(f"\r\033[K{text}", end="", flush=True)
    else:
        print(text, flush=True)


def _end_line() -> None:
    if sys.stdout.isatty():
        print(flush=True)
