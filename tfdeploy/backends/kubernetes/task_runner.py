"""Tasks as pods: created, updated, deleted and observed through the API server."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...agent.model.run_state import UNREACHABLE, RunState
from ...agent.wire.rpc import task_token
from ...errors import SpecError, Unreachable
from ...units import from_moment, moment
from .. import controller_calls
from ..base import ClusterRef, EngineTask, ObservedMachines, Retain, RunProps, TaskOutputs, TaskProps
from ..container_runner import ContainerRunner
from . import cleanup
from .api import FORBIDDEN, NOT_FOUND, ApiError
from .cluster_objects import ClusterObjects, is_same, objects_of
from .controller_client import PodController
from .pods import controller_set, secret, stop_seconds, task_job
from .states import LOST_REMEDY, is_node_silent

_UNKNOWN = "Unknown"


class KubernetesTaskRunner(ContainerRunner[Mapping[str, Any]]):
    """The contract is `backends.base.TaskRunner`."""

    engine_title = "Kubernetes cluster"
    unreachable = (Unreachable, SpecError)

    def controller(self, cluster: ClusterRef) -> PodController:
        """Calls of the controller."""
        return PodController(cluster)

    def objects(self, cluster: ClusterRef) -> ClusterObjects:
        """Jobs, and the controller's StatefulSet."""
        return objects_of(cluster)

    def is_whole(self, cluster: ClusterRef, hostname: str) -> bool:
        """Whether it has its Job or StatefulSet, which can start a pod, and what that mounts."""
        return not objects_of(cluster).missing([hostname], with_shared=False)

    def missing(self, cluster: ClusterRef, hostnames: Sequence[str], engine: Mapping[str, EngineTask]) -> Sequence[str]:
        """Objects of the namespace."""
        return objects_of(cluster).missing(hostnames)

    def task_exists(self, props: TaskProps) -> bool:
        """Whether the task has its Job, what its pod mounts, and its token; if the server does not respond, assume that it has."""
        try:
            is_whole = self.is_whole(props["cluster"], props["hostname"])
            return is_whole and objects_of(props["cluster"]).is_as_defined(_token_secret(props))
        except Unreachable:
            return True

    def define_controller(self, props: RunProps) -> Mapping[str, Any]:
        """Its StatefulSet."""
        return controller_set(props)

    def remove_tasks(self, cluster: ClusterRef, hostnames: Sequence[str], seconds: float) -> None:
        """Remove the Jobs."""
        cleanup.remove_tasks(objects_of(cluster), hostnames, seconds)

    def remove_unused(self, props: RunProps) -> None:
        """Remove agents and Secrets that were replaced."""
        cleanup.remove_unused(objects_of(props["cluster"]), props["dependencies"])

    def remove_all(self, cluster: ClusterRef, seconds: float, retain: Retain, runs: Sequence[RunState | None]) -> str:
        """Remove all objects with the cluster's label; the claim with checkpoints unless it is retained."""
        return cleanup.remove_all(objects_of(cluster), seconds, retain["volumes"])

    def stop_seconds(self, grace: float) -> float:
        """That of pods."""
        return stop_seconds(grace)

    def observe_machines(self, cluster: ClusterRef) -> ObservedMachines:
        """The status of each node with a pod of the cluster. A user who may not read nodes learns of one that does not respond by the
        state of its pods."""
        objects = objects_of(cluster)
        pods: dict[str, list[Mapping[str, Any]]] = {}
        for items in objects.pods().values():
            for pod in items:
                pods.setdefault(pod["spec"].get("nodeName", ""), []).append(pod)
        statuses = {name: _node_status(objects, name, pods[name]) for name in pods if name}
        silent = {name: status for name, status in statuses.items() if status.startswith(UNREACHABLE)}
        remedies = {name: LOST_REMEDY.format(node=name) for name in silent}
        return ObservedMachines({name: text for name, text in statuses.items() if text}, remedies=remedies)

    def create_task(self, props: TaskProps) -> TaskOutputs:
        """Create the task's Job, or adopt the existing one of its name."""
        objects = objects_of(props["cluster"])
        objects.apply(_token_secret(props))
        objects.apply(task_job(props))
        return {"created_at": controller_calls.now()}

    def update_task(self, old: TaskProps, props: TaskProps) -> TaskOutputs:
        """Replace the Job: in a rolling update while a run is active, otherwise at once."""
        objects, desired = objects_of(props["cluster"]), task_job(props)
        objects.apply(_token_secret(props))
        existing = objects.read("Job", desired["metadata"]["name"])
        return self.update(props, desired, lambda: task_job(old), existing is None or is_same(existing, desired))


def _token_secret(props: TaskProps) -> dict[str, Any]:
    return secret(props["cluster"], props["hostname"], {"token": task_token(props["token"], props["hostname"])})


def _node_status(objects: ClusterObjects, name: str, pods: list[Mapping[str, Any]]) -> str:
    """Empty for a node that responds."""
    try:
        node = objects.api.get(f"/api/v1/nodes/{name}")
    except ApiError as error:
        if error.status == NOT_FOUND:
            return "gone"
        if error.status != FORBIDDEN:
            raise
        return UNREACHABLE if any(map(is_node_silent, pods)) else ""
    ready: Mapping[str, Any] = next(
        (item for item in node["status"].get("conditions", ()) if item["type"] == "Ready"), {}
    )
    if ready.get("status") == _UNKNOWN:
        since = ready.get("lastTransitionTime", "")
        return f"{UNREACHABLE} since {moment(from_moment(since)) or since}"
    return ""
