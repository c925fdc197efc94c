"""What a user without rights learns, on a real API server, and that the documented Role is enough; what a preview checks there."""

from collections.abc import Iterator
from functools import partial

import pytest

from tests.kube.cluster import Cluster
from tests.kubernetes.rights import documented, grant, login, until_missing
from tests.unit.backends.kubernetes.fake_api import checked
from tests.waiting import until
from tfdeploy.backends.base import FAIL, OK, WARN
from tfdeploy.backends.kubernetes.api import ApiServer
from tfdeploy.backends.kubernetes.discover import checks
from tfdeploy.backends.kubernetes.permissions import NEEDED, missing
from tfdeploy.backends.kubernetes.planner import place_of
from tfdeploy.errors import SpecError

pytestmark = pytest.mark.full

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
    assert missing(api) == NEEDED
    states = {check.what: check.state for check in checks(api)}
    assert states == {"API server": OK, "permissions": FAIL, "network policy": WARN, "metrics-server": WARN}
    in_namespace, _ = documented()
    grant(kube, USER, {**in_namespace, "rules": in_namespace["rules"][1:]}, NAMESPACE)
    until_missing(api, NEEDED[:1])
    grant(kube, USER, in_namespace, NAMESPACE)
    until_missing(api, ())
    (namespace,) = (item for item in kube.api.items("/api/v1/namespaces") if item["metadata"]["name"] == NAMESPACE)
    assert place_of(api)["id"] == namespace["metadata"]["uid"], "the id of a place is the same for all its users"


def test_with_both_roles_a_preview_sees_nodes_quotas_and_classes(kube: Cluster, api: ApiServer) -> None:
    in_namespace, for_all = documented()
    grant(kube, USER, in_namespace, NAMESPACE)
    grant(kube, USER, for_all)
    until_missing(api, ())

    warnings = partial(checked, api)

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
    assert len(warnings()) == 1
    sizes = {"type": "Container", "max": {"memory": "1Gi"}, "default": {"memory": "1Gi"}}
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "sizes"}, "spec": {"limits": [sizes]}}
    kube.api.apply(f"/api/v1/namespaces/{NAMESPACE}/limitranges/sizes", limits)

    def refuses_the_large_pod() -> bool:
        texts = [
            text for text in warnings(jobs={"worker": {"memory": "2GiB"}}) if "Kubernetes would not create" in text
        ]
        return ["worker-0 now" in text and "maximum memory usage" in text for text in texts] == [True]

    until(
        refuses_the_large_pod, "the LimitRange is applied", seen=lambda: warnings(jobs={"worker": {"memory": "2GiB"}})
    )
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}
    kube.api.apply(f"/api/v1/namespaces/{NAMESPACE}", namespace)
    user = {"container": {"user": "1000:1000"}}
    with pytest.raises(SpecError, match=r"violates PodSecurity .*runAsNonRoot"):
        until(lambda: warnings() == [], "Pod Security is enforced")
    assert "PodSecurity" not in str(warnings(**user))
    with pytest.raises(SpecError, match=r"violates PodSecurity .*hostPath"):
        warnings(container={**user["container"], "volumes": ["/data:/data"]})
    assert kube.api.items(f"/api/v1/namespaces/{NAMESPACE}/pods") == [], "a preview creates nothing"
