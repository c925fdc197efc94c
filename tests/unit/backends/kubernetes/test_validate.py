"""What a preview refuses and warns of, before anything is created."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.backends.kubernetes.fake_api import FakeApi, checked, previewed
from tfdeploy.backends.kubernetes.api import FORBIDDEN, ApiError
from tfdeploy.errors import SpecError
from tfdeploy.spec.unknown_values import Unknown

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
    objects: dict[str, Any],
    existing: tuple[str, ...] = (),
    refusal: str = "",
    denied: tuple[str, ...] = (),
    **args: Any,
) -> Sequence[str]:
    return checked(FakeApi(objects, denied, refusal), existing, **args)


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


def test_what_is_lost_with_a_pod_is_a_warning_and_removed_by_destroy() -> None:
    warned, retained = previewed(FakeApi({}), has_storage=False)
    assert "the record is lost with the controller's pod" in warned[0]
    assert "checkpoints are lost with the pod of their task" in warned[1]
    assert retained[-2:] == ("`pulumi destroy` removes:", "  checkpoints: /train in the pod of each task")


def test_a_namespace_must_exist() -> None:
    path = "/api/v1/namespaces/training"
    error = refused({path: None})
    assert error.where == "mnist: kubernetes.namespace"
    assert "kubectl create namespace training" in error.remedy
    assert "being deleted" in refused({path: {"metadata": {"deletionTimestamp": "2026-11-26T00:00:00Z"}}}).wrong
    assert warnings({path: FORBIDDEN}) == []


def test_a_pod_that_the_api_server_would_not_create_is_a_warning_in_its_words() -> None:
    api = FakeApi({}, refused="maximum memory usage per Container is 1Gi, but limit is 2Gi")
    found = checked(api, ps=1, jobs={"worker": {"memory": "2GiB"}})
    assert [text.partition(": ")[0] for text in found] == [
        f"Kubernetes would not create the pod of {hostname} now" for hostname in ("controller", "worker-0", "ps-0")
    ]
    assert found[0].endswith(api.refused)
    pod = next(item for item in api.tried if item["metadata"]["name"].endswith("-worker-0"))
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"memory": str(2 * GIB)}
    assert len(checked(api, ("worker-0",))) == 1, "the controller and the first task exist"


def test_what_the_security_of_the_namespace_forbids_is_refused() -> None:
    words = 'pods "mnist-worker-0" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true'
    error = refused({}, refusal=words)
    assert (error.where, error.wrong) == ("mnist: container", words)
    assert "container.user" in error.remedy


def test_pods_are_not_tried_without_the_permission_or_before_they_are_known() -> None:
    assert checked(FakeApi({}, ["create pods"], "it is forbidden")) == []
    api = FakeApi({})
    checked(api, container={"image": Unknown("container.image")})
    assert api.tried == []


def test_an_old_server_is_refused_and_missing_permissions_are_named_with_the_documented_role() -> None:
    old = refused({"/version": {"major": "1", "minor": "28+", "gitVersion": "v1.28.9"}})
    assert ("v1.28.9" in old.wrong, "1.29" in old.remedy) == (True, True)
    error = refused({}, denied=("create jobs", "delete jobs"))
    assert (error.where, error.wrong) == ("mnist: kubernetes", "you may not create jobs, delete jobs in training")
    assert "docs/kubernetes-role.yaml" in error.remedy


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
    assert warnings(objects, refusal="exceeded quota: team", **job(cpus=1, memory="3GiB")) == [warning]
    assert warnings(objects, existing=("worker-0",), **job(cpus=1)) == []


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


def test_nodes_that_may_not_be_read_are_not_checked_and_a_failure_is_no_answer() -> None:
    assert warnings({"/api/v1/nodes": FORBIDDEN}, **job(cpus=500)) == []
    with pytest.raises(ApiError, match="it fails"):
        warnings({"/api/v1/nodes": ApiError(500, "InternalError", "it fails")})
