"""The nodes of a Swarm as machines that tasks can be placed on."""

from collections.abc import Mapping, Sequence
from typing import Any

from ....errors import BackendError, SpecError
from ....plan.scheduler import Machine
from ...base import ClusterRef
from ..engine.engine import Engine
from ..labels import ID_LABEL

_GPU = "gpu"

NodeJson = Mapping[str, Any]
"""A node in the form of the Engine API."""


def machines(engine: Engine, cluster: ClusterRef) -> Sequence[Machine]:
    """The nodes, and what the services of others have reserved on them.

    Raises:
        SpecError: the engine does not manage a Swarm, or two nodes have the same name.
        Unreachable: the engine does not respond.
    """
    engine.swarm_info()
    nodes = sorted(engine.call(lambda api: api.nodes()), key=_order)
    hostnames = [hostname_of(node) for node in nodes]
    duplicate = next((name for name in hostnames if hostnames.count(name) > 1), "")
    if duplicate:
        wrong = f"two machines of the Swarm have the hostname {duplicate!r}"
        raise SpecError("docker.host", wrong, "Give each machine a different hostname.")
    reserved = _reserved(engine, cluster)
    return [_machine(node, reserved.get(node["ID"], {})) for node in nodes]


def statuses(engine: Engine) -> Mapping[str, str]:
    """The status of each machine that is not `connected`, by name."""
    statuses = {hostname_of(node): node_status(node) for node in engine.call(lambda api: api.nodes())}
    return {name: status for name, status in statuses.items() if status}


def unreachable(engine: Engine) -> Mapping[str, str]:
    """The status of each machine that does not respond, by name."""
    existing = engine.call(lambda api: api.nodes())
    return {hostname_of(node): node_status(node) for node in existing if not is_reachable(node)}


def refuse_reachable(engine: Engine, machine: str) -> list[str]:
    """The ids of the nodes of this name; none where it is not in the Swarm any more.

    Raises:
        BackendError: one responds, so that its tasks are moved in another way.
    """
    existing = [node for node in engine.call(lambda api: api.nodes()) if hostname_of(node) == machine]
    if any(map(is_reachable, existing)):
        move = f"`docker node update --availability drain {machine}` and then `pulumi up`"
        raise BackendError(f"{machine} responds, so it is not lost. To move its tasks, run {move}.")
    return [node["ID"] for node in existing]


def node_status(node: NodeJson) -> str:
    """`unreachable (…)`, `drain` or `pause`; empty for a node that takes tasks."""
    if not is_reachable(node):
        return f"unreachable ({node['Status'].get('Message') or node['Status']['State']})"
    return "" if node["Spec"]["Availability"] == "active" else str(node["Spec"]["Availability"])


def is_reachable(node: NodeJson) -> bool:
    """Whether it responds."""
    return bool(node["Status"]["State"] == "ready")


def gpu_kinds(engine: Engine) -> Mapping[str, str]:
    """The name of each machine's GPUs among its generic resources; empty for a machine without."""
    return {hostname_of(node): _gpus(node)[0] for node in engine.call(lambda api: api.nodes())}


def hostname_of(node: NodeJson) -> str:
    """The name of its machine."""
    return str(node["Description"]["Hostname"])


def _order(node: NodeJson) -> tuple[bool, str]:
    """Managers first, then by name."""
    return node["Spec"]["Role"] != "manager", hostname_of(node)


def _machine(node: NodeJson, reserved: Mapping[str, float]) -> Machine:
    description = node["Description"]
    labels = {**description.get("Engine", {}).get("Labels", {}), **node["Spec"].get("Labels", {})}
    _, gpus = _gpus(node)
    return Machine(
        name=description["Hostname"],
        role="Master" if node["Spec"]["Role"] == "manager" else "Worker",
        provider="docker",
        region=labels.get("region", ""),
        cpus=description["Resources"].get("NanoCPUs", 0) / 1e9,
        memory=description["Resources"].get("MemoryBytes", 0),
        gpus=gpus,
        address=_address(node),
        labels=labels,
        taken_cpus=reserved.get("cpus", 0.0),
        taken_memory=int(reserved.get("memory", 0)),
        taken_gpus=int(reserved.get("gpus", 0)),
        ready=not node_status(node),
        responds=is_reachable(node),
    )


def _address(node: NodeJson) -> str:
    address: str = node["Status"].get("Addr", "")
    if address in ("", "0.0.0.0") and "ManagerStatus" in node:
        address = node["ManagerStatus"]["Addr"].rpartition(":")[0]
    return address


def _gpus(node: NodeJson) -> tuple[str, tuple[str, ...]]:
    """The name of a node's GPUs among its generic resources, and their ids; without ids they are numbered."""
    ids_by_kind: dict[str, list[str]] = {}
    for item in node["Description"]["Resources"].get("GenericResources") or []:
        for form, resource in item.items():
            if _GPU in resource["Kind"].lower():
                ids = [resource["Value"]] if form.startswith("Named") else map(str, range(resource["Value"]))
                ids_by_kind.setdefault(resource["Kind"], []).extend(ids)
    kind = min(ids_by_kind, default="")
    return kind, tuple(ids_by_kind.get(kind, ()))


def _reserved(engine: Engine, cluster: ClusterRef) -> Mapping[str, Mapping[str, float]]:
    """What the tasks of others have reserved, by node."""
    by_node: dict[str, dict[str, float]] = {}
    labels_by_service = {item["ID"]: item["Spec"]["Labels"] for item in engine.call(lambda api: api.services())}
    for task in engine.call(lambda api: api.tasks(filters={"desired-state": ["running", "complete"]})):
        labels = labels_by_service.get(task["ServiceID"], {})
        has_ended = task["Status"]["State"] == "complete"
        if has_ended or labels.get(ID_LABEL) == cluster["id"] or "NodeID" not in task:
            continue
        reservation = task["Spec"].get("Resources", {}).get("Reservations", {})
        sums = by_node.setdefault(task["NodeID"], {"cpus": 0.0, "memory": 0.0, "gpus": 0.0})
        sums["cpus"] += reservation.get("NanoCPUs", 0) / 1e9
        sums["memory"] += reservation.get("MemoryBytes", 0)
        sums["gpus"] += sum(
            item["DiscreteResourceSpec"]["Value"]
            for item in reservation.get("GenericResources") or []
            if _GPU in item.get("DiscreteResourceSpec", {}).get("Kind", "").lower()
        )
    return by_node
