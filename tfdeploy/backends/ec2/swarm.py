"""Forms one Swarm of a cluster's machines: all machines in parallel, each step with a timeout and a name in its error.

Nodes of the Swarm that are not among these machines are removed from it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypedDict, cast

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, UpdateResult

from ...errors import BackendError, CommandError, Unreachable
from ..base import ClusterRef
from ..controller_calls import wait_for
from ..docker import left_swarm
from ..docker.engine.engine import Engine, engine_errors, retry_conflicts
from ..parallel_calls import PARALLEL_CALLS, for_all
from ..stack_config import StackProvider, plain_values
from . import cleanup
from .machine import machines, ssh
from .machine.boot import InstancePoll, Member, stored_failure, wait_for_host_key, wait_until_ready
from .machine.model import LIVE

JOIN_SECONDS = 180.0
_PORT = 2377

_UPDATE_MACHINE = """\
import json, os, pathlib, pwd, subprocess, sys
authorized = pathlib.Path(pwd.getpwnam(os.environ["SUDO_USER"]).pw_dir, ".ssh", "authorized_keys")
missing = [key for key in sys.argv[3:] if key not in authorized.read_text().splitlines()]
with authorized.open("a") as keys:
    keys.writelines(key + "\\n" for key in missing)
pathlib.Path("/var/lib/tfdeploy/expected").touch()
file = pathlib.Path("/etc/tfdeploy/watchdog.json")
draft = file.with_suffix(".draft")
try:
    before = json.loads(file.read_text())
except (OSError, ValueError):
    before = json.loads(pathlib.Path("/usr/local/lib/tfdeploy/settings.json").read_text())
after = {**before, "lifetime": float(sys.argv[1]), "idle": float(sys.argv[2])}
if after != before:
    draft.write_text(json.dumps(after, indent=2))
    os.replace(draft, file)
    subprocess.run(["systemctl", "restart", "tfdeploy-watchdog"], check=True)
"""
"""Runs on a machine: the limits after which its watchdog terminates it, and the users' public keys."""

_RESTART_DOCKER = """\
systemctl restart docker || exit
for interface in $(ls /sys/class/net | grep '^vx-'); do ip link delete "$interface" || exit; done
"""
"""Runs on a machine that has left its Swarm. The engine has no overlay network then, and so no such interface."""


class SwarmProps(TypedDict):
    """The Swarm of a cluster, as Pulumi's state has it."""

    cluster: ClusterRef
    user: str
    public_key: str
    """The key of the user who updates the cluster. The machines accept it beside those of earlier users."""
    address_pool: str
    subnet_size: int
    lifetime: float
    idle: float
    members: list[Member]


def form(
    props: SwarmProps, previous: Collection[str], keys: Sequence[str], log: Callable[[str], None]
) -> dict[str, str]:
    """Form the Swarm of these machines, which accept these public keys; its id and the manager's address. `previous` are the
    instances of the last Swarm: their errors are not failed boots.

    Raises:
        BackendError: a machine did not boot, is not reachable, or did not join; the message has its name, the step and the end
            of its console.
    """
    cluster, members = props["cluster"], props["members"]
    poll = InstancePoll(ssh.region(cluster), [member["instance_id"] for member in members])
    _terminate_unlisted(cluster, members)
    _store_hosts(props, previous, poll)
    for_previous = [member for member in members if member["instance_id"] in previous]
    for_all(for_previous, lambda member: _update_machine(props, member, keys))

    def boot(member: Member) -> None:
        with stored_failure(cluster, member, previous):
            wait_until_ready(cluster, member, poll, log)
        if member["instance_id"] not in previous:
            _update_machine(props, member, keys)

    for_all(members, boot)
    manager = _manager(members)
    swarm_id = _init_swarm(props, manager, log)
    workers = [member for member in members if not member["is_manager"]]
    if workers:
        engine = ssh.engine(cluster, manager["machine"])
        token = engine.call(lambda api: api.inspect_swarm())["JoinTokens"]["Worker"]
        node_ids = {node["ID"] for node in engine.call(lambda api: api.nodes())}
        for_all(workers, lambda member: _join(cluster, member, manager, token, node_ids, log))
    _update_nodes(cluster, manager, members)
    return {"swarm": swarm_id, "manager": manager["private_ip"]}


