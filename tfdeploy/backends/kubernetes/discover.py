"""What a Kubernetes cluster reports without a cluster of ours: those whose objects a namespace has, and whether it can run them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...errors import BackendError, Forbidden, SpecError, Unreachable
from ..base import FAIL, Check, DiscoveredCluster
from ..discovery import LabelledObject, group_by_cluster, timestamp
from .api import FORBIDDEN, ApiError, ApiServer
from .cluster_objects import KINDS, kind_path
from .health import checks
from .kubeconfig import chosen_place
from .labels import ID_LABEL, PREFIX


def _api(place: str) -> ApiServer:
    """The API server of a home, or of a context."""
    return ApiServer(place if "@http" in place else chosen_place(place).home)


def discover_clusters(place: str = "") -> list[DiscoveredCluster]:
    """All clusters with objects in the namespace of a context, of the kinds that the user may list.

    Raises:
        Unreachable: no such context names an API server, the server does not respond, or the user may list none of them.
    """
    try:
        api = _api(place)
    except SpecError as error:
        raise Unreachable(str(error)) from None
    home = f"{api.namespace}@{api.server}"
    listed = {kind: _listed(api, kind) for kind in KINDS}
    if not any(items is not None for items in listed.values()):
        raise Forbidden(f"you may not list what is in {home}. docs/kubernetes-role.yaml has the Role that you need")
    return group_by_cluster("kubernetes", home, PREFIX, list(_labelled(listed)))


def _listed(api: ApiServer, kind: str) -> Sequence[Mapping[str, Any]] | None:
    """The metadata of the objects of a kind; None where the user may not list them."""
    try:
        return api.list_metadata(kind_path(api.namespace, kind), ID_LABEL)
    except ApiError as error:
        if error.status != FORBIDDEN:
            raise
        return None


def _labelled(listed: Mapping[str, Sequence[Mapping[str, Any]] | None]) -> Iterator[LabelledObject]:
    for kind, items in listed.items():
        for meta in items or ():
            labels = {**meta["labels"], **(meta.get("annotations") or {})}
            yield LabelledObject(kind.lower(), labels, timestamp(meta["creationTimestamp"]))


def health(place: str = "") -> list[Check]:
    """Whether the API server responds, and what this user may do there."""
    try:
        api = _api(place)
        api.get("/version")
    except (SpecError, BackendError) as error:
        remedy = "Set kubernetes.context or KUBECONFIG until `kubectl get pods` works."
        return [Check("kubernetes", FAIL, str(error), remedy)]
    return checks(api)
