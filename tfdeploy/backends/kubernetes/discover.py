"""What a Kubernetes cluster reports without a cluster of ours: those whose objects a namespace has, and whether it can run them."""

from collections.abc import Iterator

from ...errors import BackendError, SpecError, Unreachable
from ..base import FAIL, Check, DiscoveredCluster
from ..discovery import LabelledObject, group_by_cluster, timestamp
from .api import ApiServer
from .cluster_objects import KINDS, kind_path
from .health import checks
from .kubeconfig import chosen_place
from .labels import ID_LABEL, PREFIX


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
    home = f"{api.namespace}@{api.server}"
    return group_by_cluster("kubernetes", home, PREFIX, list(_labelled(api)))


def _labelled(api: ApiServer) -> Iterator[LabelledObject]:
    for kind in KINDS:
        for item in api.get(kind_path(api.namespace, kind), labelSelector=ID_LABEL)["items"]:
            meta = item["metadata"]
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
