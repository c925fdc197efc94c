"""The launcher's side of `tfdeploy dump`: it takes the dump of its program from `/proc`, over about a second, and sends it."""

import json
import os
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Dict, List, Optional

from ..model.settings import TaskSettings
from ..model.task_dump import MAX_BYTES, TaskDump
from ..system.processes import members
from ..wire.rpc import CallError, Client
from .memory import proportional_bytes
from .workdir import STACKS_FILE

if TYPE_CHECKING:
    from .python_stacks import StackReader, Stacks

INTERVAL_SECONDS = 1.0

READINGS, PAUSE_SECONDS = 3, 0.1
"""How often the stacks are read until there are some: py-spy does not always succeed while the program runs."""

_PROC = Path("/proc")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_STATE, _UTIME, _STIME = 0, 11, 12
"""Fields of `stat`, counted from the state."""


class DumpSender:
    """Takes and sends the dump that orders ask for, once, in a thread."""

    def __init__(self, connect: Callable[[], Client], settings: TaskSettings) -> None:
        self._connect, self._settings = connect, settings
        self._number = 0
        self._thread: Optional[threading.Thread] = None

    def follow(self, number: int, group: int) -> None:
        """Send the dump with this number, of the program with this process group; 0 for none."""
        if not number or number == self._number or (self._thread is not None and self._thread.is_alive()):
            return
        self._number = number
        self._thread = threading.Thread(target=self._run, args=(number, group), daemon=True)
        self._thread.start()

    def _run(self, number: int, group: int) -> None:
        hostname = self._settings.hostname
        try:
            dump = take_dump(hostname, group, Path(self._settings.folder)) if group else TaskDump(hostname)
        except Exception as error:  # it may not end the launcher, nor be missing without a reason
            dump = TaskDump(hostname, notes=[f"the launcher could not read /proc: {error!r}"])
        with suppress(OSError, CallError), self._connect() as client:
            client.call("PUT", f"/dump/{hostname}/{number}", encoded(dump))


def encoded(dump: TaskDump) -> bytes:
    """As JSON of at most `MAX_BYTES`: without stacks where it is longer. Pure."""
    content = json.dumps(dump.to_dict()).encode()
    if len(content) <= MAX_BYTES:
        return content
    short = replace(dump, python=[], notes=[*dump.notes, "no Python stack: it is too long"])
    return json.dumps(short.to_dict()).encode()


def take_dump(hostname: str, group: int, folder: Path) -> TaskDump:
    """The dump of the program of this process group. `folder` is the launcher's."""
    from .python_stacks import StackReader  # few launchers need it

    before, begin = members(group), time.monotonic()
    time.sleep(INTERVAL_SECONDS)
    after, interval = members(group), time.monotonic() - begin
    lasting = [pid for pid in after if pid in before]
    leader = _leader(lasting)
    ticks = sum(_ticks(after[pid]) - _ticks(before[pid]) for pid in lasting)
    code = _code_folder(leader, folder / "work")
    stacks = _stacks(leader, after, StackReader(leader, folder / STACKS_FILE, code))
    return TaskDump(
        hostname,
        len(lasting),
        ticks / _TICKS_PER_SECOND / interval,
        sum(map(proportional_bytes, lasting)),
        stacks.threads,
        [f"no Python stack: {stacks.problem}"] if stacks.problem else [],
    )


def _ticks(fields: List[str]) -> int:
    return int(fields[_UTIME]) + int(fields[_STIME])


def _stacks(leader: int, stats: Dict[int, List[str]], reader: "StackReader") -> "Stacks":
    from .python_stacks import Stacks

    if leader not in stats:
        return Stacks([])
    if stats[leader][_STATE] in ("T", "t"):
        return Stacks([], "the process is stopped")
    if not _is_python(leader):
        return Stacks([], "the program is not run by Python")
    stacks = reader.read()
    for _ in range(READINGS - 1):
        if not stacks.threads:
            time.sleep(PAUSE_SECONDS)
            stacks = reader.read()
    return stacks


def _code_folder(pid: int, work: Path) -> str:
    """The folder of the run's code, in which the program was started, although it may be in another one now."""
    with suppress(OSError):
        current = Path(os.readlink(str(_PROC / str(pid) / "cwd")))
        if work in current.parents:
            return str(work / current.relative_to(work).parts[0])
    return str(next(work.glob("*"), work))


def _leader(pids: List[int]) -> int:
    """The process that trains: the first one that Python runs, as a shell may have started it; 0 without processes."""
    return next(filter(_is_python, sorted(pids)), min(pids, default=0))


def _is_python(pid: int) -> bool:
    with suppress(OSError):
        return os.path.basename(os.readlink(str(_PROC / str(pid) / "exe"))).startswith("python")  # noqa: PTH119
    return False
