"""Machines that boot: what EC2 is asked meanwhile, how often in a row a boot failed, and when no further one is made."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.unit.backends.conftest import Clock
from tests.unit.backends.ec2.fleets import CLUSTER, PAIR, PS, WORKER, facts, spec
from tests.unit.cases import inventory
from tfdeploy.backends.ec2 import cleanup
from tfdeploy.backends.ec2.aws import api
from tfdeploy.backends.ec2.machine import boot, machines, model, ssh
from tfdeploy.backends.ec2.machine.boot import INTERVAL, InstancePoll
from tfdeploy.backends.ec2.machine.machines import _lines
from tfdeploy.backends.ec2.machine.model import BootFailure, MachineState
from tfdeploy.backends.ec2.machine.user_data import READY
from tfdeploy.backends.ec2.validate import refuse_failed_boots
from tfdeploy.errors import BackendError, SpecError
from tfdeploy.plan.plan import Plan, make_plan

KIND = "m7i.large, ami-0c, subnet-0a"
FIRST = BootFailure("i-0a", KIND, "did not boot: its boot script failed", "  line 7: mount")
SECOND, THIRD = replace(FIRST, instance_id="i-0b"), replace(FIRST, instance_id="i-0c", reason="did not boot: lost")


def in_a_row(*failed: BootFailure) -> BootFailure:
    found = None
    for one in failed:
        found = one.following(found)
    assert found
    return found


@pytest.mark.parametrize(
    ("failed", "times"),
    [
        ([FIRST], 1),
        ([FIRST, SECOND], 2),
        ([FIRST, SECOND, THIRD], 3),
        # A machine that is looked at twice has failed once.
        ([FIRST, FIRST, FIRST], 1),
        ([FIRST, SECOND, SECOND], 2),
        ([FIRST, SECOND, replace(THIRD, kind="m7i.large, ami-0c, subnet-0b")], 1),
    ],
)
def test_failures_of_the_same_kind_are_counted_in_a_row(failed: list[BootFailure], times: int) -> None:
    assert in_a_row(*failed) == replace(failed[-1], times=times)


def test_what_failed_is_remembered_until_the_machine_is_ready_or_the_cluster_goes() -> None:
    assert boot.read_failures(CLUSTER) == {}
    boot._remove_failure(CLUSTER, "mnist-ps-m0")
    boot.forget_failures(CLUSTER)
    for failed in (FIRST, SECOND):
        boot._add_failure(CLUSTER, "mnist-ps-m0", failed)
    boot._add_failure(CLUSTER, "mnist-worker-m0", FIRST)
    assert boot.read_failures(CLUSTER) == {"mnist-ps-m0": in_a_row(FIRST, SECOND), "mnist-worker-m0": FIRST}
    assert ssh.folder(CLUSTER).stat().st_mode & 0o777 == 0o700
    boot._remove_failure(CLUSTER, "mnist-ps-m0")
    assert boot.read_failures(CLUSTER) == {"mnist-worker-m0": FIRST}
    boot.forget_failures(CLUSTER)
    assert boot.read_failures(CLUSTER) == {}


FAILED = BootFailure("i-mnist-worker-m0", KIND, "did not boot", "", 2)


def after_failures(*there: MachineState, failed: BootFailure = FAILED, **args: Any) -> Plan:
    asked = spec(**PAIR, **args)
    known = replace(facts(*there), failures={"mnist-worker-m0": failed})
    return make_plan(asked, inventory(asked, *machines.plan_machines(asked, known), train_dir="/tfdeploy/train"))


def told(made: Plan) -> list[str]:
    return [line for one in made.machines for line in _lines(made, one)]


def test_a_machine_whose_boot_failed_is_made_anew() -> None:
    made = after_failures(PS, WORKER)
    anew = "mnist-worker-m0: will be replaced (its boot failed (2 of 3))"
    assert told(made) == [f"{anew}; tasks that restart: worker-0"]
    assert not model.ec2_machine(made.machines[1]).can_stay
    (line,) = told(after_failures(PS))
    assert line.startswith("mnist-worker-m0: will be created again (its boot failed (2 of 3)): m7i.large, ")
    assert told(after_failures(PS, replace(WORKER, instance_id="i-another"))) == []


def refused_failing(made: Plan, failed: BootFailure) -> str:
    """The refusal; empty where there is none."""
    try:
        refuse_failed_boots(spec(**PAIR), made, {"mnist-worker-m0": failed})
    except SpecError as error:
        return str(error)
    return ""


def test_a_refusal_has_the_last_failure_and_the_end_of_the_console() -> None:
    thrice = replace(FAILED, times=3, reason="did not boot: lost", console="  line 7: mount")
    assert refused_failing(after_failures(PS, failed=thrice), thrice) == (
        "mnist: ec2.instance_type: mnist-worker-m0 failed to boot 3 times in a row (m7i.large, ami-0c, subnet-0a): "
        "did not boot: lost. Choose another ami, instance_type or subnet_id, "
        "or run `pulumi destroy` to start over. "
        "The end of its console:\n  line 7: mount"
    )


def test_a_machine_is_given_up_only_where_it_would_be_made_once_more() -> None:
    thrice = replace(FAILED, times=3)
    for there in ((PS, WORKER), (PS,)):
        assert refused_failing(after_failures(*there, failed=thrice), thrice)
        assert not refused_failing(after_failures(*there), FAILED)
    assert not refused_failing(after_failures(PS, replace(WORKER, instance_id="i-another"), failed=thrice), thrice)
    assert not refused_failing(after_failures(PS, failed=thrice, ec2={"ami": "ami-0f"}), thrice)
    over = replace(after_failures(PS, failed=thrice), unneeded=frozenset({"mnist-worker-m0"}))
    assert not refused_failing(over, thrice)


MEMBER: boot.Member = {
    "machine": "mnist-worker-m0",
    "instance_id": "i-0a",
    "address": "198.51.100.7",
    "private_ip": "172.31.0.9",
    "is_manager": False,
    "kind": KIND,
    "labels": {},
}


def boots(console: str, stood: set[str]) -> str:
    """What is said of a machine that is not ready in time."""
    with pytest.raises(BackendError) as error, boot.stored_failure(CLUSTER, MEMBER, stood):
        raise boot.failure_of(MEMBER, "was not ready: ssh timed out", console)
    return str(error.value)


def test_a_boot_that_fails_is_remembered_with_the_end_of_the_console() -> None:
    for console, stood in ((f"booting\n{READY}\n", set[str]()), ("booting", {"i-0a"})):  # it has booted before
        assert "was not ready: ssh timed out" in boots(console, stood)
        assert boot.read_failures(CLUSTER) == {}
    begin = "mnist-worker-m0 was not ready: ssh timed out. The end of its console:\n  15\n"
    assert boots("\n".join(map(str, range(40))), set()).startswith(begin)
    tail = "\n".join(f"  {number}" for number in range(15, 40))
    kept = BootFailure("i-0a", KIND, "was not ready: ssh timed out", tail)
    assert boot.read_failures(CLUSTER) == {"mnist-worker-m0": kept}


IDS = [f"i-{number}" for number in range(20)]
LATE: Any = {"machine": "mnist-worker-m0", "instance_id": IDS[0], "kind": {}}


@dataclass
class Ec2:
    """EC2, which counts calls."""

    states: dict[str, str] = field(default_factory=lambda: dict.fromkeys(IDS, "running"))
    text: str = ""
    described: int = 0
    consoles: int = 0
    terminated: list[str] = field(default_factory=list)

    def instance_states(self, region: str, instance_ids: list[str]) -> dict[str, str]:
        self.described += 1
        return {name: state for name, state in self.states.items() if name in instance_ids}

    def console(self, region: str, instance_id: str) -> str:
        self.consoles += 1
        return self.text


@pytest.fixture
def ec2(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Ec2:
    found = Ec2()
    monkeypatch.setattr(api, "instance_states", found.instance_states)
    monkeypatch.setattr(api, "console", found.console)
    monkeypatch.setattr(cleanup, "terminate", lambda region, names: found.terminated.extend(names))
    return found


def test_twenty_machines_that_boot_for_a_minute_cost_one_call_in_five_seconds(ec2: Ec2, clock: Clock) -> None:
    poll = InstancePoll("us-west-2", IDS)
    for second in range(int(boot.LATE_SECONDS)):
        for name in IDS:
            boot.refuse_ended(LATE | {"instance_id": name}, poll, second)
        clock.now += 1
    assert (ec2.described, ec2.consoles) == (boot.LATE_SECONDS / INTERVAL, 0)


def test_the_console_of_a_machine_that_is_late_is_read_now_and_then(ec2: Ec2, clock: Clock) -> None:
    poll = InstancePoll("us-west-2", IDS)
    for second in range(30):
        boot.refuse_ended(LATE, poll, boot.LATE_SECONDS + 1 + second)
        clock.now += 1
    assert ec2.consoles == 30 / INTERVAL
    ec2.text = "tfdeploy: boot failed: line 7: mount"
    with pytest.raises(BackendError, match="did not boot: its boot script failed"):
        boot.refuse_ended(LATE, poll, boot.LATE_SECONDS + 31)


def test_a_machine_that_has_ended_is_said_at_once_with_its_console_and_one_that_is_still_unknown_is_gone(
    ec2: Ec2,
) -> None:
    ec2.states[IDS[0]], ec2.text = "terminated", "the last words"
    with pytest.raises(BackendError, match=r"EC2 reports i-0 as terminated(.|\n)*the last words"):
        boot.refuse_ended(LATE, InstancePoll("us-west-2", IDS), 1.0)
    del ec2.states[IDS[0]]
    with pytest.raises(BackendError, match="EC2 reports i-0 as gone"):
        boot.refuse_ended(LATE, InstancePoll("us-west-2", IDS), boot.UNKNOWN_SECONDS + 1)


@pytest.mark.parametrize(
    ("text", "is_terminated"),
    [("[  0.1] Linux version 6", True), ("tfdeploy: watchdog\ntfdeploy: name", False), ("", False)],
)
def test_a_machine_whose_boot_script_never_ran_is_terminated(ec2: Ec2, text: str, is_terminated: bool) -> None:
    ec2.text = text
    error = boot._late(CLUSTER, LATE, "was not ready")
    assert ec2.terminated == (IDS[:1] if is_terminated else [])
    assert ("so it was terminated" in str(error)) == is_terminated


READERS: dict[str, Callable[[Any], Any]] = {"machines.json": ssh.read, "failures/m0.json": boot.read_failures}


@pytest.mark.parametrize("text", ["", "[1]", '"text"', '{"machine": {"life": 1}}', '{"hosts": {"m0": {"life": 1}}}'])
@pytest.mark.parametrize("name", READERS)
def test_it_is_refused_by_its_name(name: str, text: str) -> None:
    file = ssh.folder(CLUSTER) / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(SpecError, match="Destroy the cluster with that version, or delete the file") as error:
        READERS[name](CLUSTER)
    assert error.value.where == str(file)
    assert error.value.wrong == "cannot be read, because it is damaged or another version of tfdeploy wrote it"
