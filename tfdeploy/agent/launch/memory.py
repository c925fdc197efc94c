"""The memory of a program: how much its processes use, and whether the kernel has killed one of them for it."""

import contextlib
import os
import threading
import time
from pathlib import Path
from typing import Callable, Dict, List

_PROC = Path("/proc")
_WATCH_SECONDS = 0.5

_SCAN_SECONDS = 2.0
"""The members of the group are looked up among all processes of the machine so often. Every task of the machine does that."""

_SAME_MOMENT = 2.0
"""A SIGKILL at most so many seconds after a kill by the kernel is that kill."""

_FOLLOWS = 10.0
"""A program that fails at most so many seconds after the kernel has killed one of its processes fails because of that."""


class MemoryWatch:
    """Watches a process group: calls `kill` when it uses more than its limit, and notes the kernel's kills."""

    def __init__(self, group: int, limit: int, kill: Callable[[], None]) -> None:
        """`limit` is in bytes; 0 for none."""
        self._group = group
        self._limit = limit
        self._kill = kill
        self._is_over = False
        self._kills = kernel_kills()
        self._killed_at = float("-inf")
        self._members: List[int] = [group]
        self._scan_at = 0.0
        self._ended = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self._ended.wait(_WATCH_SECONDS):
            self.note_kernel_kills()
            if self._limit and self._is_above_limit():
                self._is_over = True
                self._kill()
                return

    def _is_above_limit(self) -> bool:
        if time.monotonic() >= self._scan_at:
            self._members = group_members(self._group)
            self._scan_at = time.monotonic() + _SCAN_SECONDS
        return use_more_than(self._limit, self._members)

    def note_kernel_kills(self) -> None:
        """Note when the kernel has killed a process."""
        kills = kernel_kills()
        if kills > self._kills:
            self._kills, self._killed_at = kills, time.monotonic()

    def is_out_of_memory(self, code: int) -> bool:
        """Whether the program has ended with this code, negative for a signal, for lack of memory. The watch is over then."""
        self._ended.set()
        self.note_kernel_kills()
        since = time.monotonic() - self._killed_at
        by_kernel = since < _SAME_MOMENT if code < 0 else code > 0 and since < _FOLLOWS
        return self._is_over or by_kernel


def kernel_kills() -> int:
    """How often the kernel's out-of-memory killer has acted in this control group (version 2, then 1)."""
    for place in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        with contextlib.suppress(OSError, ValueError):
            for line in Path(place).read_text().splitlines():
                name, _, value = line.partition(" ")
                if name == "oom_kill":
                    return int(value)
    return 0


def group_members(group: int) -> List[int]:
    """The processes of a group. It takes one system call for each process of the machine, and reads no file."""
    pids = [int(path.name) for path in _PROC.iterdir() if path.name.isdigit()]
    return [pid for pid in pids if _group(pid) == group]


def use_more_than(limit: int, pids: List[int]) -> bool:
    """Whether processes use more than `limit` bytes. A page that they share counts once.

    Their resident sizes are cheap to read, but such a page is in each of them. So the proportional sizes are read where the sum of
    the resident ones is above the limit.
    """
    return sum(map(resident_bytes, pids)) > limit and sum(map(proportional_bytes, pids)) > limit


def _group(pid: int) -> int:
    """A process' group; 0 when it has ended."""
    with contextlib.suppress(OSError):
        return os.getpgid(pid)
    return 0


def resident_bytes(pid: int) -> int:
    """The resident set size of a process; 0 when it has ended."""
    with contextlib.suppress(OSError, IndexError):
        return int((_PROC / str(pid) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def proportional_bytes(pid: int) -> int:
    """The proportional set size in bytes; the resident size where it cannot be read."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        text = (_PROC / str(pid) / "smaps_rollup").read_text()
        values: Dict[str, str] = dict(line.split(":", 1) for line in text.splitlines() if line.count(":") == 1)
        return int(values["Pss"].split()[0]) * 1024
    return resident_bytes(pid)
