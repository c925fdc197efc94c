"""What fails ends no healthy program, and a lost node's task starts elsewhere only when its pod is gone."""

import pytest

from tests.kube.cluster import Cluster
from tests.kubernetes.project import KubernetesProject
from tests.waiting import until
from tfdeploy.agent.record.record import ViewRequest
from tfdeploy.backends.base import CONTROLLER
from tfdeploy.backends.kubernetes.backend import BACKEND
from tfdeploy.backends.kubernetes.labels import controller_pod
from tfdeploy.errors import BackendError

pytestmark = pytest.mark.full

STEPS = """\
import os, pathlib, time
folder, hostname = pathlib.Path(os.environ["COUNTER"]), os.environ["TFDEPLOY_HOSTNAME"]
counter = folder / hostname
counter.write_text(str(int(counter.read_text() if counter.exists() else 0) + 1))
step, draft = folder / f".{hostname}", folder / f".{hostname}.draft"
for number in range(int(step.read_text()) if step.exists() else 0, 1_000_000):
    draft.write_text(str(number))
    draft.replace(step)
    time.sleep(0.1)
"""
"""Trains until it is stopped. A file has its step, from which it continues."""

FIRST, SECOND = ({"kubernetes": {"node_selector": {"kubernetes.io/hostname": node}}} for node in ("node-1", "node-2"))
JOB = (
    'command=["python", "train.py"], code="code", chief=True, workers=1, wait="0", '
    'env={"COUNTER": __import__("os").environ["COUNTER"]}, '
    f'kubernetes={FIRST["kubernetes"]}, jobs={{"worker": {SECOND}}}'
)


def trains_on(project: KubernetesProject, hostname: str) -> None:
    """Wait until the program has done another step, or its first: a task that runs may not have done that."""
    file = project.folder / "counter" / f".{hostname}"

    def step() -> str:
        return file.read_text() if file.exists() else ""

    before = step()
    until(lambda: step() != before, f"{hostname} trains on", seen=lambda: str(project.counts()))


def nodes(kube: Cluster) -> list[str]:
    """The names of the nodes."""
    return [item["metadata"]["name"] for item in kube.api.items("/api/v1/nodes")]


def quota(kube: Cluster, pods: int | None) -> None:
    """Allow so many pods; None for any number."""
    path = "/api/v1/namespaces/default/resourcequotas/few"
    hard = {"hard": {"pods": str(pods)}}
    kube.api.delete(path) if pods is None else kube.api.apply(
        path, {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": hard}
    )


def is_evicted_and_resumes(kube: Cluster, project: KubernetesProject) -> None:
    """The node of worker-0 is drained while a quota forbids another pod: each reason why it does not run is said."""
    node, step = kube.nodes[1], project.folder / "counter/.worker-0"

    def until_reason(text: str) -> None:
        until(
            lambda: text in project.objects.tasks()["worker-0"].reason,
            f"worker-0: {text}",
            seen=lambda: project.objects.tasks()["worker-0"],
        )

    quota(kube, 0)
    node.drain("default")
    until_reason("exceeded quota: few")
    reached = int(step.read_text())
    quota(kube, None)
    until_reason("unschedulable")
    trains_on(project, "chief-0")
    node.cordon(False)
    until(lambda: project.counts()["worker-0"] == 2, "worker-0 starts again", seen=project.objects.tasks)
    trains_on(project, "worker-0")
    assert int(step.read_text()) >= reached > 0
    assert project.counts() == {"chief-0": 1, "worker-0": 2}


def test_what_fails_ends_no_healthy_program(kube: Cluster, project: KubernetesProject) -> None:
    project.write(JOB, STEPS)
    project.up()
    project.until_running("chief-0", "worker-0")
    once = {"chief-0": 1, "worker-0": 1}

    with kube.without_api():
        trains_on(project, "worker-0")
        observed = BACKEND.runner.observe(project.cluster, "", ViewRequest())
        assert observed.engine is None
        assert "does not respond" in observed.problems[0]
    project.until_running("chief-0", "worker-0")

    former = project.objects.read("Pod", controller_pod(project.cluster))
    assert former is not None
    project.objects.delete("Pod", controller_pod(project.cluster))
    until(
        lambda: project.look().engine and project.objects.tasks()[CONTROLLER].state == "running", "another controller"
    )
    trains_on(project, "chief-0")
    assert project.counts() == once

    with pytest.raises(BackendError, match="no metrics-server"):
        BACKEND.access.usage(project.cluster)
    is_evicted_and_resumes(kube, project)
    once = project.counts()

    node = kube.nodes[1]
    with node.cut():
        node.wait_lost()
        trains_on(project, "worker-0")
        assert project.look().machines.status("node-2").startswith("unreachable since")
    node.wait_ready()
    trains_on(project, "worker-0")
    assert project.counts() == once, "the kubelet has ended nothing"

    node.kill()
    node.wait_lost()
    observed = project.look()
    assert "kubectl delete node node-2" in observed.machines.remedies["node-2"]
    assert len(project.objects.pods()["worker-0"]) == 1
    trains_on(project, "chief-0")
    kube.api.delete(node.path)
    kube.start_node(node)
    until(lambda: node.name in nodes(kube), "the node registers again")
    node.wait_ready()
    until(lambda: project.counts()["worker-0"] == 3, "worker-0 starts again", seen=lambda: str(project.objects.tasks()))
    assert project.counts() == {"chief-0": 1, "worker-0": 3}
    project.destroy()


def test_an_update_waits_for_the_api_server_and_a_run_for_the_node_of_its_controller(
    kube: Cluster, project: KubernetesProject
) -> None:
    # An API server that has just started refuses a user whose roles it has not read yet.
    project.env["KUBECONFIG"] = str(kube.kubeconfig)
    project.write(JOB, STEPS)
    update = project.start("up", "--yes", "--skip-preview", "--stack", project.stack)
    until(lambda: any(name.startswith("jobs/") for name in kube.left()), "the first Job exists")
    with kube.without_api():
        pass
    output, _ = update.communicate()
    assert update.returncode == 0, output
    project.until_counts({"chief-0": 1, "worker-0": 1})

    node = kube.nodes[0]
    node.kill()
    node.wait_lost()
    trains_on(project, "worker-0")
    kube.start_node(node)
    node.wait_ready()
    until(lambda: project.counts()["chief-0"] == 2, "chief-0 starts again", seen=lambda: str(project.objects.tasks()))
    project.until_running("chief-0", "worker-0")
    trains_on(project, "chief-0")
    trains_on(project, "worker-0")
    assert project.counts() == {"chief-0": 2, "worker-0": 1}
    project.destroy()
