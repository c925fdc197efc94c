"""The clocks of the controller."""

import time
from typing import Callable

from ..system.polling import boot_seconds

_STEP_SECONDS = 1.0
"""A smaller change of the clock is not corrected."""

PAUSE_SECONDS = 5.0
"""A controller ticks each second, or more often. One that has not for so long has not heard its launchers, either."""


class Clock:
    """The wall clock, by how much it was set, and for how long the controller stood still."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = boot_seconds) -> None:
        self._wall = wall
        self.steady = steady
        self._offset = wall() - steady()
        self._asked = steady()

    def read(self) -> float:
        """The time, in seconds since 1970."""
        return self._wall()

    def step(self) -> float:
        """By how many seconds the clock was set since the last call; 0 where it only runs a little fast or slow."""
        offset = self._wall() - self.steady()
        moved, self._offset = offset - self._offset, offset
        return moved if abs(moved) > _STEP_SECONDS else 0.0

    def pause(self) -> float:
        """Seconds since the last call, where a controller that runs takes less: it was stopped, its disk did not respond, or
        its machine was suspended. Else 0."""
        before, self._asked = self._asked, self.steady()
        return self._asked - before if self._asked - before > PAUSE_SECONDS else 0.0
