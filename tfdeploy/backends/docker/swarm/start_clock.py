"""The timeout for the start of a container. The time in which the engine pulls the image does not count: it may take an hour."""

import time
from collections.abc import Callable

from ....agent.polling import wait_until
from ....errors import BackendError
from ...base import EngineTask

PULLING, STARTING = "pulling", "starting"
_POLL_SECONDS = 0.05
_LONGEST_PAUSE = 1.0


class StartClock:
    """Measures how long one container takes to start, and prints once that its image is pulled."""

    def __init__(self, hostname: str, seconds: float, most: float = 0.0) -> None:
        """`seconds` without progress are too long; `most` seconds are too long in any case, but not those of a pull."""
        self._hostname, self._seconds = hostname, seconds
        now = time.monotonic()
        self._deadline, self._last = now + seconds, now + (most or seconds)
        self._seen = now
        self._is_printed = False

    def observe(self, task: EngineTask | None) -> None:
        """Note the state that the engine reports of the container."""
        now = time.monotonic()
        if task is not None and task.state == PULLING:
            self._last += now - self._seen
            self._print()
        if task is not None and task.state in (PULLING, STARTING):
            self._deadline = min(self._last, now + self._seconds)
        self._seen = now

    def is_over(self) -> bool:
        """Whether it takes too long."""
        return time.monotonic() >= self._deadline

    def _print(self) -> None:
        if not self._is_printed:
            self._is_printed = True
            print(f"{self._hostname}: the machine pulls the image", flush=True)


def wait_for_start(
    hostname: str, has_started: Callable[[], bool], observe: Callable[[], EngineTask | None], seconds: float
) -> None:
    """Wait until a container has started.

    Raises:
        BackendError: it has not within so many seconds, without those in which its image was pulled.
    """
    clock = StartClock(hostname, seconds)

    def is_decided() -> bool:
        try:
            if has_started():
                return True
            clock.observe(observe())
        except OSError:
            pass
        return clock.is_over()

    wait_until(is_decided, float("inf"), _POLL_SECONDS, _LONGEST_PAUSE)
    if clock.is_over() and not has_started():
        raise BackendError(f"{hostname} did not start within {seconds:g} s")
