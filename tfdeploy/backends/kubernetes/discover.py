"""What a Kubernetes cluster reports without a cluster of ours: those whose objects a namespace has, and whether it can run them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...errors import BackendError, Forbidden, SpecError, Unreachable
from ..base import FAIL, OK, WARN, Check, DiscoveredCluster
from ..discovery import LabelledObject, group_by_cluster, timestamp
from .api import ApiServer
from .cluster_objects import KINDS, kind_path
from .labels import ID_LABEL, PREFIX
from .namespace import chosen_place
from .permissions import NEEDED_ROLE, missing, refusal

_OLDEST = (1, 29)
"""`podReplacementPolicy` of Jobs is enabled by default from this version.
https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/"""

_METRICS = "metrics.k8s.io"
INSTALL_METRICS = "Install it for `tfdeploy top`: https://github.com/kubernetes-sigs/metrics-server"

_ENFORCERS: Mapping[str, str] = {
    "crd.projectcalico.org": "Calico",
    "projectcalico.org": "Calico",
    "cilium.io": "Cilium",
    "crd.antrea.io": "Antrea",
    "k8s.ovn.org": "OVN-Kubernetes",
}
"""API groups that only exist with a network plugin that enforces NetworkPolicy. No API of Kubernetes itself reports it."""

_VPC_CNI = "networking.k8s.aws"


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
    listed = {kind: api.list_metadata(kind_path(api.namespace, kind), ID_LABEL) for kind in KINDS}
    if not any(items is not None for items in listed.values()):
        raise Forbidden(f"you may not list what is in {home}. docs/kubernetes-role.yaml has the Role that you need")
    return group_by_cluster("kubernetes", home, PREFIX, list(_labelled(listed)))


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


def checks(api: ApiServer) -> list[Check]:
    """The checks of an API server, for the user and the namespace."""
    try:
        version, permissions = check_version(api), _permissions(api)
        groups = {group["name"] for group in api.get("/apis")["groups"]}
    except BackendError as error:
        return [Check("API server", FAIL, str(error), "Check it with `kubectl get pods`.")]
    return [version, permissions, _network_policy(groups), _metrics(groups)]


def check_version(api: ApiServer) -> Check:
    """The version of the API server.

    Raises:
        ApiError, Unreachable: the server cannot be asked.
    """
    version = api.get("/version")
    number = tuple(int("".join(filter(str.isdigit, version[part])) or 0) for part in ("major", "minor"))
    detail = f"{version['gitVersion']} at {api.server}"
    if number < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        return Check("API server", FAIL, detail, f"Use Kubernetes {oldest} or newer: older ones may run a task twice.")
    return Check("API server", OK, detail)


def _permissions(api: ApiServer) -> Check:
    if permissions := missing(api):
        return Check("permissions", FAIL, refusal(api, permissions), NEEDED_ROLE)
    return Check("permissions", OK, f"all that is needed in {api.namespace}")


def _network_policy(groups: set[str]) -> Check:
    name = "network policy"
    plugins = sorted({_ENFORCERS[group] for group in groups & _ENFORCERS.keys()})
    if plugins:
        return Check(name, OK, f"enforced by {', '.join(plugins)}")
    if _VPC_CNI in groups:
        remedy = "Set enableNetworkPolicy of the add-on vpc-cni, if it is not set."
        return Check(name, WARN, "the VPC CNI of EKS enforces it only where that is enabled", remedy)
    detail = "no network plugin is recognised that enforces it: other pods may reach TensorFlow's ports"
    return Check(name, WARN, detail, "Check it with the administrator, or install Calico or Cilium.")


def _metrics(groups: set[str]) -> Check:
    if _METRICS in groups:
        return Check("metrics-server", OK, "installed")
    return Check("metrics-server", WARN, "not installed", INSTALL_METRICS)
