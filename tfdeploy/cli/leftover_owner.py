"""Whether the resources of a discovered cluster belong to a stack. Pure.

Only resources that belong to no stack for certain are leftovers. If that cannot be known, or an update may be creating them, they
are not.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..backends.base import ClusterRef, DiscoveredCluster
from ..registry import Entry
from ..units import text_of_seconds

IN_STACK, LEFTOVER, UNKNOWN, BUSY, RETAINED = "stack", "left over", "unknown", "busy", "retained"
"""They belong to a stack; to none; that cannot be known; an update may be creating them; `destroy` has retained them."""

MARGIN_SECONDS = 600.0
"""An update has registered `Cleanup`, its first resource, within this time, with a large margin."""

_FILE_URL = "file://"
_VOLUME = "volume"
_CLEANUP = "pulumi-python:dynamic/tfdeploy:Cleanup"


class ClusterKey(NamedTuple):
    """What identifies a cluster in a stack's state and in the registry."""

    backend: str
    id: str


@dataclass(frozen=True)
class StackState:
    """What Pulumi reports of one stack."""

    clusters: frozenset[ClusterKey] = frozenset()
    missing: bool = False
    """There is no such stack."""
    error: str = ""
    """Why Pulumi could not read it."""
    locked: bool | None = None
    """Whether an update is running; None if that is not known."""


@dataclass(frozen=True)
class Ownership:
    """To whom the resources of a cluster belong, and how that is known."""

    state: str
    reason: str = ""


def key_of(cluster: Mapping[str, Any]) -> ClusterKey:
    """The key of a cluster; empty where it is unknown."""
    return ClusterKey(*(str(cluster.get(name, "")) for name in ClusterKey._fields))


def clusters_in(export: Mapping[str, Any]) -> frozenset[ClusterKey]:
    """The clusters in the output of `pulumi stack export`."""
    resources = (export.get("deployment") or {}).get("resources") or []
    cleanups = [resource for resource in resources if resource["type"] == _CLEANUP]
    return frozenset(key_of(cleanup.get("inputs", {}).get("cluster", {})) for cleanup in cleanups)


def entry_of(cluster: ClusterRef, entries: Sequence[Entry]) -> Entry | None:
    """The registry's entry of a cluster. A cluster of that name in another state folder, on another engine or in another region has
    none."""
    for entry in entries:
        if entry.cluster["home"] == cluster["home"] and key_of(entry.cluster) == key_of(cluster):
            return entry
    return None


def ownership(discovered: DiscoveredCluster, entry: Entry | None, stack: StackState, now: float) -> Ownership:
    """To whom the resources of a cluster belong. `stack` was read from the backend that the entry names."""
    if entry is None:
        return Ownership(
            UNKNOWN, "it was not created with this state folder, but with another HOME or on another computer"
        )
    if key_of(discovered.cluster) in stack.clusters:
        return Ownership(IN_STACK)
    if entry.ended and discovered.since > entry.ended:
        age = text_of_seconds(round(now - discovered.since))
        return Ownership(
            UNKNOWN, f"it was created {age} ago, after this computer had destroyed its cluster of that name"
        )
    if entry.ended and _retains_volumes(entry) and set(discovered.has) <= {_VOLUME}:
        return Ownership(RETAINED, "`destroy` has retained its volumes (`retain_volumes`)")
    if stack.error:
        return Ownership(UNKNOWN, f"Pulumi cannot read its stack: {stack.error}")
    if stack.locked:
        reason = "its stack is locked: an update is running. If none is running, use `pulumi cancel`"
        return Ownership(BUSY, reason)
    if doubt := _doubt(entry, stack):
        return Ownership(UNKNOWN, doubt)
    if stack.locked is None and now - entry.begun < MARGIN_SECONDS:
        age = text_of_seconds(round(now - entry.begun))
        return Ownership(BUSY, f"its update started {age} ago and may still be running")
    return Ownership(LEFTOVER, "its stack was removed" if stack.missing else "its stack does not contain it")


def _doubt(entry: Entry, stack: StackState) -> str:
    """Why Pulumi may have read another stack than the cluster's; empty if that is excluded."""
    if not entry.login:
        return "it is not known which Pulumi backend stored its stack"
    if entry.login.startswith(_FILE_URL):
        return ""
    if stack.missing:
        return f"{entry.login} has no such stack for this account, but another account may have it"
    return "" if entry.organization else f"it is not known which organization of {entry.login} had its stack"


def _retains_volumes(entry: Entry) -> bool:
    """True also if the option cannot be read: then nothing is deleted."""
    try:
        return bool(json.loads(entry.options.get("container", "{}")).get("retain_volumes", True))
    except (ValueError, AttributeError):
        return True


def reason_not_to_delete(owner: Ownership, discovered: DiscoveredCluster, now: float) -> str:
    """Why these resources are not deleted even if the user names their cluster; empty if they may be."""
    if not discovered.cluster["home"]:
        return "it is not known where they are: check them, and remove them by hand"
    if owner.state == IN_STACK:
        return "they belong to its stack: use `pulumi destroy`"
    if owner.state == BUSY:
        return owner.reason
    if owner.state == UNKNOWN and discovered.since and now - discovered.since < MARGIN_SECONDS:
        age = text_of_seconds(round(now - discovered.since))
        return f"a part of it was created {age} ago: its update may still be running"
    return ""
