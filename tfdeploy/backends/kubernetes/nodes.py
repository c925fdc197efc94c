"""The nodes that a cluster's pods are on, and whether they respond."""

import datetime
from collections.abc import Mapping
from typing import Any

from ...agent.run_state import UNREACHABLE
from ...units import moment
from ..base import ObservedMachines
from .api import FORBIDDEN, NOT_FOUND, ApiError
from .cluster_objects import ClusterObjects
from .states import LOST_REMEDY, is_node_silent

_UNKNOWN = "Unknown"


def observe(objects: ClusterObjects) -> ObservedMachines:
    """The status of each node with a pod of the cluster. A user who may not read nodes learns of one that does not respond by the
    state of its pods."""
    pods: dict[str, list[Mapping[str, Any]]] = {}
    for items in objects.pods().values():
        for pod in items:
            pods.setdefault(pod["spec"].get("nodeName", ""), []).append(pod)
    statuses = {name: _status(objects, name, pods[name]) for name in pods if name}
    silent = {name: status for name, status in statuses.items() if status.startswith(UNREACHABLE)}
    remedies = {name: LOST_REMEDY.format(node=name) for name in silent}
    return ObservedMachines({name: text for name, text in statuses.items() if text}, remedies=remedies)


def _status(objects: ClusterObjects, name: str, pods: list[Mapping[str, Any]]) -> str:
    """Empty for a node that responds."""
    try:
        node = objects.api.get(f"/api/v1/nodes/{name}")
    except ApiError as error:
        if error.status == NOT_FOUND:
            return "gone"
        if error.status != FORBIDDEN:
            raise
        return UNREACHABLE if any(map(is_node_silent, pods)) else ""
    ready: Mapping[str, Any] = next(
        (item for item in node["status"].get("conditions", ()) if item["type"] == "Ready"), {}
    )
    if ready.get("status") == _UNKNOWN:
        return f"{UNREACHABLE} since {_moment(ready.get('lastTransitionTime', ''))}"
    return ""


def _moment(text: str) -> str:
    try:
        return moment(datetime.datetime.fromisoformat(text).timestamp())
    except ValueError:
        return text
