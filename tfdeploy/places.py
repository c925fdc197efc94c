"""The backends that a stack's state has a cluster on: one, or several while its run moves. Pure.

The resources at a new place have other names, so that Pulumi creates them, and deletes the former ones only at the end of an update
that succeeds. After one that fails, both are in the state, and an update that returns finds the former ones unchanged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .backends.base import ClusterRef
from .errors import SpecError
from .plan.inventory import PlaceRef

_CLEANUP, _RUN = "pulumi-python:dynamic/tfdeploy:Cleanup", "pulumi-python:dynamic/tfdeploy:Run"
_NETWORK = "docker:index/network:Network"
_CLEANUP_END = "-cleanup"


@dataclass(frozen=True)
class StoredPlace:
    """A cluster on one backend, as the state of its stack has it."""

    prefix: str
    """The names of its resources begin with it."""
    cluster: ClusterRef
    place: PlaceRef
    token: str
    has_network: bool
    """Whether the state has its overlay network."""
    has_run: bool
    """Whether a run was submitted there."""


def find_places(
    by_name: Mapping[tuple[str, str], Mapping[str, Any]], name: str, component: str, cluster_id: str
) -> tuple[StoredPlace, ...]:
    """The places of a cluster among the outputs of resources by type and name. Another cluster may have a name that begins alike."""
    places = []
    for (kind, resource), outputs in by_name.items():
        if kind != f"{component}${_CLEANUP}" or not resource.endswith(_CLEANUP_END):
            continue
        prefix, cluster = resource[: -len(_CLEANUP_END)], outputs["cluster"]
        if prefix not in (name, f"{name}-{cluster['backend']}") or cluster["id"] != cluster_id:
            continue
        networks = [(f"{component}${_NETWORK}", f"{prefix}-network{suffix}") for suffix in ("", "-encrypted")]
        has_run = (f"{component}${_RUN}", f"{prefix}-run") in by_name
        has_network = any(network in by_name for network in networks)
        places.append(
            StoredPlace(prefix, cluster, outputs["place"], str(outputs.get("token") or ""), has_network, has_run)
        )
    return tuple(places)


def resource_prefix(name: str, backend: str, places: Sequence[StoredPlace]) -> str:
    """What the names of the cluster's resources on this backend begin with: its name, if no other place has it already."""
    prefixes = [place.prefix for place in places if place.cluster["backend"] == backend]
    if prefixes:
        return prefixes[0]
    return name if name not in [place.prefix for place in places] else f"{name}-{backend}"


def refuse_taken_prefix(name: str, prefix: str, clusters: Sequence[str]) -> None:
    """Refuse a prefix that is another cluster's name.

    Raises:
        SpecError: with that name.
    """
    if prefix != name and prefix in clusters:
        wrong = f"while the run moves, resources are named {prefix}-…, and this stack has a cluster {prefix!r}"
        raise SpecError(
            f"{name}: backend", wrong, f"Destroy {name!r} and create it on the other backend, or move it in two steps."
        )
