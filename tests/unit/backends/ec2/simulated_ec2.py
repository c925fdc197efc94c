"""EC2 with its latencies and request limits, and machines with engines of one Swarm, in simulated time."""

import datetime
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from tests.unit.backends.ec2.simulated_time import SimulatedTime
from tfdeploy.backends.ec2.machine import model
from tfdeploy.backends.ec2.machine.boot import Member
from tfdeploy.backends.ec2.machine.user_data import GENERATION_LABEL, HOST_KEY
from tfdeploy.errors import Unreachable

CAPACITY, REFILL = 100.0, 20.0
"""The bucket of each call that changes nothing: its size, and how many calls a second it gets back.
https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html"""

API_SECONDS, SSH_SECONDS, CALL_SECONDS = 0.2, 0.5, 0.05
"""How long a call of EC2's API takes, an ssh connection, and a call of an engine through one."""

KEY_SECONDS, BOOT_SECONDS, NODE_SECONDS = 30.0, 60.0, 1.0
"""When the console shows the host key, when the boot script has ended, and how long a node that has joined is not ready."""

_CLIENT_ATTEMPTS = 5
"""How often boto3 tries a call."""

KEY = f"{HOST_KEY}ssh-ed25519 {'A' * 68}\n"


@dataclass
class Bucket:
    """A token bucket."""

    capacity: float = CAPACITY
    refill: float = REFILL
    tokens: float = -1.0
    at: float = 0.0

    def take(self, now: float) -> bool:
        """Take a token, if there is one."""
        before = self.capacity if self.tokens < 0 else self.tokens
        self.tokens = min(self.capacity, before + (now - self.at) * self.refill)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


@dataclass
class Ec2:
    """The account, and its machines."""

    clock: SimulatedTime
    members: list[Member]
    capacity: float = CAPACITY
    refill: float = REFILL
    calls: list[tuple[float, str]] = field(default_factory=list)
    """When EC2 was called, and what."""
    throttled: int = 0
    ssh: Counter[str] = field(default_factory=Counter)
    """Machine to its ssh connections."""
    engine_calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Machine and call to how often it was made."""
    peak: int = 0
    """How many machines were called at the same time."""
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    joined: dict[str, float] = field(default_factory=dict)
    begin: float = 0.0
    _busy: int = 0
    _tunnels: set[str] = field(default_factory=set)
    _buckets: dict[str, Bucket] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.begin = self.clock.now

    # As boto3's client.

    def get_paginator(self, operation: str) -> "Ec2":
        """The pages of `describe_instances`."""
        assert operation == "describe_instances"
        return self

    def paginate(self, Filters: list[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:  # noqa: N803 (AWS's name)
        """One page, as EC2 returns up to 1,000 instances in one."""
        self._request("DescribeInstances")
        yield {"Reservations": [{"Instances": list(map(_described, self.members))}]}

    def get_console_output(self, InstanceId: str, Latest: bool = False) -> dict[str, str]:  # noqa: N803 (AWS's name)
        """The host key, once it is printed."""
        self._request("GetConsoleOutput")
        return {"Output": KEY if self.clock.now >= self.begin + KEY_SECONDS else ""}

    def _request(self, name: str) -> None:
        for attempt in range(_CLIENT_ATTEMPTS):
            bucket = self._buckets.setdefault(name, Bucket(self.capacity, self.refill, at=self.clock.now))
            self.calls.append((self.clock.now, name))
            is_allowed = bucket.take(self.clock.now)
            self.clock.sleep(API_SECONDS)
            if is_allowed:
                return
            self.throttled += 1
            self.clock.sleep(2.0**attempt)
        raise ClientError({"Error": {"Code": "RequestLimitExceeded", "Message": "Request limit exceeded."}}, name)

    # As ssh, and the engines behind it.

    def run(self, _cluster: Any, machine: str, *_command: str) -> None:
        """A command on a machine."""
        self._connect(machine)

    def engine(self, _cluster: Any, machine: str) -> "SimulatedEngine":
        """The engine of a machine."""
        return SimulatedEngine(self, next(member for member in self.members if member["machine"] == machine))

    def _connect(self, machine: str) -> None:
        self.ssh[machine] += 1
        self.clock.sleep(SSH_SECONDS)

    def called(self, machine: str, name: str) -> None:
        """An engine is called."""
        if machine not in self._tunnels:
            self._tunnels.add(machine)
            self._connect(machine)
        self.engine_calls[machine, name] += 1
        self._busy += 1
        self.peak = max(self.peak, self._busy)
        self.clock.sleep(CALL_SECONDS)
        self._busy -= 1

    def most_in_a_second(self, name: str) -> int:
        """How many calls of this name were made in the busiest second."""
        return max(Counter(int(at) for at, called in self.calls if called == name).values())

    def count(self, name: str) -> int:
        """How many calls of EC2's API had this name."""
        return sum(called == name for _, called in self.calls)


