"""The nodes of a Swarm as machines that tasks can stand on."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import SpecError
from ...placement import Machine
from ..base import Cluster
from . import names
from .engine import Engine

_GPU = "gpu"


def machines(engine: Engine, cluster: Cluster) -> Sequence[Machine]:
    """The nodes, and what other services have reserved on them.

    Raises:
        SpecError: the engine manages no Swarm, or two nodes have one name.
        Unreachable: it does not answer.
    """
    engine.swarm()
    nodes = sorted(engine.call(lambda api: api.nodes()), key=_rank)
    hostnames = [node["Description"]["Hostname"] for node in nodes]
    twice = next((name for name in hostnames if hostnames.count(name) > 1), "")
    if twice:
        raise SpecError(
            "docker_host", f"two machines of the Swarm are called {twice!r}", "Give each a name of its own."
        )
    taken = _taken(engine, cluster)
    return [_machine(node, taken.get(node["ID"], {})) for node in nodes]


def statuses(engine: Engine) -> Mapping[str, str]:
    """Name of a machine to its status, where that is not `connected`."""
    nodes = engine.call(lambda api: api.nodes())
    words = {node["Description"]["Hostname"]: _status(node) for node in nodes}
    return {name: word for name, word in words.items() if word}


def gpu_kinds(engine: Engine) -> Mapping[str, str]:
    """Name of a machine to the name under which it lists its GPUs as generic resources; empty where it lists none."""
    return {node["Description"]["Hostname"]: _gpus(node)[0] for node in engine.call(lambda api: api.nodes())}


def _takes_tasks(node: Mapping[str, Any]) -> bool:
    return bool(node["Status"]["State"] == "ready" and node["Spec"]["Availability"] == "active")


def _rank(node: Mapping[str, Any]) -> tuple[bool, str]:
    """Managers first, then by name."""
    return node["Spec"]["Role"] != "manager", node["Description"]["Hostname"]


def _status(node: Mapping[str, Any]) -> str:
    if node["Status"]["State"] != "ready":
        return f"unreachable ({node['Status'].get('Message') or node['Status']['State']})"
    return "" if node["Spec"]["Availability"] == "active" else str(node["Spec"]["Availability"])


def _machine(node: Mapping[str, Any], taken: Mapping[str, float]) -> Machine:
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
        taken_cpus=taken.get("cpus", 0.0),
        taken_memory=int(taken.get("memory", 0)),
        taken_gpus=int(taken.get("gpus", 0)),
        ready=_takes_tasks(node),
    )


def _address(node: Mapping[str, Any]) -> str:
    address: str = node["Status"].get("Addr", "")
    if address in ("", "0.0.0.0") and "ManagerStatus" in node:
        address = node["ManagerStatus"]["Addr"].rpartition(":")[0]
    return address


def _gpus(node: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """What a node calls its GPUs, and which it has; those that are only counted are numbered."""
    found: dict[str, list[str]] = {}
    for item in node["Description"]["Resources"].get("GenericResources") or []:
        for form, resource in item.items():
            if _GPU in resource["Kind"].lower():
                values = [resource["Value"]] if form.startswith("Named") else map(str, range(resource["Value"]))
                found.setdefault(resource["Kind"], []).extend(values)
    kind = min(found, default="")
    return kind, tuple(found.get(kind, ()))


def _taken(engine: Engine, cluster: Cluster) -> Mapping[str, Mapping[str, float]]:
    """Node to what the tasks of others have reserved on it."""
    taken: dict[str, dict[str, float]] = {}
    ours = names.labels(cluster).items()
    services = {item["ID"]: item["Spec"]["Labels"] for item in engine.call(lambda api: api.services())}
    for task in engine.call(lambda api: api.tasks(filters={"desired-state": ["running"]})):
        labels = services.get(task["ServiceID"], {})
        if all(labels.get(key) == value for key, value in ours) or "NodeID" not in task:
            continue
        reserved = task["Spec"].get("Resources", {}).get("Reservations", {})
        sums = taken.setdefault(task["NodeID"], {"cpus": 0.0, "memory": 0.0, "gpus": 0.0})
        sums["cpus"] += reserved.get("NanoCPUs", 0) / 1e9
        sums["memory"] += reserved.get("MemoryBytes", 0)
        sums["gpus"] += sum(
            item["DiscreteResourceSpec"]["Value"]
            for item in reserved.get("GenericResources") or []
            if _GPU in item.get("DiscreteResourceSpec", {}).get("Kind", "").lower()
        )
    return taken
