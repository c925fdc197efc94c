"""What a user without rights learns, on a real API server, and that the documented Role is enough; what a preview checks there."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.kube.cluster import Cluster
from tests.kubernetes.rights import documented, grant, login, until_missing
from tests.unit.cases import inventory
from tests.waiting import until
from tfdeploy.backends.base import FAIL, OK, WARN
from tfdeploy.backends.kubernetes.api import ApiServer
from tfdeploy.backends.kubernetes.discover import checks
from tfdeploy.backends.kubernetes.permissions import RULES, missing, role
from tfdeploy.backends.kubernetes.planner import place_of
from tfdeploy.backends.kubernetes.validate import refuse
from tfdeploy.errors import SpecError
from tfdeploy.plan.plan import make_plan
from tfdeploy.spec.cluster import cluster_spec

NAMESPACE, USER = "permissions", "nobody"


@pytest.fixture
def api(kube: Cluster) -> Iterator[ApiServer]:
    """The API server for a user who may do nothing, and a namespace of its own."""
    path = f"/api/v1/namespaces/{NAMESPACE}"
    kube.api.apply(path, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    with login(kube.user(USER, namespace=NAMESPACE), NAMESPACE) as server:
        yield server
    kube.api.delete(path)
    namespaces = "/api/v1/namespaces"
    until(lambda: all(item["metadata"]["name"] != NAMESPACE for item in kube.api.items(namespaces)), "it is gone")


def test_the_documented_role_is_all_that_is_missing(kube: Cluster, api: ApiServer) -> None:
    assert missing(api) == RULES
    states = {check.what: check.state for check in checks(api)}
    assert states == {"API server": OK, "permissions": FAIL, "network policy": WARN, "metrics-server": WARN}
    grant(kube, USER, role(NAMESPACE, RULES[1:]), NAMESPACE)
    until_missing(api, RULES[:1])
    grant(kube, USER, documented()[0], NAMESPACE)
    until_missing(api, ())
    (namespace,) = (item for item in kube.api.items("/api/v1/namespaces") if item["metadata"]["name"] == NAMESPACE)
    assert place_of(api)["id"] == namespace["metadata"]["uid"], "the id of a place is the same for all its users"


def test_with_both_roles_a_preview_sees_nodes_quotas_and_classes(kube: Cluster, api: ApiServer) -> None:
    in_namespace, for_all = documented()
    grant(kube, USER, in_namespace, NAMESPACE)
    grant(kube, USER, for_all)
    until_missing(api, ())

    def warnings(**args: Any) -> list[str]:
        asked = {"command": ["python", "-c", "0"], "workers": 2, "backend": "kubernetes", **args}
        made = cluster_spec("mnist", asked)
        places = replace(inventory(made), machines=(), places_tasks=True)
        return refuse(api, made, make_plan(made, places, ""), (), ())

    def waits_for_gpus() -> bool:
        return any(
            "no node has 1 nvidia.com/gpu for worker-0" in text for text in warnings(jobs={"worker": {"gpus": 1}})
        )

    until(waits_for_gpus, "the nodes may be read")
    assert warnings(kubernetes={"storage_class": "folders", "priority_class": "system-node-critical"}) == []
    with pytest.raises(SpecError, match="Did you mean 'folders'"):
        warnings(kubernetes={"storage_class": "folder"})
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}, "spec": {"hard": {"pods": "1"}}}
    kube.api.apply(f"/api/v1/namespaces/{NAMESPACE}/resourcequotas/team", quota)
    until(lambda: any("pods 3 of 1 left" in text for text in warnings()), "the quota is counted")
