"""One cluster's objects in its namespace: create, update, delete and list them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import BackendError
from ...errors import NotFound as TaskNotFound
from ..base import CONTROLLER, ClusterRef, EngineTask
from ..controller_calls import wait_for
from ..parallel_calls import PARALLEL_CALLS, for_all
from .api import CONFLICT, FORBIDDEN, MERGE, NOT_FOUND, ApiError, ApiServer
from .labels import HASH_LABEL, HOSTNAME_LABEL, ID_LABEL, hostname_of, object_name, selector
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

_PLURALS = {"NetworkPolicy": "networkpolicies"}
_REMOVE_SECONDS = 120.0
_SERVER_LABELS = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")


def kind_path(namespace: str, kind: str, name: str = "") -> str:
    """The path of a kind of objects in a namespace, or of one."""
    plural = _PLURALS.get(kind, f"{kind.lower()}s")
    return f"{KINDS[kind]}/namespaces/{namespace}/{plural}{f'/{name}' if name else ''}"


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

    def apply(self, item: Mapping[str, Any]) -> None:
        """Create an object, or make the existing one like it."""
        if not self.create(item):
            self.api.json("PATCH", self.path(item["kind"], item["metadata"]["name"]), item, MERGE)

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
        jobs, pods = self.jobs(), self.pods()
        tasks = {hostname: engine_task(job, pods.get(hostname, ())) for hostname, job in jobs.items()}
        if CONTROLLER in pods or self.list("StatefulSet"):
            tasks[CONTROLLER] = engine_task({}, pods.get(CONTROLLER, ()))
        left = {name: engine_task(None, items) for name, items in pods.items() if name not in tasks}
        return {**tasks, **{name: task for name, task in left.items() if task.alive}}

    def pods(self) -> Mapping[str, Sequence[Json]]:
        """The pods of each task and of the controller."""
        pods: dict[str, Any] = {}
        for pod in self.list("Pod"):
            pods.setdefault(hostname_of(pod), []).append(pod)
        return pods

    def apply_job(self, job: Mapping[str, Any]) -> None:
        """Create the Job of a task. Where it exists with another definition, it is deleted, and created again when its pod is gone: the
        template of a Job cannot be changed."""
        if self.create(job):
            return
        existing = self.read("Job", job["metadata"]["name"])
        if existing is None or existing["metadata"]["labels"].get(HASH_LABEL) != job["metadata"]["labels"][HASH_LABEL]:
            self.delete_job(job["metadata"]["labels"][HOSTNAME_LABEL], job["spec"]["template"]["spec"])
            self.create(job)
        elif existing["metadata"].get("annotations") != job["metadata"]["annotations"]:
            meta = {key: job["metadata"][key] for key in ("labels", "annotations")}
            self.api.json("PATCH", self.path("Job", job["metadata"]["name"]), {"metadata": meta}, MERGE)

    def delete_job(self, hostname: str, pod: Mapping[str, Any] | None = None) -> None:
        """Delete the Job of a task, and wait until its pod is gone: until then, its program may run.

        Raises:
            BackendError: it is not in time.
        """
        self.delete_jobs([hostname])

        def is_gone() -> bool:
            return hostname not in self.pods() and hostname not in self.jobs()

        seconds = float((pod or {}).get("terminationGracePeriodSeconds", 0)) + _REMOVE_SECONDS
        error = f"the pod of {hostname} did not end. `pulumi up --refresh` starts the task again when it has"
        wait_for(is_gone, error, seconds)

    def delete_jobs(self, hostnames: Sequence[str]) -> None:
        """Delete the Jobs of tasks. Each remains as long as its pod."""
        for_all(list(hostnames), lambda name: self.delete("Job", object_name(self.cluster, name)), PARALLEL_CALLS)

    def apply_set(self, desired: Mapping[str, Any]) -> None:
        """Create the StatefulSet of the controller, or update the existing one where it has another definition."""
        if self.create(desired):
            return
        existing = self.read("StatefulSet", desired["metadata"]["name"])
        if (
            existing is not None
            and existing["metadata"]["labels"].get(HASH_LABEL) == desired["metadata"]["labels"][HASH_LABEL]
        ):
            return
        changed = {"metadata": desired["metadata"], "spec": {"template": desired["spec"]["template"]}}
        self.api.json("PATCH", self.path("StatefulSet", desired["metadata"]["name"]), changed, MERGE)

    def runs_as_defined(self, desired: Mapping[str, Any]) -> bool:
        """Whether the pod of a StatefulSet runs with its newest definition."""
        item = self.read("StatefulSet", desired["metadata"]["name"])
        if item is None or item["status"].get("observedGeneration") != item["metadata"]["generation"]:
            return False
        status = item["status"]
        return bool(status.get("readyReplicas")) and status.get("currentRevision") == status.get("updateRevision")

    def restart(self, hostname: str) -> None:
        """Replace the pod of a task.

        Raises:
            NotFound: the task has no Job.
        """
        job = self.jobs().get(hostname)
        if job is None:
            raise TaskNotFound(
                f"{hostname} of {self.cluster['name']} does not have a Job. `pulumi up --refresh` creates it again, unless the "
                "cluster was destroyed."
            )
        self.delete_job(hostname, job["spec"]["template"]["spec"])
        self.create(definition(job))

    def start_ended(self, hostnames: Sequence[str]) -> None:
        """Start the tasks among these whose launcher has ended."""
        jobs, tasks = self.jobs(), self.tasks()
        ended = [name for name in hostnames if name in jobs and not tasks[name].alive]
        for_all(ended, self.restart, PARALLEL_CALLS)


def definition(job: Mapping[str, Any]) -> Json:
    """What an existing Job was created from."""
    meta, spec = job["metadata"], job["spec"]
    template = spec["template"]
    labels = {key: value for key, value in template["metadata"]["labels"].items() if key not in _SERVER_LABELS}
    own = {key: meta[key] for key in ("name", "labels", "annotations") if key in meta}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {**own, "labels": {key: item for key, item in meta["labels"].items() if key not in _SERVER_LABELS}},
        "spec": {
            "backoffLimit": spec["backoffLimit"],
            "podReplacementPolicy": spec["podReplacementPolicy"],
            "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
        },
    }


def _explained(error: ApiError, item: Mapping[str, Any]) -> BackendError:
    """The server's words, with the object that they are about."""
    if error.status == FORBIDDEN:
        return error
    return ApiError(error.status, error.reason, f"{item['kind']} {item['metadata']['name']}: {error}")
