"""Whether a program still does anything after the success of its run.

It is quiet while its processes use almost no processor time, read and write almost nothing, have no data waiting in their connections,
do not wait for a disk, and print nothing, and while none of them begins or ends. What cannot be read counts as activity.
"""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Callable, Dict, FrozenSet, List, NamedTuple, Optional, Set

_PROC = Path("/proc")

MAX_PROCESSOR = 0.02
"""A quiet program uses at most this part of one processor, and a tick. A server of TensorFlow that waits uses 0.5 %."""

MAX_BYTES = 64 * 1024
"""A quiet program reads and writes at most so many bytes a second."""

_ESTABLISHED = "01"
"""The state of an open connection in `/proc/net/tcp`."""


class Sample(NamedTuple):
    """What the processes of a program had done at one moment."""

    at: float
    pids: FrozenSet[int]
    seconds: float
    """Of processor time."""
    transferred: int
    """The bytes that they have read and written."""
    printed: int
    """The bytes that the program has printed."""
    is_waiting: bool = False
    """Whether one of them waits for a disk, or has data in a connection that was not sent or read."""


def is_active(before: Sample, now: Sample) -> bool:
    """Whether the program has done anything between two samples. Pure."""
    elapsed = now.at - before.at
    has_changed = (now.pids, now.printed) != (before.pids, before.printed)
    used, transferred = now.seconds - before.seconds, now.transferred - before.transferred
    return (
        has_changed
        or now.is_waiting
        or used > MAX_PROCESSOR * elapsed + 1.0 / _ticks_per_second()
        or transferred > MAX_BYTES * elapsed
    )


class Activity:
    """Observes the processes of one program, from the first call on."""

    def __init__(self, group: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`group` is the process group of the program, and the id of its first process."""
        self._group = group
        self._clock = clock
        self._last: Optional[Sample] = None
        self._active_at = 0.0

    def quiet_seconds(self, printed: int) -> float:
        """For how long the program has been quiet. `printed` is how many bytes it has printed so far."""
        now = self._clock()
        sample = None
        with suppress(OSError, ValueError, IndexError):
            sample = _sample(self._group, now, printed)
        if sample is None or self._last is None or is_active(self._last, sample):
            self._active_at = now
        self._last = sample
        return now - self._active_at


def _sample(group: int, at: float, printed: int) -> Sample:
    stats = members(group)
    if not stats:
        raise ValueError(f"group {group} has no process")
    ticks = sum(int(value) for fields in stats.values() for value in fields[11:15])
    pids = frozenset(stats)
    waits = any(_waits_for_disk(pid) for pid in pids) or _has_data(pids)
    return Sample(at, pids, ticks / _ticks_per_second(), sum(map(transferred, pids)), printed, waits)


def members(group: int) -> Dict[int, List[str]]:
    """The processes of the group, and their descendants in other groups, with the fields of `stat` from the state on."""
    stats = process_stats()
    members = {pid for pid, fields in stats.items() if pid == group or int(fields[2]) == group}
    while True:
        more = {pid for pid, fields in stats.items() if int(fields[1]) in members} - members
        if not more:
            return {pid: stats[pid] for pid in members}
        members |= more


def process_stats() -> Dict[int, List[str]]:
    """All processes of the machine, with the fields of `stat` from the state on."""
    stats: Dict[int, List[str]] = {}
    for path in _PROC.iterdir():
        if path.name.isdigit():
            with suppress(OSError):
                stats[int(path.name)] = (path / "stat").read_text().rpartition(")")[2].split()
    return stats


def _waits_for_disk(pid: int) -> bool:
    """Whether a thread of the process is in the state of uninterruptible sleep."""
    threads = (_PROC / str(pid) / "task").iterdir()
    return any((thread / "stat").read_text().rpartition(")")[2].split()[0] == "D" for thread in threads)


def transferred(pid: int) -> int:
    """The bytes that a process has read and written.

    Raises:
        OSError, ValueError, KeyError: that cannot be read.
    """
    lines = (_PROC / str(pid) / "io").read_text().splitlines()
    values = dict(line.split(": ", 1) for line in lines)
    return int(values["rchar"]) + int(values["wchar"])


def _has_data(pids: FrozenSet[int]) -> bool:
    """Whether a TCP connection of one of the processes has data that was not sent, or not read."""
    sockets: Set[str] = set()
    for pid in pids:
        for path in (_PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                sockets.add(os.readlink(str(path)))
    for table in ("tcp", "tcp6"):
        for line in (_PROC / str(next(iter(pids))) / "net" / table).read_text().splitlines()[1:]:
            fields = line.split()
            is_queued = fields[3] == _ESTABLISHED and fields[4] != "00000000:00000000"
            if is_queued and f"socket:[{fields[9]}]" in sockets:
                return True
    return False


def _ticks_per_second() -> int:
    return os.sysconf("SC_CLK_TCK")
