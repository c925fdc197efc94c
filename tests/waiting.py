"""Waiting for a condition, with a deadline: the only way in which tests wait."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 240.0
"""Seconds until a test gives up: on two cores that three processes of tests share all takes ten times as long as alone, and a
deadline that is met costs nothing."""

SHORTEST, LONGEST, PAUSES = 0.05, 2.0, 4
"""Seconds between two looks: so many times as long as a look took, so that looking leaves the machine to what is waited for."""


def until(
    condition: Callable[[], T | None], what: str, seconds: float = PATIENCE, seen: Callable[[], object] | None = None
) -> T:
    """The first true value of `condition`; fails the test when there is none within `seconds`, and says what was `seen` then."""
    deadline = time.monotonic() + seconds
    while True:
        begun = time.monotonic()
        value = condition()
        if value:
            return value
        now = time.monotonic()
        if now > deadline:
            raise AssertionError(f"{what}: not within {seconds:g} s{f', but: {seen()}' if seen else ''}")
        time.sleep(min(max(SHORTEST, PAUSES * (now - begun)), LONGEST))
