"""Users who may only do what a role gives them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kube.cluster import Cluster
from tests.pages import ROOT
from tests.waiting import until
from tfdeploy.backends.kubernetes import api
from tfdeploy.backends.kubernetes.api import ApiServer
from tfdeploy.backends.kubernetes.namespace import chosen_place
from tfdeploy.backends.kubernetes.permissions import Permission, missing

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_GROUP = "rbac.authorization.k8s.io"


def documented() -> tuple[dict[str, Any], dict[str, Any]]:
    """The Role and the ClusterRole of docs/kubernetes-role.yaml."""
    in_namespace, for_all = yaml.safe_load_all((ROOT / "docs/kubernetes-role.yaml").read_text())
    return in_namespace, for_all


def grant(kube: Cluster, user: str, made: dict[str, Any], namespace: str = "") -> None:
    """Bind a user to a Role in a namespace; without one, to a ClusterRole."""
    metadata = {"name": user, **({"namespace": namespace} if namespace else {})}
    binding = {
        "apiVersion": made["apiVersion"],
        "kind": f"{made['kind']}Binding",
        "metadata": metadata,
        "subjects": [{"kind": "User", "apiGroup": _GROUP, "name": user}],
        "roleRef": {"apiGroup": _GROUP, "kind": made["kind"], "name": user},
    }
    folder = f"{_RBAC}/namespaces/{namespace}" if namespace else _RBAC
    for item in ({**made, "metadata": metadata}, binding):
        kube.api.apply(f"{folder}/{item['kind'].lower()}s/{user}", item)


def until_missing(server: ApiServer, permissions: tuple[Permission, ...]) -> None:
    """Wait: an API server applies a role a moment after it has stored it."""

    def are_missing() -> bool:
        return missing(server) == permissions

    until(are_missing, f"{len(permissions)} permissions are missing")


@contextmanager
def login(kubeconfig: Path, namespace: str = "default") -> Iterator[ApiServer]:
    """The API server for the user of a kubeconfig. A process logs in at a server once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(kubeconfig))
        api._client.cache_clear()
        yield ApiServer(chosen_place("", namespace).home)
    api._client.cache_clear()


def with_roles(kube: Cluster, user: str, namespace: str = "default") -> Path:
    """The kubeconfig of a user who has what docs/kubernetes-role.yaml has, in a namespace."""
    kubeconfig = kube.user(user)
    in_namespace, for_all = documented()
    grant(kube, user, in_namespace, namespace)
    grant(kube, user, for_all)
    with login(kubeconfig, namespace) as server:
        until_missing(server, ())
    return kubeconfig


@contextmanager
def least_rights(kube: Cluster, user: str) -> Iterator[Path]:
    """The kubeconfig of a user who has the Role of docs/kubernetes-role.yaml, and no more."""
    kubeconfig = kube.user(user)
    grant(kube, user, documented()[0], "default")
    with login(kubeconfig) as server:
        until_missing(server, ())
        yield kubeconfig
