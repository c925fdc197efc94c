"""One cluster's objects in its namespace: create, update, delete and list them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import BackendError
from ...units import plural
from ..base import ClusterRef, EngineTask
from ..controller_calls import wait_for
from ..parallel_calls import PARALLEL_CALLS, for_all
from ..rolling_update import StartFailure, TaskHistory
from ..task_access import require_task
from .api import CONFLICT, FORBIDDEN, INVALID, MERGE, NOT_FOUND, ApiError, ApiServer
from .drift import ObjectName, mounted_parts, owner_part, repair, shared_parts
from .labels import HASH_LABEL, ID_LABEL, hostname_of, object_name, selector
from .states import CREATING, PULLED_NOW, engine_task, in_order, job_problem, with_event

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

_OWNERS, _PARTS = ("Job", "StatefulSet"), ("Service", "NetworkPolicy", "Secret", "ConfigMap", "PersistentVolumeClaim")
_REFUSALS = ("FailedCreate", "FailedMount", "FailedAttach", "FailedMap")
"""How the reasons of events begin that say why Kubernetes cannot create a pod, or its container."""

_EVENTS_OF_STARTS = ("type=Warning", f"reason={PULLED_NOW}")

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

    def apply(self, item: Mapping[str, Any]) -> None:
        """Create an object, or make the existing one like it. A Job or StatefulSet with another definition is deleted, and created
        again when its pod is gone: the template of a Job cannot be changed. Another object is replaced if the server refuses the
        change, and each one that is being deleted."""
        if self.create(item):
            return
        kind, meta = item["kind"], item["metadata"]
        existing = self.read(kind, meta["name"])
        has_pod = HASH_LABEL in meta["labels"]
        if existing is None or _is_ending(existing, kind) or (has_pod and not is_same(existing, item)):
            self._replace(item)
            return
        change = {} if has_pod else repair(existing, item)
        try:
            self.api.json("PATCH", self.path(kind, meta["name"]), {**change, "metadata": meta}, MERGE)
        except ApiError as error:
            if has_pod or error.status not in (INVALID, NOT_FOUND):
                raise
            # The server changes no address of a Service. It accepts the definition: `create` was refused for the name alone.
            self._replace(item)

    def _replace(self, item: Mapping[str, Any]) -> None:
        """Delete an object, and create it when it and its pod are gone: until then, a program may run.

        Raises:
            BackendError: it is not in time.
        """
        kind, name, hostname = item["kind"], item["metadata"]["name"], hostname_of(item)
        has_pod = kind in _OWNERS
        self.delete(kind, name)

        def is_created() -> bool:
            is_gone = self.read(kind, name) is None and not (has_pod and hostname in self.pods())
            return is_gone and self.create(item)

        seconds, error = _REMOVE_SECONDS, f"the {kind} {name} was not removed"
        if has_pod:
            seconds += float(item["spec"]["template"]["spec"]["terminationGracePeriodSeconds"])
            error = f"the pod of {hostname} did not end. `pulumi up --refresh` starts the task again when it has"
        wait_for(is_created, error, seconds)

    def delete(self, kind: str, name: str) -> None:
        """Delete an object when what it owns is gone; "not found" is success."""
        try:
            self.api.json("DELETE", self.path(kind, name), {"propagationPolicy": "Foreground"})
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise

    def is_as_defined(self, item: Mapping[str, Any]) -> bool:
        """Whether an object exists, is not being deleted, and has this content."""
        existing = self.read(item["kind"], item["metadata"]["name"])
        content = {key: value for key, value in item.items() if key not in ("apiVersion", "kind", "metadata")}
        return (
            existing is not None and "deletionTimestamp" not in existing["metadata"] and not repair(existing, content)
        )

    def missing(self, hostnames: Sequence[str], with_shared: bool = True) -> Sequence[str]:
        """What these tasks, and all pods, need and do not have, each as a noun with its article; without what the user may not list."""
        owners = [item for kind in _OWNERS for item in self.list(kind) if "deletionTimestamp" not in item["metadata"]]
        by_hostname = {hostname_of(item): item for item in owners}
        needed, missing = shared_parts(self.cluster) if with_shared else [], []
        for hostname in hostnames:
            part, owner = owner_part(self.cluster, hostname), by_hostname.get(hostname)
            if owner is None:
                missing.append(str(part))
            else:
                needed += mounted_parts(self.cluster, owner)
                missing += [f"{part} ({problem})" for problem in [job_problem(owner)] if problem]
        listed = dict(zip(_PARTS, for_all(_PARTS, self._list_metadata, PARALLEL_CALLS), strict=True))
        existing = {
            ObjectName(kind, meta["name"])
            for kind, metas in listed.items()
            for meta in metas or ()
            if "deletionTimestamp" not in meta
        }
        missing += [str(part) for part in needed if part not in existing and listed[part.kind] is not None]
        return list(dict.fromkeys(missing))

    def _list_metadata(self, kind: str) -> Sequence[Json] | None:
        return self.api.list_metadata(self.path(kind), selector(self.cluster))

    def jobs(self) -> dict[str, Json]:
        """The Jobs by hostname."""
        return {hostname_of(job): job for job in self.list("Job")}

    def tasks(self) -> dict[str, EngineTask]:
        """The state of each task and of the controller, by hostname."""
        return self._tasks(self.pods())

    def _tasks(self, pods: Mapping[str, Sequence[Json]]) -> dict[str, EngineTask]:
        owners = {hostname_of(item): item for kind in _OWNERS for item in self.list(kind)}
        tasks = {hostname: engine_task(item, pods.get(hostname, ())) for hostname, item in owners.items()}
        creating = [name for name, task in tasks.items() if task.state in CREATING and not task.reason]
        events = self._events_of_starts() if creating else {}
        for name in creating:
            newest = [owners[name], *in_order(pods.get(name, ()))][-1]
            tasks[name] = with_event(tasks[name], events.get(newest["metadata"].get("uid", "")))
        left = {name: engine_task(None, items) for name, items in pods.items() if name not in tasks}
        return {**tasks, **{name: task for name, task in left.items() if task.alive}}

    def _events_of_starts(self) -> Mapping[str, Json]:
        """Why Kubernetes creates no pod, such as a quota, by the uid of the Job or StatefulSet, or no container, such as a volume that
        it cannot mount, or that it pulls the image, by that of the pod. It says so in events only; the newest one counts."""
        path = f"/api/v1/namespaces/{self.api.namespace}/events"
        try:
            events = [item for field in _EVENTS_OF_STARTS for item in self.api.get(path, fieldSelector=field)["items"]]
        except ApiError:
            return {}
        return {
            event["involvedObject"].get("uid", ""): event
            for event in sorted(events, key=lambda event: event.get("lastTimestamp") or "")
            if event.get("reason", "").startswith((*_REFUSALS, PULLED_NOW))
        }

    def pods(self) -> Mapping[str, Sequence[Json]]:
        """The pods of each task and of the controller."""
        pods: dict[str, Any] = {}
        for pod in self.list("Pod"):
            pods.setdefault(hostname_of(pod), []).append(pod)
        return pods

    def history(self, hostname: str) -> TaskHistory:
        """The pod of a task, and how often its launcher has failed in it."""
        pods = self.pods()
        task = self._tasks(pods).get(hostname)
        failures = [
            StartFailure(f"{pod['metadata']['uid']}-{container.get('restartCount', 0)}", task.reason if task else "")
            for pod in pods.get(hostname, ())
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
        ended = [name for name in hostnames if name in jobs and not (name in tasks and tasks[name].alive)]
        for_all(ended, self.restart, PARALLEL_CALLS)


def is_same(existing: Json, desired: Mapping[str, Any]) -> bool:
    """Whether an existing Job or StatefulSet has this definition, is not being deleted, and starts its pod."""
    meta = existing["metadata"]
    has_hash = meta["labels"].get(HASH_LABEL) == desired["metadata"]["labels"][HASH_LABEL]
    return has_hash and "deletionTimestamp" not in meta and not job_problem(existing)


def _is_ending(existing: Json, kind: str) -> bool:
    """Whether an object is being deleted, and waits for no pod: a claim exists as long as a pod mounts it."""
    return "deletionTimestamp" in existing["metadata"] and kind != "PersistentVolumeClaim"


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
