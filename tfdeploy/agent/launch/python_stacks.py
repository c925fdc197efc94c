"""The Python stacks of a running process: by py-spy, else by `faulthandler` where the program has agreed to it.

A program agrees by `faulthandler.register(signal.SIGUSR2, open(os.environ["TFDEPLOY_STACKS"], "w"))`. The signal is sent only to a
process that has this very file open and catches the signal: it ends any other. Both ways leave the process running.
"""

import json
import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import List, NamedTuple

from ..model.task_dump import PythonThread
from ..system.polling import wait_until

SIGNAL = signal.SIGUSR2

MAX_THREADS, MAX_FRAMES, _MAX_FRAME = 24, 30, 160
_MAX_FILE = 1 << 18
_SPY_SECONDS, _WRITE_SECONDS, _POLL_SECONDS = 5.0, 1.0, 0.02

_PROC = Path("/proc")
_HEADING = re.compile(r"(?:Current thread|Thread) 0x[0-9a-f]+(?: \[(.*)\])? \(most recent call first\):")
_FRAME = re.compile(r'  File "(.*)", line (\d+|\?\?\?) in (.*)')


class Stacks(NamedTuple):
    """The threads of a process, the main thread first; and why there are none."""

    threads: List[PythonThread]
    problem: str = ""


class StackReader:
    """Reads the stacks of one process."""

    def __init__(self, pid: int, file: Path, folder: str) -> None:
        """`file` is the one that the program got the path of; paths of frames are relative to `folder` where they are in it."""
        self._pid, self._file, self._folder = pid, file, folder
        self._spy = shutil.which("py-spy")
        self._can_signal = _has_agreed(pid, file)

    def read(self) -> Stacks:
        """The stacks of this moment."""
        if self._can_signal:
            return self._by_signal()
        if self._spy is None:
            return Stacks([], "py-spy is not installed in the task, and the program has not registered faulthandler")
        return self._by_spy(self._spy)

    def _by_spy(self, command: str) -> Stacks:
        words = [command, "dump", "--nonblocking", "--json", "--pid", str(self._pid)]
        try:
            result = subprocess.run(words, capture_output=True, timeout=_SPY_SECONDS, check=False)
            if result.returncode == 0:
                return Stacks(threads_of_spy(result.stdout, self._folder))
            problem = result.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no reason"]
        except (OSError, ValueError, KeyError, TypeError, subprocess.TimeoutExpired) as error:
            problem = [str(error)]
        return Stacks([], f"py-spy failed: {problem[0][:_MAX_FRAME]}")

    def _by_signal(self) -> Stacks:
        """Have faulthandler write, from its signal handler, which needs no lock of Python."""
        if not _has_agreed(self._pid, self._file):
            return Stacks([], "the program no longer writes its stacks")
        try:
            begin = self._file.stat().st_size
            if begin > _MAX_FILE:
                os.truncate(str(self._file), 0)
            os.kill(self._pid, SIGNAL)
            texts: List[str] = []

            def has_written() -> bool:
                text = _read(self._file, begin)
                is_whole = bool(text) and texts[-1:] == [text]
                texts.append(text)
                return is_whole

            wait_until(has_written, _WRITE_SECONDS, _POLL_SECONDS)
        except OSError as error:
            return Stacks([], f"the program's stacks cannot be read: {error.strerror}")
        threads = threads_of_faulthandler(texts[-1], self._folder)
        return Stacks(threads, "" if threads else "the program did not write its stacks within a second")


def _read(file: Path, begin: int) -> str:
    """What was written after `begin`, where the program continues although the file was truncated, unless it appends."""
    with file.open("rb") as opened:
        opened.seek(begin if file.stat().st_size > begin else 0)
        return opened.read(_MAX_FILE).decode(errors="replace")


def _has_agreed(pid: int, file: Path) -> bool:
    """Whether a process catches the signal and has the file open."""
    process = _PROC / str(pid)
    with suppress(OSError, ValueError, KeyError):
        lines = (process / "status").read_text().splitlines()
        caught = int(dict(line.split(":", 1) for line in lines)["SigCgt"], 16)
        if caught >> (SIGNAL - 1) & 1:
            return any(_is_same(path, file) for path in (process / "fd").iterdir())
    return False


def _is_same(descriptor: Path, file: Path) -> bool:
    with suppress(OSError):
        return os.path.samestat(descriptor.stat(), file.stat())
    return False


def threads_of_faulthandler(text: str, folder: str) -> List[PythonThread]:
    """The threads of a dump by faulthandler, which has the main thread last. Pure."""
    threads: List[PythonThread] = []
    for line in text.splitlines():
        heading, frame = _HEADING.fullmatch(line), _FRAME.fullmatch(line)
        if heading:
            threads.append(PythonThread(heading[1] or ""))
        elif frame and threads:
            threads[-1].frames.append(_frame(frame[1], frame[2], frame[3], folder))
    return _limited(threads[-1:] + threads[:-1])


def threads_of_spy(content: bytes, folder: str) -> List[PythonThread]:
    """The threads of `py-spy dump --json`. Pure.

    Raises:
        ValueError, KeyError, TypeError: it is something else.
    """
    threads = [
        PythonThread(
            thread.get("thread_name") or "",
            [_frame(frame["filename"], str(frame["line"]), frame["name"], folder) for frame in thread["frames"]],
        )
        for thread in json.loads(content)
    ]
    return _limited(sorted(threads, key=lambda thread: thread.name != "MainThread"))


def _frame(path: str, line: str, function: str, folder: str) -> str:
    path = path[len(folder) + 1 :] if path.startswith(f"{folder}/") else path
    return f"{path[-_MAX_FRAME:]}:{line} in {function[:_MAX_FRAME]}"


def _limited(threads: List[PythonThread]) -> List[PythonThread]:
    return [PythonThread(thread.name[:_MAX_FRAME], thread.frames[:MAX_FRAMES]) for thread in threads[:MAX_THREADS]]
