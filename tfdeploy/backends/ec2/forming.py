"""Machines that have been made become one Swarm: all of them at once, each step with a deadline and a name.

A machine is booting until its engine carries the label that its boot script sets last; then it is initialised or joined. Whatever
is in the Swarm and not among these machines is removed from it.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypedDict, TypeVar

from ...ec2 import account, removal
from ...ec2.boot import FAILED, LIFE_LABEL, READY
from ...ec2.facts import LIVE
from ...ec2.failures import Failure, Kind
from ...errors import BackendError, Unreachable
from ..base import Cluster
from ..docker.engine import Engine, insist, refusals
from ..keeping import wait_for
from . import expecting, failing, fleet, reach
from .clearing import host_key

BOOT_SECONDS = 900.0
JOIN_SECONDS = 180.0
UNKNOWN_SECONDS = 60.0  # so long EC2 may not know a new instance everywhere
_POLL_SECONDS, _TAIL_LINES = 1.0, 25
_PORT = 2377

T = TypeVar("T")
M = TypeVar("M")


class Member(TypedDict):
    """One machine that shall be in the Swarm."""

    machine: str
    instance_id: str
    address: str
    """Where ssh finds it (`reach.Host`)."""
    private_ip: str
    life: str
    manages: bool
    kind: dict[str, str]
    """What a failure of its boot is counted for (`ec2.failures.Kind`)."""
    labels: dict[str, str]


class SwarmProps(TypedDict):
    """The Swarm of a cluster."""

    cluster: Cluster
    user: str
    key: str
    pool: str
    mask: int
    lifetime: float
    idle: float
    members: list[Member]


class BootFailed(BackendError):
    """A machine has not become ready, and will not."""

    def __init__(self, message: str, reason: str, console: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.console = console


def form(props: SwarmProps, stood: Collection[str], say: Callable[[str], None]) -> dict[str, str]:
    """Make the Swarm be of these machines; its id, and where its manager is. `stood` are the instances of which it was formed
    before: whatever they do, their boot has not failed.

    Raises:
        BackendError: a machine did not boot, could not be reached or did not join; with its name, the step and the end of
            what it wrote on its console.
    """
    cluster, members = props["cluster"], props["members"]
    _end_strays(cluster, members)
    _know(props, stood)
    there = [member["machine"] for member in members if member["instance_id"] in stood]
    _each(there, lambda machine: expecting.tell(cluster, machine, props["lifetime"], props["idle"]))
    _each(members, lambda member: _watched(cluster, member, stood, lambda: _booted(cluster, member, say)))
    manager = _manager(members)
    swarm = _initialised(props, manager)
    others = [member for member in members if not member["manages"]]
    token = _engine(cluster, manager).call(lambda api: api.inspect_swarm())["JoinTokens"]["Worker"] if others else ""
    _each(others, lambda member: _joined(cluster, member, manager, token))
    _label(cluster, manager, members)
    return {"swarm": swarm, "manager": manager["private_ip"]}


def stands(props: SwarmProps, swarm: str) -> bool:
    """Whether the Swarm is still the one that was formed; one that does not answer is believed to be."""
    manager = _manager(props["members"])
    try:
        return bool(
            _engine(props["cluster"], manager).call(lambda api: api.info())["Swarm"].get("Cluster", {}).get("ID")
            == swarm
        )
    except Unreachable:
        return True


def _end_strays(cluster: Cluster, members: Sequence[Member]) -> None:
    """End machines of the cluster's that nobody knows any more, or that are about to go: none of them may be in the Swarm."""
    listed = {member["instance_id"] for member in members}
    there = account.instances(reach.region(cluster), fleet.tags(cluster))
    removal.terminate(reach.region(cluster), [one.instance_id for one in there if one.instance_id not in listed])


def _watched(cluster: Cluster, member: Member, stood: Collection[str], boots: Callable[[], T]) -> T:
    """Have the next plan know when a machine's boot fails."""
    try:
        return boots()
    except BootFailed as error:
        if (instance_id := member["instance_id"]) not in stood:
            failed = Failure(instance_id, member["life"], Kind(**member["kind"]), error.reason, error.console)
            failing.remember(cluster, member["machine"], failed)
        raise


