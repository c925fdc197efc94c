"""Address pools for Docker's own networks that do not overlap with the VPC. Pure.

Docker's defaults (10.0.0.0/8 for overlays, 172.17.0.0/12 for bridges) are the usual addresses of VPCs:
https://docs.docker.com/engine/swarm/networking/#configure-the-default-address-pools.
"""

from collections.abc import Sequence
from ipaddress import IPv4Network

OVERLAY_MASK = 24
"""The size of an overlay network: 253 tasks."""

_OVERLAYS = ("10.200.0.0/14", "172.24.0.0/14", "192.168.128.0/17", "10.64.0.0/14", "100.96.0.0/14")
_BRIDGES = ("172.20.0.0/16", "10.199.0.0/16", "192.168.0.0/17", "10.63.0.0/16", "100.95.0.0/16")


def overlay_pool(vpc_cidrs: Sequence[str], subnet: str = "") -> str:
    """A pool for overlay networks that overlaps neither with the VPC nor with `subnet`, the requested network."""
    return _free(_OVERLAYS, [*vpc_cidrs, *([subnet] if subnet else [])])


def bridge_pool(vpc_cidrs: Sequence[str], subnet: str = "") -> str:
    """A pool for the bridges of each machine that overlaps neither with the VPC nor with `subnet`."""
    return _free(_BRIDGES, [*vpc_cidrs, *([subnet] if subnet else [])])


def _free(candidates: Sequence[str], taken: Sequence[str]) -> str:
    networks = [IPv4Network(cidr) for cidr in taken if ":" not in cidr]
    return next(
        (pool for pool in candidates if not any(IPv4Network(pool).overlaps(network) for network in networks)),
        candidates[-1],
    )
