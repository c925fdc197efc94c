"""The lease of a launcher, where `container.lease` sets one: how long its program may run while the controller does not respond.

A task is then moved off a machine that does not respond when the lease has ended, so that two launchers never run the same task. A
machine that its hypervisor freezes is the gap that remains: its clocks stop too.
"""

import threading
import time
from typing import Callable

_CHECK_SECONDS = 0.5

_WAKE_SECONDS = 6.0
"""After the machine was suspended, the launcher has this long to reach its controller. It is a little more than one call takes."""

SAVE_SECONDS = 10.0
"""The program gets SIGTERM so long before the lease ends, or `grace` seconds before where that is less."""


def boot_seconds() -> float:
    """Seconds since the machine was started, those included in which it was suspended; no clock setting changes it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Lease:
    """Calls `kill` once when the controller was not reached for so long."""

    def __init__(self, seconds: float, kill: Callable[[], None]) -> None:
        """`seconds` is the lease; 0 for none."""
        self._seconds = seconds
        self._kill = kill
        self._renewed = boot_seconds()
        self._wake_until = 0.0
        if seconds:
            threading.Thread(target=self._watch, daemon=True).start()

    def renew(self, at: float) -> None:
        """The controller has responded to a call that began at `at` (`boot_seconds`)."""
        self._renewed = max(self._renewed, at)

    def is_ending(self, grace: float) -> bool:
        """Whether the program must stop now to have ended with the lease."""
        return bool(self._seconds) and self._left() <= min(grace, SAVE_SECONDS, self._seconds / 2)

    def _left(self) -> float:
        return self._renewed + self._seconds - boot_seconds()

    def _watch(self) -> None:
        before, suspended = boot_seconds(), boot_seconds() - time.monotonic()
        while True:
            time.sleep(_CHECK_SECONDS)
            now = boot_seconds()
            if now - time.monotonic() - suspended > _CHECK_SECONDS and now > before:
                self._wake_until = now + _WAKE_SECONDS
            before, suspended = now, now - time.monotonic()
            if self._left() <= 0 and now >= self._wake_until:
                self._kill()
