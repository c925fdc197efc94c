"""One cluster's objects in its namespace: create, update, delete and list them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import BackendError
from ...units import plural
from ..base import ClusterRef, EngineTask
from ..controller_calls import wait_for
from ..parallel_calls import PARALLEL_CALLS, for_all
from ..rolling_update import StartFailure, TaskHistory
from ..task_access import require_task
from .api import CONFLICT, FORBIDDEN, MERGE, NOT_FOUND, ApiError, ApiServer
from .labels import HASH_LABEL, ID_LABEL, hostname_of, object_name, selector
from .states import engine_task

Json = dict[str, Any]

KINDS: Mapping[str, str] = {
    "Job": "/apis/batch/v1",
    "StatefulSet": "/apis/apps/v1",
    "Pod": "/api/v1",
    "Service": "/api/v1",
    "NetworkPolicy": "/apis/networking.k8s.io/v1",
    "Secret": "/api/v1",
    "ConfigMap": "/api/v1",
    "PersistentVolumeClaim": "/api/v1",
}
"""The kinds of a cluster's objects, to the group of the API that has them."""

_OWNERS, _REFUSED = ("Job", "StatefulSet"), "FailedCreate"
_REMOVE_SECONDS = 120.0
_SERVER_LABELS = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")


def kind_path(namespace: str, kind: str, name: str = "") -> str:
    """The path of a kind of objects in a namespace, or of one."""
    return f"{KINDS[kind]}/namespaces/{namespace}/{plural(kind.lower())}{f'/{name}' if name else ''}"


