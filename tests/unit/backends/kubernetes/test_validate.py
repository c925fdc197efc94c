"""What a preview refuses and warns of, before anything is created."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.backends.kubernetes.fake_api import EVERYTHING, FakeApi
from tests.unit.cases import inventory
from tfdeploy.backends.kubernetes.api import FORBIDDEN, ApiError
from tfdeploy.backends.kubernetes.validate import refuse
from tfdeploy.errors import SpecError
from tfdeploy.plan.plan import make_plan
from tfdeploy.spec.cluster import cluster_spec

GIB = 1 << 30
NODE = {
    "metadata": {"name": "node-1", "labels": {"zone": "a"}},
    "spec": {},
    "status": {"allocatable": {"cpu": "3920m", "memory": "14Gi", "pods": "110"}},
}
TAINTED = {
    "metadata": {"name": "node-2", "labels": {"zone": "a"}},
    "spec": {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"cpu": "8", "memory": "30Gi", "nvidia.com/gpu": "2"}},
}


def warnings(
    objects: dict[str, Any], existing: tuple[str, ...] = (), rules: Any = EVERYTHING, **args: Any
) -> list[str]:
    made = cluster_spec("mnist", {"command": ["python", "-c", "0"], "workers": 2, "backend": "kubernetes", **args})
    places = replace(inventory(made), machines=(), places_tasks=True)
    return refuse(FakeApi(objects, [rules]), made, make_plan(made, places, ""), (), existing)


def refused(objects: dict[str, Any], **args: Any) -> SpecError:
    with pytest.raises(SpecError) as error:
        warnings(objects, **args)
    return error.value


def job(**settings: Any) -> dict[str, Any]:
    return {"jobs": {"worker": settings}}


def test_nothing_is_wrong() -> None:
    nodes = {"/api/v1/nodes": {"items": [NODE]}}
    assert warnings(nodes, **job(cpus=3.9, memory="14GiB", kubernetes={"node_selector": {"zone": "a"}})) == []


@pytest.mark.parametrize(
    ("args", "where"),
    [
        ({"container": {"network": "host"}}, "container.network"),
        ({"container": {"subnet": "10.20.0.0/24"}}, "container.subnet"),
        ({"container": {"user": "me"}}, "container.user"),
        ({"container": {"user": "1000:users"}}, "container.user"),
    ],
)
def test_what_pods_cannot_have_is_refused(args: dict[str, Any], where: str) -> None:
    assert refused({}, **args).where == f"mnist: {where}"


def test_a_namespace_must_exist() -> None:
    path = "/api/v1/namespaces/training"
    error = refused({path: None})
    assert error.where == "mnist: kubernetes.namespace"
    assert "kubectl create namespace training" in error.remedy
    assert "being deleted" in refused({path: {"metadata": {"deletionTimestamp": "2026-11-26T00:00:00Z"}}}).wrong
    assert warnings({path: FORBIDDEN}) == []


@pytest.mark.parametrize(
    ("level", "container", "where"),
    [
        ("restricted", {}, "container.user"),
        ("restricted", {"user": "0:1000"}, "container.user"),
        ("restricted", {"user": "1000:0"}, None),
        ("restricted", {"user": "1000", "volumes": ["/data:/data"]}, "container.volumes"),
        ("baseline", {"volumes": ["/data:/data"]}, "container.volumes"),
        ("baseline", {}, None),
        ("privileged", {"volumes": ["/data:/data"]}, None),
    ],
)
def test_what_the_security_of_the_namespace_forbids_is_refused(
    level: str, container: dict[str, Any], where: str | None
) -> None:
    labels = {"pod-security.kubernetes.io/enforce": level}
    objects = {"/api/v1/namespaces/training": {"metadata": {"name": "training", "labels": labels}}}
    if where is None:
        assert warnings(objects, container=container) == []
    else:
        assert refused(objects, container=container).where == f"mnist: {where}"


def test_an_old_server_is_refused() -> None:
    error = refused({"/version": {"major": "1", "minor": "28+", "gitVersion": "v1.28.9"}})
    assert "v1.28.9" in error.wrong
    assert "1.29" in error.remedy


def test_missing_permissions_are_printed_as_a_role() -> None:
    error = refused({}, rules={"apiGroups": ["", "apps", "networking.k8s.io"], "resources": ["*"], "verbs": ["*"]})
    assert error.where == "mnist: kubernetes"
    assert "create jobs, delete jobs" in error.wrong
    assert "kind: Role" in error.remedy
    assert "- batch" in error.remedy
    assert "secrets" not in error.remedy


@pytest.mark.parametrize(
    ("argument", "path"),
    [
        ("storage_class", "/apis/storage.k8s.io/v1/storageclasses"),
        ("priority_class", "/apis/scheduling.k8s.io/v1/priorityclasses"),
        ("service_account", "/api/v1/namespaces/training/serviceaccounts"),
        ("queue", "/apis/kueue.x-k8s.io/v1beta1/namespaces/training/localqueues"),
    ],
)
def test_what_an_argument_names_must_exist(argument: str, path: str) -> None:
    items = {path: {"items": [{"metadata": {"name": "standard"}}]}, f"{path}/standard": {"metadata": {}}}
    assert warnings(items, kubernetes={argument: "standard"}) == []
    error = refused(items, kubernetes={argument: "standart"})
    assert error.where == f"mnist: kubernetes.{argument}"
    assert error.remedy == "Did you mean 'standard'?"
    assert warnings({f"{path}/secret": FORBIDDEN}, kubernetes={argument: "secret"}) == []


def test_a_job_and_a_list_name_objects_too() -> None:
    assert refused({}, **job(kubernetes={"priority_class": "low"})).where == "mnist: kubernetes.priority_class"
    assert refused({}, kubernetes={"image_pull_secrets": ["mine"]}).where == "mnist: kubernetes.image_pull_secrets"


def test_a_claim_must_exist_and_a_folder_of_a_node_is_none() -> None:
    claims = "/api/v1/namespaces/training/persistentvolumeclaims"
    objects: dict[str, Any] = {f"{claims}/data": {"metadata": {}}, claims: {"items": [{"metadata": {"name": "data"}}]}}
    assert warnings(objects, container={"volumes": ["data:/data", "/srv:/srv"]}) == []
    own = {"metadata": {"name": "date-record", "labels": {"tfdeploy/cluster-id": "k3v9x2abcd"}}}
    objects[claims]["items"] = [own, *objects[claims]["items"]]
    error = refused(objects, **job(container={"volumes": ["date:/data"]}))
    assert (error.where, error.remedy) == ("mnist: container.volumes", "Did you mean 'data'?")


def test_a_quota_that_has_too_little_left() -> None:
    hard = {"requests.cpu": "4", "limits.memory": "8Gi", "pods": "10", "services": "1"}
    used = {"requests.cpu": "3", "limits.memory": "2Gi", "pods": "9"}
    quota = {"metadata": {"name": "team"}, "status": {"hard": hard, "used": used}}
    objects = {"/api/v1/namespaces/training/resourcequotas": {"items": [quota]}}
    (warning,) = warnings(objects, **job(cpus=1, memory="3GiB"))
    assert "the quota team of training" in warning
    assert "requests.cpu 2 of 1 left" in warning
    assert "pods 3 of 1 left" in warning, "one is the controller"
    assert "memory" not in warning
    assert warnings(objects, existing=("worker-0",), **job(cpus=1)) == []


def test_a_quota_of_processors_needs_defaults_for_the_controller() -> None:
    quota = {"metadata": {"name": "team"}, "status": {"hard": {"requests.cpu": "9", "pods": "9"}}}
    of_namespace = "/api/v1/namespaces/training"
    objects = {f"{of_namespace}/resourcequotas": {"items": [quota]}, f"{of_namespace}/limitranges": {"items": []}}
    (warning,) = warnings(objects)
    assert "counts requests.cpu: the controller's pod is refused without a LimitRange" in warning
    for limits in (limit_range(type="Container", default={"cpu": "1"}), FORBIDDEN):
        assert warnings({**objects, f"{of_namespace}/limitranges": limits}) == []


def limit_range(**limit: Any) -> dict[str, Any]:
    return {"items": [{"metadata": {"name": "sizes"}, "spec": {"limits": [limit]}}]}


CONTROLLER_IS_REFUSED = "the LimitRange sizes of training refuses the pod of controller: "


@pytest.mark.parametrize(
    ("limit", "settings", "wrong"),
    [
        ({"max": {"memory": "1Gi"}, "default": {"memory": "1Gi"}}, {"memory": "2GiB"}, "memory 2 GiB is more than 1Gi"),
        ({"min": {"cpu": "500m"}, "defaultRequest": {"cpu": "500m"}}, {"cpus": 0.2}, "cpu 0.2 is less than 500m"),
        ({"max": {"cpu": "1"}, "default": {"cpu": "1"}, "min": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}, {}, ""),
        (
            {"maxLimitRequestRatio": {"cpu": "1"}, "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}},
            {"cpus": 9},
            "",
        ),
    ],
)
def test_a_task_that_a_limit_range_refuses(limit: dict[str, Any], settings: dict[str, Any], wrong: str) -> None:
    objects = {"/api/v1/namespaces/training/limitranges": limit_range(type="Container", **limit)}
    found = warnings(objects, **job(**settings))
    expected = f"the LimitRange sizes of training refuses the pod of worker-0: {wrong} per Container"
    assert found == ([expected] if wrong else [])


@pytest.mark.parametrize(
    ("limit", "wrong"),
    [
        ({"type": "Pod", "max": {"memory": "1Gi"}}, "memory has no limit, and 1Gi per Pod is the maximum"),
        (
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            "the limit of cpu may be 2 times its request per Container",
        ),
    ],
)
def test_the_controller_names_no_sizes(limit: dict[str, Any], wrong: str) -> None:
    objects = {"/api/v1/namespaces/training/limitranges": limit_range(**limit)}
    assert warnings(objects, **job(memory="1GiB", cpus=1)) == [CONTROLLER_IS_REFUSED + wrong]
    assert warnings(objects, existing=("worker-0",), **job(memory="1GiB", cpus=1)) == []


@pytest.mark.parametrize(
    ("settings", "unmet"),
    [
        ({"cpus": 5}, "5 CPUs"),
        ({"memory": "15GiB"}, "15 GiB"),
        ({"gpus": 3}, "3 nvidia.com/gpu"),
        ({"kubernetes": {"node_selector": {"zone": "b"}}}, "the labels {'zone': 'b'}"),
    ],
)
def test_a_task_that_no_node_could_take(settings: dict[str, Any], unmet: str) -> None:
    (warning,) = warnings({"/api/v1/nodes": {"items": [NODE, TAINTED]}}, **job(**settings))
    assert f"no node has {unmet} for worker-0 (node-1, node-2)" in warning


def test_taints_count_unless_they_are_tolerated() -> None:
    tainted = {"/api/v1/nodes": {"items": [TAINTED]}}
    assert len(warnings(tainted)) == 1
    for toleration in ("*", "nvidia.com/gpu", "nvidia.com/gpu=present:NoSchedule"):
        assert warnings(tainted, kubernetes={"tolerations": [toleration]}) == []
    for toleration in ("nvidia.com/gpu=absent", "nvidia.com/gpu:NoExecute", "other"):
        assert len(warnings(tainted, kubernetes={"tolerations": [toleration]})) == 1
    assert warnings(tainted, **job(gpus=1)) == []
    cordoned = {**NODE, "spec": {"taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]}}
    assert warnings({"/api/v1/nodes": {"items": [cordoned]}}) == []


def test_nodes_that_may_not_be_read_are_not_checked() -> None:
    assert warnings({"/api/v1/nodes": FORBIDDEN}, **job(cpus=500)) == []


def test_a_server_that_fails_is_no_answer() -> None:
    with pytest.raises(ApiError, match="it fails"):
        warnings({"/api/v1/nodes": ApiError(500, "InternalError", "it fails")})