def _each(members: Sequence[M], do: Callable[[M], T]) -> list[T]:
    """For all at once; the first failure is raised when all have ended."""
    with ThreadPoolExecutor(max(1, len(members))) as executor:
        return list(executor.map(do, members))


def _know(props: SwarmProps, stood: Collection[str]) -> None:
    """Ask EC2 for the host keys of machines that this computer does not know yet, and keep them."""
    cluster, members = props["cluster"], props["members"]
    known = reach.read(cluster).host_keys
    keys = _each(
        members,
        lambda one: known.get(one["instance_id"]) or _watched(cluster, one, stood, lambda: _host_key(cluster, one)),
    )
    hosts = {
        member["machine"]: reach.Host(member["instance_id"], member["address"], key)
        for member, key in zip(members, keys, strict=True)
    }
    reach.write(cluster, reach.Reach(_manager(members)["machine"], props["user"], props["key"], hosts))


def _manager(members: Sequence[Member]) -> Member:
    return next(member for member in members if member["manages"])


def _host_key(cluster: Cluster, member: Member) -> str:
    """The key that the machine has shown on its console, which only EC2 can have written there."""
    return _await(cluster, member, host_key, lambda: "did not boot: its console shows no host key")


def _booted(cluster: Cluster, member: Member, say: Callable[[str], None]) -> None:
    """Wait until the machine's engine is as the boot script makes it."""
    engine, whys, begun = _engine(cluster, member), [""], time.monotonic()
    say(f"{member['machine']}: connecting ({member['instance_id']}, {_way(member)})")

    def ready(_: str) -> bool:
        try:
            labels = engine.call(lambda api: api.info()).get("Labels") or []
        except Unreachable as error:
            whys.append(str(error))
            return False
        whys.append("its boot script has not ended")
        return f"{LIFE_LABEL}={member['life']}" in labels

    _await(cluster, member, ready, lambda: f"was not ready: {whys[-1]}")
    failing.forget(cluster, member["machine"])
    say(f"{member['machine']}: connected after {time.monotonic() - begun:.0f} s")


def _way(member: Member) -> str:
    return member["address"] if member["address"] != member["instance_id"] else "through SSM"


def _await(cluster: Cluster, member: Member, found: Callable[[str], T], otherwise: Callable[[], str]) -> T:
    """The first true value of `found`, which is given what the machine has written on its console."""
    begun = time.monotonic()
    while True:
        text = account.console(reach.region(cluster), member["instance_id"])
        if value := found(text):
            return value
        waited = time.monotonic() - begun
        _refuse_lost(cluster, member, text, waited)
        if waited > BOOT_SECONDS:
            raise _failure(member, f"{otherwise()}, within {BOOT_SECONDS:g} s", text)
        time.sleep(_POLL_SECONDS)


def _refuse_lost(cluster: Cluster, member: Member, text: str, waited: float) -> None:
    if FAILED in text:
        raise _failure(member, "did not boot: its boot script failed", text)
    state = account.state(reach.region(cluster), member["instance_id"])
    if state not in LIVE and (state or waited > UNKNOWN_SECONDS):
        raise _failure(member, f"did not boot: EC2 says that {member['instance_id']} is {state or 'gone'}", text)


def _failure(member: Member, wrong: str, text: str) -> BackendError:
    """A boot has not failed whose script says that it has ended: then this computer does not reach the machine."""
    tail = "\n".join(f"  {line}" for line in text.rstrip().splitlines()[-_TAIL_LINES:])
    said = f"The end of its console:\n{tail}" if tail else "Its console is empty."
    message = f"{member['machine']} {wrong}. {said}"
    return BackendError(message) if READY in text else BootFailed(message, wrong, tail)


def _engine(cluster: Cluster, member: Member) -> Engine:
    return Engine(reach.address(cluster, member["machine"]))


