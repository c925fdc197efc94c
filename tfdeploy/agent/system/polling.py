"""Polling for a condition, trying again, and the clock that does not stop."""

import socket
import time
from typing import Callable, TypeVar

T = TypeVar("T")

DEFAULT_PAUSE = 0.05

_QUIET_FAILURES = 3
"""So many failures of the network in a row are not reported."""


def boot_seconds() -> float:
    """Seconds since the machine was started, those included in which it was suspended; no clock setting changes it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def wait_until(condition: Callable[[], T], seconds: float, pause: float = DEFAULT_PAUSE, longest: float = 0.0) -> T:
    """Call `condition` until it returns a true value or `seconds` have passed; return its last value.

    It is called at least once, and once more at the deadline. Between two calls is a pause of `pause` seconds, or, where
    `longest` is greater, as long as the call itself took, up to `longest`: a slow call does not keep its target busy.
    """
    deadline = time.monotonic() + seconds
    while True:
        begin = time.monotonic()
        value = condition()
        now = time.monotonic()
        if value or now >= deadline:
            return value
        time.sleep(min(pause_after(now - begin, pause, longest), max(0.0, deadline - now)))


def pause_after(seconds: float, shortest: float, longest: float) -> float:
    """The pause after a call that took so many seconds: as long, but not shorter than `shortest`, nor, where it is greater, longer than
    `longest`."""
    return max(shortest, min(seconds, longest))


class Backoff:
    """When something that has failed is tried again: the pause doubles with each failure."""

    def __init__(self, first: float = 0.5, longest: float = 30.0) -> None:
        """`first` and `longest` are the seconds of the first and of the longest pause."""
        self._first, self._longest = first, longest
        self._due = 0.0
        self.failures = 0

    @property
    def seconds(self) -> float:
        """Seconds until the next try; 0 when it is due."""
        return max(0.0, self._due - time.monotonic())

    def fail(self) -> None:
        """Note a failure."""
        self._due = time.monotonic() + min(self._first * 2.0 ** min(self.failures, 30), self._longest)
        self.failures += 1

    def fail_by(self, action: str, error: Exception) -> str:
        """Note a failure; the sentence about it, which is empty while the network fails only for a moment."""
        self.fail()
        is_network = isinstance(error, (ConnectionError, socket.timeout))
        return "" if is_network and self.failures <= _QUIET_FAILURES else f"{action}: {error}"

    def reset(self) -> None:
        """Note a success: the next try is due."""
        self._due, self.failures = 0.0, 0