def _terminate_unlisted(cluster: ClusterRef, members: Sequence[Member]) -> None:
    """Terminate instances of the cluster that the plan does not have, and wait until EC2 says so: no Swarm may contain them, and their
    tasks start elsewhere only after that."""
    listed = {member["instance_id"] for member in members}
    instances = machines.existing(cluster, (*LIVE, "shutting-down"))
    unlisted = [instance.instance_id for instance in instances if instance.instance_id not in listed]
    cleanup.terminate(ssh.region(cluster), unlisted)


def _store_hosts(props: SwarmProps, previous: Collection[str], poll: InstancePoll) -> None:
    """Store how ssh reaches the machines, with host keys from EC2 for new ones."""
    cluster, members = props["cluster"], props["members"]
    stored_keys = ssh.read(cluster).host_keys

    def key_of(member: Member) -> str:
        with stored_failure(cluster, member, previous):
            return stored_keys.get(member["instance_id"]) or wait_for_host_key(cluster, member, poll)

    keys = for_all(members, key_of)
    hosts = {
        member["machine"]: ssh.Host(member["instance_id"], member["address"], key)
        for member, key in zip(members, keys, strict=True)
    }
    manager = _manager(members)["machine"]
    ssh.write(cluster, ssh.SshHosts(manager, props["user"], hosts))


def _update_machine(props: SwarmProps, member: Member, keys: Sequence[str]) -> None:
    """An unreachable machine is reported by the next step."""
    limits = (str(props["lifetime"]), str(props["idle"]))
    with suppress(CommandError):
        ssh.run(props["cluster"], member["machine"], "sudo", "python3", "-c", _UPDATE_MACHINE, *limits, *keys)


def _manager(members: Sequence[Member]) -> Member:
    return next(member for member in members if member["is_manager"])


def _init_swarm(props: SwarmProps, manager: Member, log: Callable[[str], None]) -> str:
    """The id of the manager's Swarm, which is created if there is none."""
    engine = ssh.engine(props["cluster"], manager["machine"])
    state = engine.call(lambda api: api.info())["Swarm"]
    if not state.get("ControlAvailable"):
        _leave(props["cluster"], manager, state, log)
        with engine_errors(f"{manager['machine']}: docker swarm init"):
            engine.call_once(
                lambda api: api.init_swarm(
                    advertise_addr=manager["private_ip"],
                    listen_addr=f"{manager['private_ip']}:{_PORT}",
                    default_addr_pool=[props["address_pool"]],
                    subnet_size=props["subnet_size"],
                )
            )
    return str(engine.call(lambda api: api.inspect_swarm())["ID"])


def _leave(cluster: ClusterRef, member: Member, state: Mapping[str, Any], log: Callable[[str], None]) -> None:
    """Leave another Swarm, once its tasks here have stopped. The engine is restarted, because its part of the old overlay network
    exists for a while after it has left, and would keep that of the new one from starting. So would a VXLAN interface that was not
    deleted yet when the engine stopped (https://github.com/moby/libnetwork/issues/1765)."""
    if state.get("LocalNodeState") == "inactive":
        return
    engine = ssh.engine(cluster, member["machine"])
    left_swarm.stop_containers(engine, cluster, member["machine"], log)
    engine.call_once(lambda api: api.leave_swarm(force=True))
    ssh.run(cluster, member["machine"], "sudo", "sh", "-c", _RESTART_DOCKER)
    problem = f"{member['machine']}: Docker was not running again after `systemctl restart docker`"
    wait_for(lambda: engine.call(lambda api: api.ping()), problem, JOIN_SECONDS)


def _join(
    cluster: ClusterRef,
    member: Member,
    manager: Member,
    token: str,
    node_ids: Collection[str],
    log: Callable[[str], None],
) -> None:
    """Join the Swarm, unless the machine is one of its nodes already."""
    engine = ssh.engine(cluster, member["machine"])
    state = engine.call(lambda api: api.info())["Swarm"]
    remote = f"{manager['private_ip']}:{_PORT}"
    managers = [item["Addr"] for item in state.get("RemoteManagers") or []]
    if state.get("LocalNodeState") == "active" and managers == [remote] and state["NodeID"] in node_ids:
        return
    _leave(cluster, member, state, log)
    with engine_errors(f"{member['machine']}: docker swarm join {remote}"):
        engine.call_once(lambda api: api.join_swarm([remote], token, advertise_addr=member["private_ip"]))


