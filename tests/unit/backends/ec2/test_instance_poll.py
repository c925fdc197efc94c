"""What EC2 is asked while machines boot: how often, and what its refusal of a call means."""

import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.backends.ec2.fleets import CLUSTER
from tfdeploy.backends.ec2 import cleanup
from tfdeploy.backends.ec2.aws import api
from tfdeploy.backends.ec2.aws.errors import translated
from tfdeploy.backends.ec2.machine import boot
from tfdeploy.backends.ec2.machine.boot import INTERVAL, LONGEST_INTERVAL, InstancePoll
from tfdeploy.errors import BackendError, SpecError

IDS = [f"i-{number}" for number in range(20)]


def member(instance_id: str = IDS[0]) -> Any:
    return {"machine": "mnist-worker-m0", "instance_id": instance_id, "kind": {}, "generation": "a1"}


@dataclass
class Ec2:
    """EC2 with a clock that a test turns; it counts calls."""

    states: dict[str, str] = field(default_factory=lambda: dict.fromkeys(IDS, "running"))
    text: str = ""
    refusal: str = ""
    described: int = 0
    consoles: int = 0
    terminated: list[str] = field(default_factory=list)
    now: float = 1000.0

    def instance_states(self, region: str, instance_ids: list[str]) -> dict[str, str]:
        self.described += 1
        self._refuse()
        return {name: state for name, state in self.states.items() if name in instance_ids}

    def console(self, region: str, instance_id: str) -> str:
        self.consoles += 1
        self._refuse()
        return self.text

    def _refuse(self) -> None:
        if self.refusal:
            error = ClientError({"Error": {"Code": self.refusal, "Message": "late"}}, "DescribeInstances")
            raise translated(error, "us-west-2")


@pytest.fixture
def ec2(monkeypatch: pytest.MonkeyPatch) -> Ec2:
    found = Ec2()
    monkeypatch.setattr(api, "instance_states", found.instance_states)
    monkeypatch.setattr(api, "console", found.console)
    monkeypatch.setattr(cleanup, "terminate", lambda region, names: found.terminated.extend(names))
    monkeypatch.setattr(time, "monotonic", lambda: found.now)
    return found


def test_twenty_machines_that_boot_for_a_minute_cost_one_call_in_five_seconds(ec2: Ec2) -> None:
    poll = InstancePoll("us-west-2", IDS)
    for second in range(int(boot.LATE_SECONDS)):
        for name in IDS:
            boot.refuse_ended(member(name), poll, second)
        ec2.now += 1
    assert (ec2.described, ec2.consoles) == (boot.LATE_SECONDS / INTERVAL, 0)


def test_the_console_of_a_machine_that_is_late_is_read_now_and_then(ec2: Ec2) -> None:
    poll = InstancePoll("us-west-2", IDS)
    for second in range(30):
        boot.refuse_ended(member(), poll, boot.LATE_SECONDS + 1 + second)
        ec2.now += 1
    assert ec2.consoles == 30 / INTERVAL
    ec2.text = "tfdeploy: boot failed: line 7: mount"
    with pytest.raises(BackendError, match="did not boot: its boot script failed"):
        boot.refuse_ended(member(), poll, boot.LATE_SECONDS + 31)


def test_a_machine_that_has_ended_is_said_at_once_with_its_console(ec2: Ec2) -> None:
    ec2.states[IDS[0]], ec2.text = "terminated", "the last words"
    with pytest.raises(BackendError, match=r"EC2 reports i-0 as terminated(.|\n)*the last words"):
        boot.refuse_ended(member(), InstancePoll("us-west-2", IDS), 1.0)


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "Throttling"])
def test_a_call_that_is_throttled_is_repeated_later_and_later(ec2: Ec2, code: str) -> None:
    poll = InstancePoll("us-west-2", IDS)
    ec2.refusal = code
    asked = []
    for second in range(300):
        before = ec2.described
        assert poll.state(IDS[0]) is None
        boot.refuse_ended(member(), poll, second)
        asked += [second] if ec2.described > before else []
        ec2.now += 1
    assert asked == [0, 10, 30, 70, 130, 190, 250]
    ec2.refusal = ""
    ec2.now += LONGEST_INTERVAL
    assert poll.state(IDS[0]) == "running"


def test_another_error_is_one(ec2: Ec2) -> None:
    ec2.refusal = "InvalidParameterValue"
    with pytest.raises(SpecError, match="InvalidParameterValue"):
        InstancePoll("us-west-2", IDS).state(IDS[0])


@pytest.mark.parametrize(
    ("text", "is_terminated"),
    [("[  0.1] Linux version 6", True), ("tfdeploy: watchdog\ntfdeploy: name", False), ("", False)],
)
def test_a_machine_whose_boot_script_never_ran_is_terminated(ec2: Ec2, text: str, is_terminated: bool) -> None:
    ec2.text = text
    error = boot._late(CLUSTER, member(), "was not ready")
    assert ec2.terminated == (IDS[:1] if is_terminated else [])
    assert ("so it was terminated" in str(error)) == is_terminated
