"""What is deleted or spoilt outside of Pulumi is named, and `pulumi up --refresh` makes it again: in a training, and after it."""

from typing import Any

import pytest

from tests.kube.cluster import Cluster
from tests.kubernetes.project import KubernetesProject
from tests.kubernetes.test_failures import STEPS, trains_on
from tests.verbs import Verbs
from tests.waiting import until
from tfdeploy.backends.kubernetes.api import MERGE
from tfdeploy.backends.kubernetes.labels import TRAIN, controller_pod, object_name, prefix

pytestmark = pytest.mark.full

JOB = (
    'command=["python", "train.py"], code="code", chief=True, workers=1, wait="0", secrets={"KEY": "a-value"}, '
    'env={"COUNTER": __import__("os").environ["COUNTER"]}'
)
LOST = "lost"
ENDS = STEPS.replace(
    "    time.sleep(0.1)\n", '    time.sleep(0.1)\n    if (folder / ".end").exists():\n        break\n'
)


def kinds(project: KubernetesProject) -> list[tuple[str, str]]:
    """Each object of the cluster, but its pods: those of the controller last, its claim before them."""
    order = ("Service", "NetworkPolicy", "Secret", "ConfigMap", "Job", "PersistentVolumeClaim", "StatefulSet")
    return [(kind, item["metadata"]["name"]) for kind in order for item in project.objects.list(kind)]


def delete(project: KubernetesProject, kind: str, name: str) -> None:
    """As `kubectl delete`; a claim is released by the end of the pod that mounts it."""
    objects = project.objects
    objects.delete(kind, name)
    if kind == "PersistentVolumeClaim":
        objects.delete("Pod", controller_pod(project.cluster))
    until(lambda: objects.read(kind, name) is None, f"{kind} {name} is gone")


def assert_made_again(project: KubernetesProject, deleted: list[tuple[str, str]], is_open: bool) -> None:
    """An update fails while the run is open and names what is gone, as `explain` and `status` do. `--refresh` makes it again."""
    plain = project.up(fails=is_open)
    verbs = Verbs(project.program, project.env)
    said = [plain.output, *(str(verbs.call(verb)[1]) for verb in ("status", "explain"))]
    for text in said if is_open else ():
        words = "".join(text.split())
        assert deleted[0][1] in words, text
        assert "`pulumiup--refresh`creates" in words, text
    project.up("--refresh")
    for kind, name in deleted:
        assert project.objects.read(kind, name) is not None, (kind, name)
    assert list(project.up("--refresh").steps()) == ["unchanged"]


def test_what_is_deleted_while_it_trains_is_made_again_and_the_run_goes_on(project: KubernetesProject) -> None:
    project.write(JOB, ENDS)
    project.up()
    project.until_running("chief-0", "worker-0")
    everything = kinds(project)
    assert {kind for kind, _ in everything} >= {"Service", "NetworkPolicy", "Secret", "ConfigMap", "Job", "StatefulSet"}
    no_pods = [item for item in everything if item[0] not in ("Job", "PersistentVolumeClaim", "StatefulSet")]
    for kind, name in no_pods:
        delete(project, kind, name)
    assert_made_again(project, no_pods, is_open=True)
    assert project.counts() == {"chief-0": 1, "worker-0": 1}

    worker = object_name(project.cluster, "worker-0")
    give_address(project, prefix(project.cluster))
    spoil(project, "Secret", worker, {"data": {"token": "b3RoZXI="}})
    spoil(project, "Job", worker, {"spec": {"activeDeadlineSeconds": 1}})
    until(lambda: not project.objects.tasks()["worker-0"].alive, "the Job has failed", seen=project.objects.tasks)
    assert_made_again(project, [("Job", worker)], is_open=True)
    assert (
        project.objects.api.get(project.objects.path("Service", prefix(project.cluster)))["spec"]["clusterIP"] == "None"
    )
    until(lambda: project.counts()["worker-0"] == 2, "worker-0 starts again", seen=project.objects.tasks)

    train = object_name(project.cluster, TRAIN)  # the tasks mount it, so that Kubernetes retains it as long as they run
    for item in [item for item in everything if item not in no_pods and item[1] != train]:
        delete(project, *item)
        assert_made_again(project, [item], is_open=True)
        project.until_running("chief-0", "worker-0")
        trains_on(project, "chief-0")
        trains_on(project, "worker-0")
    assert project.counts() == {"chief-0": 2, "worker-0": 3}

    (project.folder / "counter/.end").touch()
    project.up(env={"TFDEPLOY_WAIT": "120"})
    assert project.outputs()["state"] == "succeeded"
    for item in everything:
        delete(project, *item)
    assert_made_again(project, everything, is_open=False)
    assert (project.outputs()["state"], project.counts()) == ("succeeded", {"chief-0": 2, "worker-0": 3})
    project.destroy()


def spoil(project: KubernetesProject, kind: str, name: str, change: dict[str, Any]) -> None:
    """As `kubectl patch`."""
    project.objects.api.json("PATCH", project.objects.path(kind, name), change, MERGE)


def give_address(project: KubernetesProject, name: str) -> None:
    """As `kubectl delete` and `kubectl expose`: a Service of this name that has an address, which the API server changes no more."""
    service = project.objects.read("Service", name)
    assert service is not None
    delete(project, "Service", name)
    ports = [{"port": port["port"]} for port in service["spec"].get("ports", [{"port": 80}])]
    spec = {"selector": {"app": "other"}, "ports": ports}
    metadata = {"name": name, "labels": service["metadata"]["labels"]}
    project.objects.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})


def test_a_deleted_namespace_is_named_and_destroy_leads_out(kube: Cluster, project: KubernetesProject) -> None:
    kube.api.apply(f"/api/v1/namespaces/{LOST}", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LOST}})
    project.env["KUBECONFIG"] = str(kube.kubeconfig)  # the Role of another user would go with the namespace
    project.set("tfdeploy:kubernetes.namespace", LOST, "--path")
    project.write('command=["python", "-c", "print(1)"], workers=1')
    project.up()
    kube.api.delete(f"/api/v1/namespaces/{LOST}")
    namespaces = "/api/v1/namespaces"
    until(lambda: all(item["metadata"]["name"] != LOST for item in kube.api.items(namespaces)), "it is gone")
    words = " ".join(project.up("--refresh", fails=True).output.split())
    assert f"is in the namespace '{LOST}', which" in words
    assert "If the namespace was deleted, `pulumi destroy` removes the cluster from the stack." in words
    project.destroy()