def _initialised(props: SwarmProps, manager: Member) -> str:
    """The id of the Swarm that the manager has, or makes."""
    engine = _engine(props["cluster"], manager)
    there = engine.call(lambda api: api.info())["Swarm"]
    if not there.get("ControlAvailable"):
        _leave(props["cluster"], manager, there)
        with refusals(f"{manager['machine']}: docker swarm init"):
            engine.call(
                lambda api: api.init_swarm(
                    advertise_addr=manager["private_ip"],
                    listen_addr=f"{manager['private_ip']}:{_PORT}",
                    default_addr_pool=[props["pool"]],
                    subnet_size=props["mask"],
                )
            )
    identity: str = engine.call(lambda api: api.inspect_swarm())["ID"]
    return identity


def _leave(cluster: Cluster, member: Member, there: Mapping[str, Any]) -> None:
    """Leave another Swarm. The engine is restarted, because its part of the old overlay network lives on for a while after it
    has left, and would keep that of the new one from starting."""
    if there.get("LocalNodeState") == "inactive":
        return
    engine = _engine(cluster, member)
    engine.call(lambda api: api.leave_swarm(force=True))
    reach.run(cluster, member["machine"], "sudo", "systemctl", "restart", "docker")
    wait_for(
        lambda: engine.call(lambda api: api.ping()),
        f"{member['machine']}: Docker did not come back after `systemctl restart docker`",
        JOIN_SECONDS,
    )


def _joined(cluster: Cluster, member: Member, manager: Member, token: str) -> None:
    """Have a machine join, unless it has."""
    engine = _engine(cluster, member)
    there = engine.call(lambda api: api.info())["Swarm"]
    remote = f"{manager['private_ip']}:{_PORT}"
    managers = [item["Addr"] for item in there.get("RemoteManagers") or []]
    known = {node["ID"] for node in _nodes(cluster, manager)}
    if there.get("LocalNodeState") == "active" and managers == [remote] and there["NodeID"] in known:
        return
    _leave(cluster, member, there)
    with refusals(f"{member['machine']}: docker swarm join {remote}"):
        engine.call(lambda api: api.join_swarm([remote], token, advertise_addr=member["private_ip"]))


def _nodes(cluster: Cluster, manager: Member) -> list[Any]:
    found: list[Any] = _engine(cluster, manager).call(lambda api: api.nodes())
    return found


def _label(cluster: Cluster, manager: Member, members: Sequence[Member]) -> None:
    """Label the nodes, and remove those that are not of these machines."""
    engine = _engine(cluster, manager)
    names = [member["machine"] for member in members]
    identities = dict(zip(names, _each(members, lambda one: _node_id(_engine(cluster, one))), strict=True))
    for name, identity in identities.items():
        otherwise = f"{name} joined the Swarm of {manager['machine']}, but did not become ready"
        wait_for(partial(_ready, cluster, manager, identity), otherwise, JOIN_SECONDS)
    for node in _nodes(cluster, manager):
        if node["ID"] not in identities.values():
            engine.gone(_removal(node["ID"]))
    for member in members:
        insist(
            f"{member['machine']}: docker node update",
            partial(_labelled, engine, identities[member["machine"]], member["labels"]),
        )


def _removal(identity: str) -> Callable[[Any], Any]:
    return lambda api: api.remove_node(identity, force=True)


def _labelled(engine: Engine, identity: str, labels: Mapping[str, str]) -> bool:
    node = engine.call(lambda api: api.inspect_node(identity))
    if node["Spec"].get("Labels") != labels:
        spec = {**node["Spec"], "Labels": labels, "Name": node["Spec"].get("Name", "")}
        engine.call(lambda api: api.update_node(identity, node["Version"]["Index"], spec))
    return True


def _node_id(engine: Engine) -> str:
    return str(engine.call(lambda api: api.info())["Swarm"]["NodeID"])


def _ready(cluster: Cluster, manager: Member, identity: str) -> bool:
    return any(node["ID"] == identity and node["Status"]["State"] == "ready" for node in _nodes(cluster, manager))
