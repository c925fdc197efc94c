"""Clusters on a Kubernetes under random faults: their objects, pods and processes, its nodes, and its API server."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

import psutil

from tests.chaos.cluster import Apply, Cluster, Running, variables
from tests.chaos.common_faults import COMMON
from tests.chaos.process_faults import CONTROLLER, PROCESSES, later
from tests.chaos.schedule import Kind, Step
from tests.engine.images import PYTHON
from tests.kube import processes
from tests.kube.cluster import Cluster as Kubernetes
from tests.kube.cluster import cluster
from tests.kube.images import archive
from tests.kube.node import Node
from tests.kube.programs import kube
from tests.kubernetes.project import KubernetesProject
from tfdeploy.backends.kubernetes.labels import RECORD, object_name
from tfdeploy.errors import BackendError

SUPPLIES = ("Service", "Secret", "ConfigMap", "NetworkPolicy", "StatefulSet")
"""The kinds of objects that no program ends with. A claim that is deleted stays as long as a pod uses it."""


@contextmanager
def shared() -> Iterator[Kubernetes]:
    """The Kubernetes of the tests, for all clusters of one call of the command."""
    with cluster(kube(), archive()) as made, variables({"KUBECONFIG": str(made.kubeconfig)}):
        yield made


class KubernetesCluster(Cluster):
    """One cluster in its namespace."""

    COPIES = "kubernetes"
    COMMAND_SECONDS = 240.0
    END_SECONDS = 240.0
    POLL_SECONDS = 1.0

    project: KubernetesProject

    def __init__(self, folder: Path, kubernetes: Kubernetes, stack: str) -> None:
        project = KubernetesProject(folder, kubernetes.kubeconfig, PYTHON)
        project.stack = stack
        super().__init__(project)
        self.kubernetes = kubernetes

    def left(self) -> list[str]:
        with suppress(AssertionError):
            self.project.assert_nothing_left()
        report = " ".join(self.story.outputs.values())
        found = [(kind, name) for kind, names in self.project.left().items() for name in names]
        return [f"{kind} {name}" for kind, name in found if name not in report]

    def storage_exists(self, train_dir: str) -> bool:
        return bool(self.names("PersistentVolumeClaim"))

    def state(self) -> str:
        """As the controller has it: the user's copy of the record is brought up to date by being asked for."""
        state = str(self.shown(must=False).get("state", ""))
        return state if state in ("succeeded", "failed", "stopped") else ""

    def names(self, kind: str, role: str = "") -> list[str]:
        """The names of the cluster's objects of a kind, or of those of a task or of the controller; none that is being deleted."""
        with suppress(BackendError):
            found = [item["metadata"] for item in self.project.objects.list(kind)]
            return sorted(one["name"] for one in found if f"-{role}" in one["name"] and "deletionTimestamp" not in one)
        return []

    def delete(self, kind: str, name: str) -> str:
        """Delete an object as `kubectl delete` does; what was done."""
        with suppress(BackendError):
            self.project.objects.delete(kind, name)
            return f"deleted {kind} {name}"
        return ""

    def process(self, role: str) -> psutil.Process | None:
        """The first process in the pod of a task or of the controller: processes of pods are also processes of this computer."""
        with suppress(BackendError):
            marks = [f"pod{pod['metadata']['uid']}/" for pod in self.project.objects.pods().get(role, ())]
            for process in psutil.process_iter():
                with suppress(psutil.Error, OSError):
                    groups = Path(f"/proc/{process.pid}/cgroup").read_text()
                    if any(mark in groups for mark in marks) and "agent.pyz" in " ".join(process.cmdline()):
                        return process
        return None

    def note_stored(self, task: str) -> None:
        """A pod's disk ends with it."""

    def record_folder(self) -> Path | None:
        """The volume with the controller's record."""
        with suppress(BackendError):
            claim = self.project.objects.read("PersistentVolumeClaim", object_name(self.project.cluster, RECORD))
            folder = self.kubernetes.folder / "volumes" / claim["metadata"]["uid"] if claim else None
            return folder if folder and folder.is_dir() else None
        return None


def delete_pod(cluster: KubernetesCluster, step: Step, running: Running | None) -> str:
    """A task's pod is deleted by hand."""
    cluster.note("cut", step.task)
    return "; ".join(cluster.delete("Pod", name) for name in cluster.names("Pod", step.task))


def delete_controller_pod(cluster: KubernetesCluster, step: Step, running: Running | None) -> str:
    """The controller's pod is deleted by hand."""
    return "; ".join(cluster.delete("Pod", name) for name in cluster.names("Pod", CONTROLLER))