@dataclass(frozen=True)
class ClusterObjects:
    """The objects that carry the id of one cluster."""

    api: ApiServer
    cluster: ClusterRef

    def path(self, kind: str, name: str = "") -> str:
        """The path of a kind of objects, or of one, in the cluster's namespace."""
        return kind_path(self.api.namespace, kind, name)

    def list(self, kind: str) -> Sequence[Json]:
        """The cluster's objects of a kind."""
        items: Sequence[Json] = self.api.get(self.path(kind), labelSelector=selector(self.cluster))["items"]
        return items

    def read(self, kind: str, name: str) -> Json | None:
        """One object; None where it does not exist.

        Raises:
            BackendError: it belongs to something else.
        """
        try:
            item = self.api.get(self.path(kind, name))
        except ApiError as error:
            if error.status == NOT_FOUND:
                return None
            raise
        if (item["metadata"].get("labels") or {}).get(ID_LABEL) != self.cluster["id"]:
            wrong = f"exists in {self.api.namespace} and does not belong to the cluster {self.cluster['name']}"
            raise BackendError(f"{kind} {name} {wrong}. Remove it.")
        return item

    def create(self, item: Mapping[str, Any]) -> bool:
        """Create an object; False where the cluster has one of that name."""
        try:
            self.api.post(self.path(item["kind"]), item)
        except ApiError as error:
            if error.status != CONFLICT:
                raise _explained(error, item) from None
            self.read(item["kind"], item["metadata"]["name"])
            return False
        return True

    def apply(self, item: Mapping[str, Any], ended: Collection[str] = ()) -> None:
        """Create an object, or make the existing one like it. A Job or StatefulSet with another definition is deleted, and created
        again when its pod is gone: the template of a Job cannot be changed."""
        if self.create(item):
            return
        kind, meta = item["kind"], item["metadata"]
        existing = self.read(kind, meta["name"])
        has_pod = HASH_LABEL in meta["labels"]
        if has_pod and (existing is None or not is_same(existing, item)):
            self._replace(item)
        else:
            self.api.json("PATCH", self.path(kind, meta["name"]), {"metadata": meta} if has_pod else item, MERGE)

    def _replace(self, item: Mapping[str, Any]) -> None:
        """Delete a Job or StatefulSet, and create it when its pod is gone: until then, its program may run.

        Raises:
            BackendError: it is not in time.
        """
        kind, name, hostname = item["kind"], item["metadata"]["name"], hostname_of(item)
        self.delete(kind, name)

        def is_gone() -> bool:
            return hostname not in self.pods() and self.read(kind, name) is None

        seconds = float(item["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]) + _REMOVE_SECONDS
        error = f"the pod of {hostname} did not end. `pulumi up --refresh` starts the task again when it has"
        wait_for(is_gone, error, seconds)
        self.create(item)

    def delete(self, kind: str, name: str) -> None:
        """Delete an object when what it owns is gone; "not found" is success."""
        try:
            self.api.json("DELETE", self.path(kind, name), {"propagationPolicy": "Foreground"})
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise

    def jobs(self) -> dict[str, Json]:
        """The Jobs by hostname."""
        return {hostname_of(job): job for job in self.list("Job")}

    def tasks(self) -> dict[str, EngineTask]:
        """The state of each task and of the controller, by hostname."""
        pods = self.pods()
        owners = {hostname_of(item): item for kind in _OWNERS for item in self.list(kind)}
        refusals = self._refusals() if owners.keys() - pods.keys() else {}
        tasks = {
            hostname: engine_task(item, pods.get(hostname, ()), refusals.get(item["metadata"]["uid"], ""))
            for hostname, item in owners.items()
        }
        left = {name: engine_task(None, items) for name, items in pods.items() if name not in tasks}
        return {**tasks, **{name: task for name, task in left.items() if task.alive}}

    def _refusals(self) -> Mapping[str, str]:
        """Why Kubernetes creates no pod, such as a quota, by the uid of the Job or StatefulSet. It says so in events only."""
        path = f"/api/v1/namespaces/{self.api.namespace}/events"
        try:
            events = self.api.get(path, fieldSelector=f"reason={_REFUSED}")["items"]
        except ApiError:
            return {}
        return {event["involvedObject"].get("uid", ""): event.get("message", "") for event in events}

    def pods(self) -> Mapping[str, Sequence[Json]]:
        """The pods of each task and of the controller."""
        pods: dict[str, Any] = {}
        for pod in self.list("Pod"):
            pods.setdefault(hostname_of(pod), []).append(pod)
        return pods

    def history(self, hostname: str) -> TaskHistory:
        """The pod of a task, and how often its launcher has failed in it."""
        task = self.tasks().get(hostname)
        failures = [
            StartFailure(f"{pod['metadata']['uid']}-{container.get('restartCount', 0)}", task.reason if task else "")
            for pod in self.pods().get(hostname, ())
            for container in pod["status"].get("containerStatuses") or ()
            if container.get("restartCount", 0) or (container.get("state", {}).get("waiting") or {}).get("message")
        ]
        return TaskHistory(task, failures)

    def delete_jobs(self, hostnames: Sequence[str]) -> None:
        """Delete the Jobs of tasks. Each remains as long as its pod."""
        for_all(list(hostnames), lambda name: self.delete("Job", object_name(self.cluster, name)), PARALLEL_CALLS)

    def runs_as_defined(self, desired: Mapping[str, Any]) -> bool:
        """Whether the pod of a StatefulSet runs with this definition."""
        item = self.read("StatefulSet", desired["metadata"]["name"])
        return item is not None and is_same(item, desired) and bool(item["status"].get("readyReplicas"))

    def restart(self, hostname: str) -> None:
        """Replace the pod of a task.

        Raises:
            NotFound: the task has no Job.
        """
        jobs = self.jobs()
        require_task(jobs, self.cluster, hostname, "Job")
        self._replace(definition(jobs[hostname]))

    def start_ended(self, hostnames: Sequence[str]) -> None:
        """Start the tasks among these whose launcher has ended."""
        jobs, tasks = self.jobs(), self.tasks()
        ended = [name for name in hostnames if name in jobs and not tasks[name].alive]
        for_all(ended, self.restart, PARALLEL_CALLS)


def is_same(existing: Json, desired: Mapping[str, Any]) -> bool:
    """Whether an existing Job or StatefulSet has this definition, and is not being deleted."""
    meta = existing["metadata"]
    return (
        "deletionTimestamp" not in meta and meta["labels"].get(HASH_LABEL) == desired["metadata"]["labels"][HASH_LABEL]
    )


def objects_of(cluster: ClusterRef) -> ClusterObjects:
    """The objects of a cluster, at its home."""
    return ClusterObjects(ApiServer(cluster["home"]), cluster)


def definition(job: Json) -> Json:
    """What an existing Job was created from."""
    spec, template = job["spec"], job["spec"]["template"]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _own(job["metadata"]),
        "spec": {
            **{key: spec[key] for key in ("backoffLimit", "podReplacementPolicy")},
            "template": {**template, "metadata": _own(template["metadata"])},
        },
    }


def _own(meta: Mapping[str, Any]) -> Json:
    """Metadata without what the server has added."""
    labels = {key: value for key, value in meta["labels"].items() if key not in _SERVER_LABELS}
    return {**{key: meta[key] for key in ("name", "annotations") if key in meta}, "labels": labels}


def _explained(error: ApiError, item: Mapping[str, Any]) -> BackendError:
    """The server's words, with the object that they are about."""
    if error.status == FORBIDDEN:
        return error
    return ApiError(error.status, error.reason, f"{item['kind']} {item['metadata']['name']}: {error}")
