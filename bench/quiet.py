"""The wait until everything else on the machine takes little processor time.

The load average would not do: what a row itself has run remains in it for minutes.
"""

import time

import psutil

from .pairs import log

QUIET = 0.15
"""How many cores others may use: an idle machine with a Docker engine uses a few hundredths of one."""

LONGEST = 60.0
"""How many seconds a row waits for that."""


def wait_for_quiet() -> float:
    """Wait until other processes use almost nothing, at most for a minute; how many cores they use then."""
    deadline = time.monotonic() + LONGEST
    while (cores := psutil.cpu_percent(2.0) / 100 * (psutil.cpu_count() or 1)) > QUIET:
        if time.monotonic() > deadline:
            log(f"measured beside {cores:.2f} cores of other work: the values will scatter")
            break
    return round(cores, 2)