def delete_job(cluster: KubernetesCluster, step: Step, running: Running | None) -> str:
    """A task's Job is deleted by hand, and its pod with it. Nothing but an update creates it again."""
    cluster.note("cut", step.task)
    return "; ".join(cluster.delete("Job", name) for name in cluster.names("Job", step.task))


def delete_supply(cluster: KubernetesCluster, step: Step, running: Running | None) -> str:
    """One of the objects is deleted without which no new pod starts, or no call arrives."""
    found = [(kind, name) for kind in SUPPLIES for name in cluster.names(kind)]
    return cluster.delete(*found[int(step.amount * len(found))]) if found else ""


def last(cluster: KubernetesCluster, seconds: float, fault: AbstractContextManager[object]) -> None:
    """Enter a fault now, and leave it after so many seconds, once."""
    stack, lock = ExitStack(), threading.Lock()
    stack.enter_context(fault)

    def leave() -> None:
        with lock:  # whoever comes second waits until it is over
            stack.close()

    later(cluster.story, seconds, leave)


def take_api_away(cluster: KubernetesCluster, step: Step, running: Running | None) -> str:
    """The API server does not run for a while."""
    last(cluster, 3 * step.seconds, cluster.kubernetes.without_api())
    return f"down for {3 * step.seconds:.1f} s"


def _node(cluster: KubernetesCluster, step: Step) -> Node:
    nodes = cluster.kubernetes.nodes
    return nodes[int(step.amount * len(nodes))]


def kill_kubelet(cluster: KubernetesCluster, step: Step, running: Running | None) -> str:
    """A kubelet is killed; it starts again, and containers go on."""
    _node(cluster, step).kill_kubelet()
    return _node(cluster, step).name


def suspend_kubelet(cluster: KubernetesCluster, step: Step, running: Running | None) -> str:
    """A kubelet is suspended, so that its node does not report; its containers go on."""
    node = _node(cluster, step)
    last(cluster, 6 * step.seconds, node.suspended())
    return f"{node.name} for {6 * step.seconds:.1f} s"


def cut_node(cluster: KubernetesCluster, step: Step, running: Running | None) -> str:
    """A node reaches nothing, and nothing reaches it; its containers go on."""
    node = _node(cluster, step)
    last(cluster, 4 * step.seconds, node.cut())
    return f"{node.name} for {4 * step.seconds:.1f} s"


def drain_node(cluster: KubernetesCluster, step: Step, running: Running | None) -> str:
    """A node is drained as before maintenance, and takes pods again later."""
    node = _node(cluster, step)
    cluster.note("cut")
    cluster.story.machines_failed = True
    with ExitStack() as stack:
        stack.callback(node.cordon, False)
        node.drain("default")
        last(cluster, step.seconds, stack.pop_all())
    return f"{node.name} for {step.seconds:.1f} s"


@contextmanager
def dead(kubernetes: Kubernetes, node: Node) -> Iterator[None]:
    """A node that has died, and starts again with its disk; a context."""
    node.kill()
    yield
    if not processes.first_of_namespace(node.folder):
        kubernetes.start_node(node)
    node.wait_ready()


def kill_node(cluster: KubernetesCluster, step: Step, running: Running | None) -> str:
    """A node dies with all its containers, and starts again."""
    node = _node(cluster, step)
    cluster.note("cut")
    cluster.story.machines_failed = True
    last(cluster, 3 * step.seconds, dead(cluster.kubernetes, node))
    return f"{node.name} for {3 * step.seconds:.1f} s"


FAULTS: dict[str, tuple[Kind, Apply]] = {
    **COMMON,
    **PROCESSES,
    "delete_pod": (Kind(weight=3, tasks=True), delete_pod),
    "delete_controller_pod": (Kind(weight=2, touches=False), delete_controller_pod),
    "delete_job": (Kind(weight=3, tasks=True), delete_job),
    "delete_supply": (Kind(weight=4, touches=False), delete_supply),
    "api_away": (Kind(weight=3, touches=False), take_api_away),
    "kill_kubelet": (Kind(touches=False), kill_kubelet),
    "suspend_kubelet": (Kind(weight=2, touches=False), suspend_kubelet),
    "cut_node": (Kind(weight=2, touches=False), cut_node),
    "drain_node": (Kind(weight=2), drain_node),
    "kill_node": (Kind(weight=2), kill_node),
}
