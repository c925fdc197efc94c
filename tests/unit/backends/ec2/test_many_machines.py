"""A hundred machines: nothing is done for one machine after another, and EC2 is called no more often than it allows."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.backends.ec2 import simulated_ec2
from tests.unit.backends.ec2.fleets import CLUSTER, instance, spec
from tests.unit.backends.ec2.simulated_ec2 import BOOT_SECONDS, Ec2
from tests.unit.backends.ec2.simulated_time import SimulatedTime
from tfdeploy.backends.ec2 import swarm
from tfdeploy.backends.ec2.aws import account
from tfdeploy.backends.ec2.machine import machine_provider, ssh
from tfdeploy.backends.ec2.machine.boot import CONSOLES_PER_SECOND, INTERVAL, Member

MANY = 100

Simulate = Callable[..., Ec2]


def member(number: int) -> Member:
    """A machine; the first one is the manager."""
    return {
        "machine": f"m{number}",
        "instance_id": f"i-{number}",
        "address": f"198.51.100.{number}",
        "private_ip": f"10.0.0.{number}",
        "is_manager": number == 0,
        "kind": "",
        "labels": {"pool": "workers", "number": str(number)},
    }


@pytest.fixture
def simulate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Simulate:
    """An account with so many machines that boot; other arguments are those of `Ec2`."""

    def made(machines: int, **changed: Any) -> Ec2:
        clock = SimulatedTime()
        ec2 = Ec2(clock, [member(number) for number in range(machines)], **changed)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / f"{id(ec2)}"))
        monkeypatch.setattr(time, "monotonic", clock.monotonic)
        monkeypatch.setattr(time, "sleep", clock.sleep)
        monkeypatch.setattr(account, "client", lambda service, region: ec2)
        monkeypatch.setattr(ssh, "run", ec2.run)
        monkeypatch.setattr(ssh, "engine", ec2.engine)
        monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor", clock.executor)
        return ec2

    return made


def form(ec2: Ec2, *previous: str) -> float:
    """Form the Swarm of the machines, of which `previous` are in it; how many simulated seconds that takes beyond their boot."""
    props: swarm.SwarmProps = {
        "cluster": CLUSTER,
        "user": "ec2-user",
        "public_key": "ssh-ed25519 A",
        "address_pool": "10.1.0.0/16",
        "subnet_size": 24,
        "lifetime": 1.0,
        "idle": 1.0,
        "members": ec2.members,
    }
    begin = max(ec2.clock.now, ec2.begin + BOOT_SECONDS)
    assert swarm.form(props, previous, ["ssh-ed25519 A"], lambda line: None)["swarm"] == "swarm"
    assert {name: node["Labels"] for name, node in ec2.nodes.items()} == {
        it["machine"]: it["labels"] for it in ec2.members
    }
    return ec2.clock.now - begin


def test_all_machines_are_waited_for_at_the_same_time(simulate: Simulate) -> None:
    ec2 = simulate(MANY)
    form(ec2)
    assert ec2.peak == MANY


def test_our_part_of_a_hundred_machines_is_that_of_a_few(simulate: Simulate) -> None:
    seconds = [form(simulate(number)) for number in (2, MANY)]
    assert seconds[1] <= 1.3 * seconds[0], seconds


def test_many_machines_are_removed_in_the_time_of_a_few(simulate: Simulate) -> None:
    seconds = []
    for before in (4, MANY):
        ec2 = simulate(before)
        form(ec2)
        previous = [it["instance_id"] for it in ec2.members]
        ec2.members = ec2.members[:2]
        seconds.append(form(ec2, *previous))
        assert ec2.engine_calls["m0", "remove_node"] == before - 2
    assert seconds[1] <= 1.3 * seconds[0], seconds


def test_each_machine_is_connected_to_once_and_the_manager_is_not_asked_for_each_machine(simulate: Simulate) -> None:
    ec2 = simulate(MANY)
    form(ec2)
    assert max(ec2.ssh.values()) <= 2, "the engine, and one command"
    manager = {name: count for (machine, name), count in ec2.engine_calls.items() if machine == "m0"}
    assert manager["nodes"] < MANY / 2, "more only as long as nodes are not ready"
    assert manager["update_node"] == MANY
    assert max(count for (machine, _), count in ec2.engine_calls.items() if machine != "m0") <= 4


def test_ec2_is_called_no_more_often_than_it_allows(simulate: Simulate) -> None:
    ec2 = simulate(MANY)
    form(ec2)
    seconds = ec2.clock.now - ec2.begin
    assert ec2.throttled == 0
    assert ec2.count("DescribeInstances") <= seconds / INTERVAL + 2
    assert ec2.most_in_a_second("GetConsoleOutput") <= 2 * CONSOLES_PER_SECOND <= simulated_ec2.REFILL
    assert ec2.count("GetConsoleOutput") <= CONSOLES_PER_SECOND * seconds


@pytest.mark.parametrize("refill", [2.0, 5.0])
def test_an_account_whose_limit_others_use_up_is_waited_for(simulate: Simulate, refill: float) -> None:
    ec2 = simulate(MANY, capacity=1.0, refill=refill)
    form(ec2)
    assert ec2.throttled > 0


def test_another_computer_reads_the_consoles_of_several_machines_at_the_same_time(simulate: Simulate) -> None:
    ec2 = simulate(MANY)
    ec2.clock.sleep(simulated_ec2.KEY_SECONDS)
    begin = ec2.clock.now
    running = [instance(f"m{number}", number == 0, instance_id=f"i-{number}") for number in range(MANY)]
    hosts = machine_provider.discover_hosts(CLUSTER, spec(workers=1), running)
    assert (len(hosts.hosts), hosts.manager) == (MANY, "m0")
    assert (ec2.count("GetConsoleOutput"), ec2.throttled) == (MANY, 0)
    assert ec2.clock.now - begin <= MANY / 10 * simulated_ec2.API_SECONDS + 1
