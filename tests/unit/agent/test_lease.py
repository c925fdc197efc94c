"""When a launcher whose controller does not respond stops its program, and when it kills it."""

import threading

import pytest

from tfdeploy.agent.launch import lease
from tfdeploy.agent.launch.lease import Lease


class _Killed(Exception):
    """The program is killed, or the test has seen enough."""


class Machine:
    """A machine whose clocks only waiting moves; it may be suspended while a program waits."""

    CLOCK_BOOTTIME = 0

    def __init__(self) -> None:
        self.awake, self.suspended, self.suspend_at = 1_000.0, 0.0, 0.0

    def monotonic(self) -> float:
        return self.awake

    def clock_gettime(self, _: int) -> float:
        return self.awake + self.suspended

    def sleep(self, seconds: float) -> None:
        self.awake += seconds
        if self.awake == self.suspend_at:
            self.suspended += 3_600


def kill() -> None:
    raise _Killed


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(lease, "time", made)
    monkeypatch.setattr(threading.Thread, "start", lambda _: None)
    return made


@pytest.mark.parametrize(
    ("seconds", "grace", "left"), [(120.0, 60.0, 10.0), (120.0, 4.0, 4.0), (12.0, 60.0, 6.0), (0.0, 60.0, None)]
)
def test_the_program_is_stopped_ten_seconds_before_the_end_or_its_grace_or_half_the_lease(
    machine: Machine, seconds: float, grace: float, left: float | None
) -> None:
    made = Lease(seconds, kill)
    made.renew(machine.awake - 50)  # an earlier call shortens nothing
    machine.awake += seconds - (left or 0) - 0.25
    assert not made.is_ending(grace)
    machine.awake += 0.25
    assert made.is_ending(grace) == (left is not None)
    made.renew(machine.awake)
    assert not made.is_ending(grace)


@pytest.mark.parametrize(("suspend_at", "after"), [(0.0, 120.0), (1_050.0, 56.0), (1_119.5, 125.5)])
def test_the_program_is_killed_with_the_lease_or_six_seconds_after_the_machine_was_suspended(
    machine: Machine, suspend_at: float, after: float
) -> None:
    machine.suspend_at = suspend_at
    with pytest.raises(_Killed):
        Lease(120.0, kill)._watch()
    assert machine.awake - 1_000 == after
