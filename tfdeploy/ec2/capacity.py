"""What would do where a zone has no capacity for a type of machine."""

from collections.abc import Iterable, Sequence

from . import offers, prices
from .facts import InstanceType, Subnet

CODE = "InsufficientInstanceCapacity"
"""https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html"""

_CANDIDATES, _TOLD = 40, 3
"""So many types of about the same price are looked at, and so many are named."""


def sentence(
    region: str, machine: str, kind: InstanceType, subnet: Subnet, others: Sequence[Subnet], spot: bool
) -> str:
    """What a user reads: `others` are the subnets that the cluster could be in instead.

    Raises:
        SpecError, Unreachable: AWS does not tell what there is.
    """
    market = "spot " if spot else ""
    zones = "; ".join(f"{one.zone} (subnet_id={one.subnet_id})" for one in _one_a_zone(others))
    types = ", ".join(one.name for one in _types(region, subnet.zone, kind, spot))
    remedies = [
        *([f"another zone that offers the type: {zones}"] if zones else []),
        *([f"another instance_type that {subnet.zone} offers: {types}"] if types else []),
        *(["spot=False"] if spot else []),
        "`pulumi up` again later",
    ]
    return f"{machine}: {subnet.zone} has no {market}capacity for {kind.name} now. Choose {', or '.join(remedies)}."


def alike(kind: InstanceType, region: str, candidates: Iterable[InstanceType], spot: bool) -> list[InstanceType]:
    """Those that can stand in for a type, the cheapest first, one of each family. Pure."""
    found: dict[str, InstanceType] = {}
    for one in sorted(candidates, key=lambda one: (prices.of_type(one.name, region) or 0.0, one.name)):
        enough = one.cpus >= kind.cpus and one.memory >= kind.memory and one.gpus >= kind.gpus
        same = one.architecture == kind.architecture and bool(one.gpus) == bool(kind.gpus) and (one.spot or not spot)
        bursts = one.name.startswith("t") and not kind.name.startswith("t")
        if enough and same and not bursts and one.name != kind.name:
            found.setdefault(one.name.partition(".")[0], one)
    return list(found.values())[:_TOLD]


def _types(region: str, zone: str, kind: InstanceType, spot: bool) -> list[InstanceType]:
    price = prices.of_type(kind.name, region)
    if price is None:
        return []
    offered = [(prices.of_type(name, region), name) for name in offers.in_zone(region, zone)]
    near = sorted((abs(usd - price), name) for usd, name in offered if usd is not None and name != kind.name)
    return alike(kind, region, offers.described(region, [name for _, name in near[:_CANDIDATES]]), spot)


def _one_a_zone(subnets: Iterable[Subnet]) -> list[Subnet]:
    first: dict[str, Subnet] = {}
    for one in subnets:
        first.setdefault(one.zone, one)
    return list(first.values())
