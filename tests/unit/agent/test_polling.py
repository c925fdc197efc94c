"""Polling: at least one call, and an end."""

import pytest

from tfdeploy.agent.system import polling
from tfdeploy.agent.system.polling import Backoff, wait_until


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        monkeypatch.setattr(f"{polling.__name__}.time.monotonic", lambda: self.now)
        monkeypatch.setattr(f"{polling.__name__}.time.sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_the_value_of_the_condition_is_returned(clock: Clock) -> None:
    assert wait_until(lambda: "ready" if clock.now >= 1 else "", 5.0, 0.5) == "ready"
    assert clock.pauses == [0.5, 0.5]


def test_without_time_the_condition_is_checked_once(clock: Clock) -> None:
    assert wait_until(lambda: False, 0.0) is False
    assert clock.pauses == []


def test_the_last_check_is_at_the_deadline(clock: Clock) -> None:
    assert wait_until(lambda: clock.now >= 1.0, 1.0, 0.75)
    assert clock.pauses == [0.75, 0.25]


def test_after_a_slow_check_the_pause_is_as_long(clock: Clock) -> None:
    def slow() -> bool:
        clock.now += 2.0
        return False

    assert not wait_until(slow, 6.0, 0.1, longest=1.0)
    assert clock.pauses == [1.0, 1.0]


def test_each_failure_doubles_the_time_until_the_next_try_up_to_the_longest(clock: Clock) -> None:
    backoff = Backoff(0.5, 3.0)
    waits = []
    for _ in range(5):
        waits.append(backoff.seconds)
        backoff.fail()
    assert waits == [0.0, 0.5, 1.0, 2.0, 3.0]
    clock.now += 2.0
    assert backoff.seconds == 1.0
    backoff.reset()
    assert (backoff.seconds, backoff.failures) == (0.0, 0)
