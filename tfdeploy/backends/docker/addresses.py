"""The addresses of a cluster's overlay network: enough of them for the plan, and none of another network. Pure.

Docker chooses a network of the Swarm's default size, by default a /24:
https://docs.docker.com/engine/swarm/networking/#configure-the-default-address-pools. It accepts more tasks than the network has
addresses, and never starts the rest. It creates a second overlay network with the same addresses, and starts no container in it.
"""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any

from ...errors import SpecError
from ...plan.plan import Plan
from ...spec.cluster import ClusterSpec
from ...spec.docker import OVERLAY
from ..base import ClusterRef
from .labels import ID_LABEL

DEFAULT_PREFIX = 24
"""Docker's default."""

_NOT_TASKS = 4
"""The network, its gateway, its broadcast address, and the controller."""


def refuse_few_addresses(spec: ClusterSpec, plan: Plan, prefix: int = DEFAULT_PREFIX) -> None:
    """The overlay network must have an address for each task, and one of each machine (its load balancer). A worker that is added to an
    elastic run may have a further machine; another network would restart all tasks.

    `prefix` is the size of the networks that Docker chooses itself.

    Raises:
        SpecError: it has fewer.
    """
    needed = len(plan.tasks) + len(plan.machines) + 2 * len(plan.absent_workers) + _NOT_TASKS
    subnet = spec.container.subnet
    if spec.container.network != OVERLAY or needed <= _size(subnet, prefix):
        return
    reason = f"the network needs {needed} addresses, for {len(plan.tasks)} tasks, the controller and the machines"
    smallest = f"a /{32 - (needed - 1).bit_length()} or larger"
    wrong = f"{subnet} is too small: {reason}" if subnet else f"{reason}, and Docker's own choice is a /{prefix}"
    remedy = f"Use {smallest}." if subnet else f"Set it to a free network, {smallest}."
    raise SpecError(f"{spec.name}: container.subnet", wrong, remedy)


def refuse_overlap(cluster: ClusterRef, spec: ClusterSpec, networks: Sequence[Mapping[str, Any]]) -> None:
    """The argument must name no addresses of another overlay network. The cluster keeps the newest of its own, if that has the same
    addresses and encryption. The state of a stack that adopts the cluster does not have it, so that the update creates another one.

    Raises:
        SpecError: otherwise.
    """
    subnet = spec.container.subnet
    own = [network for network in networks if (network.get("Labels") or {}).get(ID_LABEL) == cluster["id"]]
    kept = max(own, key=lambda network: str(network.get("Created", "")), default={})
    is_encrypted = "encrypted" in (kept.get("Options") or {})
    if spec.adopt or subnet not in _subnets(kept) or is_encrypted != spec.docker.encrypted:
        kept = {}
    taken = [other for network in networks if network is not kept for other in _subnets(network)]
    overlapping = [other for other in taken if subnet and IPv4Network(subnet).overlaps(IPv4Network(other))]
    if overlapping:
        wrong = f"{subnet} overlaps {', '.join(overlapping)}, which another overlay network has"
        remedy = "Choose other addresses, or remove the argument. Another network restarts all tasks."
        raise SpecError(f"{spec.name}: container.subnet", wrong, remedy)


def _size(subnet: str, prefix: int) -> int:
    return IPv4Network(subnet).num_addresses if subnet else 1 << (32 - prefix)


def _subnets(network: Mapping[str, Any]) -> list[str]:
    """The IPv4 subnets of a network in the form of the Engine API."""
    pools = (network.get("IPAM") or {}).get("Config") or []
    return [pool["Subnet"] for pool in pools if "." in pool.get("Subnet", "")]
