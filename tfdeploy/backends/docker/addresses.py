"""The addresses of a cluster's overlay network: a network that is large enough for the plan. Pure.

Docker chooses a network of the Swarm's default size, by default a /24:
https://docs.docker.com/engine/swarm/networking/#configure-the-default-address-pools. It accepts more tasks than the network has
addresses, and never starts the rest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

from ...errors import SpecError
from ...plan.plan import Plan
from ...spec.cluster import ClusterSpec
from ...spec.docker import OVERLAY
from ..base import ClusterRef
from .labels import ID_LABEL

DEFAULT_POOLS, DEFAULT_PREFIX = ("10.0.0.0/8",), 24
"""Docker's defaults."""

_NOT_TASKS = 4
"""The network, its gateway, its broadcast address, and the controller."""


@dataclass(frozen=True)
class OverlayNetworks:
    """What a Swarm has of overlay networks."""

    pools: tuple[str, ...] = DEFAULT_POOLS
    prefix: int = DEFAULT_PREFIX
    """The size of the networks that Docker chooses itself."""
    own: str = ""
    """The subnet of the cluster's network; empty where there is none."""
    is_encrypted: bool = False
    """Whether that network is encrypted. With another value of the argument it is replaced."""
    former: tuple[str, ...] = ()
    """The subnets of the cluster's other networks, which exist until their last container has ended."""
    foreign: tuple[str, ...] = ()
    """The subnets of all other overlay networks."""
    is_adopted: bool = False
    """The update adopts the cluster: all its networks are `former`, because the state does not have them."""


def needed_addresses(plan: Plan) -> int:
    """The addresses that the network needs: one for each task, and one of each machine (its load balancer). A worker that is added to
    an elastic run may have a further machine; another network would restart all tasks."""
    return len(plan.tasks) + len(plan.machines) + 2 * len(plan.absent_workers) + _NOT_TASKS


def network_subnet(spec: ClusterSpec, plan: Plan, networks: OverlayNetworks) -> str:
    """The subnet of the cluster's network; empty where Docker chooses it.

    A subnet that was chosen for an earlier plan remains as long as it is large enough, because another one restarts all tasks.

    Raises:
        SpecError: the subnet is too small, or the Swarm's pool does not have a free one that is large enough.
    """
    where, needed = f"{spec.name}: container.subnet", needed_addresses(plan)
    reason = f"the network needs {needed} addresses, for {len(plan.tasks)} tasks, the controller and the machines"
    if spec.container.network != OVERLAY:
        return ""
    if spec.container.subnet:
        if IPv4Network(spec.container.subnet).num_addresses < needed:
            wrong = f"{spec.container.subnet} is too small: {reason}"
            raise SpecError(where, wrong, f"Use a /{_prefix(needed)} or larger, or remove the argument.")
        return spec.container.subnet
    if networks.own and IPv4Network(networks.own).prefixlen < networks.prefix and _holds(networks.own, needed):
        return networks.own
    if needed <= 1 << (32 - networks.prefix):
        return ""
    # Twice the size: the next plans find room, too.
    chosen = _free(networks, _prefix(2 * needed)) or _free(networks, _prefix(needed))
    if not chosen:
        pool = (
            f"the address pool of the Swarm ({', '.join(networks.pools)})"
            if networks.pools
            else "a network of Docker's"
        )
        wrong = f"{reason}, and {pool} does not have so many"
        raise SpecError(where, wrong, f"Set it to a free network, a /{_prefix(needed)} or larger.")
    return chosen


def refuse_few_addresses(spec: ClusterSpec, plan: Plan) -> None:
    """Refuse more tasks than the network has addresses, on a Swarm that is created for the cluster.

    Raises:
        SpecError: there are more. A larger network is not chosen, because it could overlap with the machines' own.
    """
    network_subnet(spec, plan, OverlayNetworks(pools=()))


def network_change(plan: Plan, networks: OverlayNetworks, subnet: str) -> str:
    """The line of a preview about a subnet that is larger than Docker's choice; empty where nothing changes."""
    if not subnet or subnet == networks.own or IPv4Network(subnet).prefixlen >= networks.prefix:
        return ""
    return (
        f"network {subnet}: {needed_addresses(plan)} addresses are more than Docker's default of /{networks.prefix} has"
    )


def _prefix(addresses: int) -> int:
    """The prefix of the smallest network with so many addresses."""
    return 32 - (addresses - 1).bit_length()


def _holds(subnet: str, needed: int) -> bool:
    return IPv4Network(subnet).num_addresses >= needed


def _free(networks: OverlayNetworks, prefix: int) -> str:
    """The last free network of a pool: Docker takes its own ones from the beginning."""
    own = (networks.own,) if networks.own else ()
    taken = [IPv4Network(subnet) for subnet in (*own, *networks.former, *networks.foreign)]
    for pool in map(IPv4Network, networks.pools):
        if pool.prefixlen > prefix:
            continue
        candidate = IPv4Network((int(pool.broadcast_address) + 1 - (1 << (32 - prefix)), prefix))
        while candidate.subnet_of(pool):
            if not any(candidate.overlaps(network) for network in taken):
                return str(candidate)
            if candidate.network_address == pool.network_address:
                break
            candidate = IPv4Network((int(candidate.network_address) - candidate.num_addresses, prefix))
    return ""


def overlay_networks(
    cluster: ClusterRef, swarm: Mapping[str, Any], networks: Sequence[Mapping[str, Any]], is_adopted: bool = False
) -> OverlayNetworks:
    """What the engine reports of its Swarm (`Cluster` of its information) and of the overlay networks there.

    The state of a stack that adopts the cluster does not have its network, so that the update creates another one.
    """
    own = [network for network in networks if (network.get("Labels") or {}).get(ID_LABEL) == cluster["id"]]
    foreign = [network for network in networks if network not in own]
    # A network that was replaced remains until its last container has ended.
    newest_first = sorted(own, key=lambda network: str(network.get("Created", "")), reverse=True)
    own_subnets = [subnet for network in newest_first for subnet in subnets(network)]
    former = own_subnets if is_adopted else own_subnets[1:]
    options = (newest_first[0].get("Options") or {}) if newest_first else {}
    return OverlayNetworks(
        pools=tuple(swarm.get("DefaultAddrPool") or DEFAULT_POOLS),
        prefix=swarm.get("SubnetSize") or DEFAULT_PREFIX,
        own="" if is_adopted else next(iter(own_subnets), ""),
        is_encrypted="encrypted" in options,
        former=tuple(former),
        foreign=tuple(subnet for network in foreign for subnet in subnets(network)),
        is_adopted=is_adopted,
    )


def subnets(network: Mapping[str, Any]) -> list[str]:
    """The IPv4 subnets of a network in the form of the Engine API."""
    pools = (network.get("IPAM") or {}).get("Config") or []
    return [pool["Subnet"] for pool in pools if "." in pool.get("Subnet", "")]
