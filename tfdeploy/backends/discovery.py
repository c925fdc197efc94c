"""The clusters that labelled objects of an engine belong to."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .base import CONTROLLER, ClusterRef, DiscoveredCluster

_UNKNOWN = "?"
"""The project and the stack, where none of the objects remains that have them."""


@dataclass(frozen=True)
class LabelledObject:
    """One object with labels, or tags, of a cluster."""

    kind: str
    labels: Mapping[str, str]
    created: float = 0.0
    """Seconds since 1970; 0 where it is not known."""


def group_by_cluster(
    backend: str, home: str, prefix: str, objects: Sequence[LabelledObject]
) -> list[DiscoveredCluster]:
    """The clusters that these objects belong to. Pure."""
    by_cluster: dict[str, list[LabelledObject]] = {}
    for item in objects:
        by_cluster.setdefault(item.labels[f"{prefix}cluster-id"], []).append(item)
    clusters = []
    for cluster_id, items in sorted(by_cluster.items()):
        # After `pulumi stack rename` the objects of tasks have the former name until they are updated.
        in_order = sorted(items, key=lambda item: item.labels.get(f"{prefix}hostname") == CONTROLLER)
        labels = {key: value for item in in_order for key, value in item.labels.items() if value}
        kinds = [item.kind for item in items]
        counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
        since = min((item.created for item in items if item.created), default=0.0)
        cluster: ClusterRef = {
            "id": cluster_id,
            "owner": labels.get(f"{prefix}owner", ""),
            "backend": backend,
            "project": labels.get(f"{prefix}project", _UNKNOWN),
            "stack": labels.get(f"{prefix}stack", _UNKNOWN),
            "name": labels.get(f"{prefix}cluster", ""),
            "home": home,
        }
        clusters.append(DiscoveredCluster(cluster, counts, since))
    return clusters


def timestamp(text: Any) -> float:
    """A time of an engine in seconds since 1970; 0 for none."""
    try:
        moment = datetime.datetime.fromisoformat(str(text)[:19]).replace(tzinfo=datetime.UTC)
        return moment.timestamp()
    except ValueError:
        return 0.0