def _update_nodes(cluster: ClusterRef, manager: Member, members: Sequence[Member]) -> None:
    """Wait until all nodes are ready, remove other nodes, and label these."""
    engine = ssh.engine(cluster, manager["machine"])
    infos = for_all(members, lambda member: ssh.engine(cluster, member["machine"]).call(lambda api: api.info()))
    node_ids = [str(info["Swarm"]["NodeID"]) for info in infos]
    by_id = dict(zip(node_ids, members, strict=True))
    others = [node["ID"] for node in _ready_nodes(engine, manager, by_id) if node["ID"] not in by_id]
    for_all(others, lambda node_id: engine.remove(lambda api: api.remove_node(node_id, force=True)), PARALLEL_CALLS)

    def label(node_id: str) -> None:
        member = by_id[node_id]
        what = f"{member['machine']}: docker node update"
        retry_conflicts(what, partial(_set_labels, engine, node_id, member["labels"]))

    for_all(list(by_id), label, PARALLEL_CALLS)


def _ready_nodes(engine: Engine, manager: Member, by_id: Mapping[str, Member]) -> list[Any]:
    """The nodes of the Swarm, as soon as these are ready.

    Raises:
        BackendError: one is not in time; the message names it.
    """
    nodes: list[Any] = []
    late = [member["machine"] for member in by_id.values()]

    def are_ready() -> bool:
        nodes[:] = engine.call(lambda api: api.nodes())
        ready = {node["ID"] for node in nodes if node["Status"]["State"] == "ready"}
        late[:] = [member["machine"] for node_id, member in by_id.items() if node_id not in ready]
        return not late

    try:
        wait_for(are_ready, "", JOIN_SECONDS)
    except BackendError:
        problem = f"joined the Swarm of {manager['machine']}, but did not become ready within {JOIN_SECONDS:g} s"
        raise BackendError(f"{', '.join(late)} {problem}") from None
    return nodes


def _set_labels(engine: Engine, node_id: str, labels: Mapping[str, str]) -> bool:
    node = engine.call(lambda api: api.inspect_node(node_id))
    if node["Spec"].get("Labels") != labels:
        spec = {**node["Spec"], "Labels": labels, "Name": node["Spec"].get("Name", "")}
        engine.call(lambda api: api.update_node(node_id, node["Version"]["Index"], spec))
    return True


def _inputs(props: Mapping[str, Any]) -> SwarmProps:
    outputs = ("swarm", "manager", "keys")
    return cast(SwarmProps, {key: value for key, value in plain_values(props).items() if key not in outputs})


class SwarmProvider(StackProvider):
    """Forms the Swarm; it has no state."""

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Form the Swarm, or adopt the existing one."""
        return CreateResult(props["cluster"]["name"], {**props, **self._form(props, [], [])})

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Other machines are an update, and so is the key of another user."""
        before, after = _inputs(olds), _inputs(news)
        is_known = after["public_key"] in (olds.get("keys") or ())
        return DiffResult(
            changes={**before, "public_key": ""} != {**after, "public_key": ""} or not is_known, replaces=[]
        )

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Form the Swarm of other machines."""
        return UpdateResult({**news, **self._form(news, olds["members"], olds.get("keys") or ())})

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Report it as gone when the manager has another Swarm, and not when the manager is unreachable."""
        inputs = _inputs(props)
        engine = ssh.engine(inputs["cluster"], _manager(inputs["members"])["machine"])
        with suppress(Unreachable):
            info = engine.call(lambda api: api.info())
            if info["Swarm"].get("Cluster", {}).get("ID") != props["swarm"]:
                return ReadResult(None, {})
        return ReadResult(id_, props)

    def _form(self, props: dict[str, Any], previous: Sequence[Member], known_keys: Sequence[str]) -> dict[str, Any]:
        instance_ids = {member["instance_id"] for member in previous}
        keys = list(dict.fromkeys([*known_keys, props["public_key"]]))
        formed = form(_inputs(props), instance_ids, keys, lambda line: print(line, flush=True))
        return {**formed, "keys": keys}


class MachineSwarm(Resource, module="tfdeploy", name="Swarm"):
    """The Swarm of a cluster's machines."""

    swarm: pulumi.Output[str]
    """Its id. Another id is another Swarm, which has no tasks yet."""

    manager: pulumi.Output[str]
    """The private address of its manager."""

    def __init__(
        self, name: str, props: Mapping[str, Any], members: Sequence[Mapping[str, Any]], opts: pulumi.ResourceOptions
    ) -> None:
        super().__init__(
            SwarmProvider(),
            name,
            {**props, "members": list(members), "swarm": None, "manager": None, "keys": None},
            opts,
        )
