"""Whether a Kubernetes cluster has what tfdeploy needs."""

from collections.abc import Mapping

from ...errors import BackendError
from ..base import FAIL, OK, WARN, Check
from .api import ApiServer
from .permissions import NEEDED_ROLE, missing, verbs_of

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
    rules = missing(api)
    if not rules:
        return Check("permissions", OK, f"all that is needed in {api.namespace}")
    detail = f"you may not {verbs_of(rules)} in {api.namespace}"
    return Check("permissions", FAIL, detail, NEEDED_ROLE)


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