def _described(member: Member) -> dict[str, Any]:
    return {
        "InstanceId": member["instance_id"],
        "State": {"Name": "running"},
        "InstanceType": "m7i.large",
        "ImageId": "ami-1",
        "LaunchTime": datetime.datetime.fromtimestamp(1000, datetime.UTC),
        "Tags": [{"Key": model.MACHINE, "Value": member["machine"]}],
    }


@dataclass
class SimulatedEngine:
    """The engine of a machine, and the SDK's client of it."""

    ec2: Ec2
    member: Member

    def call(self, request: Callable[[Any], Any]) -> Any:
        """A call of the API."""
        return request(self)

    call_once = call
    remove = call

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*arguments: Any, **named: Any) -> Any:
            machine = self.member["machine"]
            if self.ec2.clock.now < self.ec2.begin + BOOT_SECONDS:
                self.ec2.clock.sleep(SSH_SECONDS)
                raise Unreachable(f"{machine}: connection refused")
            self.ec2.called(machine, name)
            return getattr(self, f"_{name}")(*arguments, **named)

        return call

    def _info(self) -> dict[str, Any]:
        machine, is_manager = self.member["machine"], self.member["is_manager"]
        managers = [{"Addr": f"{member['private_ip']}:2377"} for member in self.ec2.members if member["is_manager"]]
        active = {
            "LocalNodeState": "active",
            "NodeID": machine,
            "ControlAvailable": is_manager,
            "RemoteManagers": managers,
        }
        state = active if machine in self.ec2.nodes else {"LocalNodeState": "inactive"}
        return {"Labels": [f"{GENERATION_LABEL}=a1"], "Swarm": state}

    def _init_swarm(self, **_: Any) -> None:
        self._join_swarm()

    def _join_swarm(self, *_: Any, **__: Any) -> None:
        machine = self.member["machine"]
        self.ec2.nodes[machine] = {"Labels": {}, "Index": 1}
        self.ec2.joined[machine] = self.ec2.clock.now

    def _inspect_swarm(self) -> dict[str, Any]:
        return {"ID": "swarm", "JoinTokens": {"Worker": "token"}}

    def _nodes(self) -> list[dict[str, Any]]:
        return [self._inspect_node(machine) for machine in self.ec2.nodes]

    def _inspect_node(self, machine: str) -> dict[str, Any]:
        node, is_ready = self.ec2.nodes[machine], self.ec2.clock.now >= self.ec2.joined[machine] + NODE_SECONDS
        state = {"State": "ready" if is_ready else "unknown"}
        return {"ID": machine, "Status": state, "Spec": {"Labels": node["Labels"]}, "Version": {"Index": node["Index"]}}

    def _remove_node(self, machine: str, force: bool) -> None:
        assert force
        del self.ec2.nodes[machine]

    def _update_node(self, machine: str, version: int, spec: Mapping[str, Any]) -> None:
        node = self.ec2.nodes[machine]
        assert version == node["Index"]
        node.update(Labels=spec["Labels"], Index=version + 1)
