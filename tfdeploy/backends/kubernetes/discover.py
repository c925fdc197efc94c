"""What a Kubernetes cluster reports without a cluster of ours: those whose objects a namespace has, and whether it can run them."""

import datetime
from collections.abc import Iterator, Mapping
from typing import Any

from ...errors import BackendError, SpecError, Unreachable
from ..base import FAIL, Check, ClusterRef, DiscoveredCluster
from .api import ApiServer
from .cluster_objects import KINDS, kind_path
from .health import checks
from .kubeconfig import chosen_place
from .labels import ID_LABEL, NAME_LABEL, OWNER, PROJECT, STACK

_UNKNOWN = "?"


def _api(place: str) -> ApiServer:
    """The API server of a home, or of a context."""
    return ApiServer(place if "@http" in place else chosen_place(place).home)


def discover_clusters(place: str = "") -> list[DiscoveredCluster]:
    """All clusters with objects in the namespace of a context.

    Raises:
        Unreachable: no such context names an API server, or the server does not respond.
    """
    try:
        api = _api(place)
    except SpecError as error:
        raise Unreachable(str(error)) from None
    by_cluster: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for kind, meta in _labelled(api):
        by_cluster.setdefault(meta["labels"][ID_LABEL], []).append((kind, meta))
    return [_cluster(f"{api.namespace}@{api.server}", key, items) for key, items in sorted(by_cluster.items())]


def _labelled(api: ApiServer) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for kind in KINDS:
        for item in api.get(kind_path(api.namespace, kind), labelSelector=ID_LABEL)["items"]:
            yield kind, item["metadata"]


def _cluster(home: str, cluster_id: str, items: list[tuple[str, Mapping[str, Any]]]) -> DiscoveredCluster:
    notes = {key: value for _, meta in items for key, value in (meta.get("annotations") or {}).items()}
    cluster: ClusterRef = {
        "id": cluster_id,
        "owner": notes.get(OWNER, ""),
        "backend": "kubernetes",
        "project": notes.get(PROJECT, _UNKNOWN),
        "stack": notes.get(STACK, _UNKNOWN),
        "name": items[0][1]["labels"].get(NAME_LABEL, ""),
        "home": home,
    }
    kinds = [kind for kind, _ in items]
    has = {kind.lower(): kinds.count(kind) for kind in dict.fromkeys(kinds)}
    return DiscoveredCluster(cluster, has, min(_timestamp(meta["creationTimestamp"]) for _, meta in items))


def _timestamp(text: str) -> float:
    return datetime.datetime.fromisoformat(text).timestamp()


def health(place: str = "") -> list[Check]:
    """Whether the API server responds, and what this user may do there."""
    try:
        api = _api(place)
        api.get("/version")
    except (SpecError, BackendError) as error:
        remedy = "Set kubernetes.context or KUBECONFIG until `kubectl get pods` works."
        return [Check("kubernetes", FAIL, str(error), remedy)]
    return checks(api)
