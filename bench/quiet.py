"""The processor time that everything else on the machine takes, and the wait until that is little.

The load average would not do: what a row itself has run remains in it for minutes.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import psutil

from .pairs import log

QUIET = 0.15
"""How many cores others may use: an idle machine with a Docker engine uses a few hundredths of one."""

LONGEST = 60.0
"""How many seconds a row waits for that."""

_SAMPLE = 2.0


class Usage(NamedTuple):
    """Seconds since some moment: by the clock, and of processor time of all processes but this one."""

    clock: float
    processor: float


def usage() -> Usage:
    """Now. It contains processes that end before they are looked at, interrupts, and what the hypervisor gave to others."""
    total, own = psutil.cpu_times(), psutil.Process().cpu_times()
    idle = ("idle", "iowait", "guest", "guest_nice")  # a guest's time is in `user` too
    busy = sum(seconds for name, seconds in total._asdict().items() if name not in idle)
    return Usage(time.monotonic(), busy - own.user - own.system)


def other_work(read: Callable[[], Usage] = usage, sleep: Callable[[float], None] = time.sleep) -> float:
    """How many cores other processes use, over two seconds."""
    before = read()
    sleep(_SAMPLE)
    after = read()
    return max(0.0, (after.processor - before.processor) / (after.clock - before.clock))


def wait_for_quiet(measure: Callable[[], float] = other_work, clock: Callable[[], float] = time.monotonic) -> float:
    """Wait until other processes use almost nothing, at most for a minute; how many cores they use then."""
    deadline = clock() + LONGEST
    waits = False
    while (cores := measure()) > QUIET and clock() < deadline:
        if not waits:
            log(f"other processes use {cores:.2f} cores: waiting for up to {LONGEST:.0f} s")
        waits = True
    if cores > QUIET:
        log(f"measured beside {cores:.2f} cores of other work: the values will scatter")
    return cores
