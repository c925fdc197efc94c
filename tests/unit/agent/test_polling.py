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


@pytest.mark.parametrize(
    ("true_from", "seconds", "pauses"), [(1.0, 5.0, [0.5, 0.5]), (9.0, 0.0, []), (0.75, 0.75, [0.5, 0.25])]
)
def test_a_condition_is_checked_at_least_once_and_last_at_the_deadline(
    clock: Clock, true_from: float, seconds: float, pauses: list[float]
) -> None:
    value = wait_until(lambda: "ready" if clock.now >= true_from else "", seconds, 0.5)
    assert (value, clock.pauses) == ("ready" if true_from <= seconds else "", pauses)


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
