"""The state of a task's launcher from its Job and its pods, in Kubernetes' own words. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..base import EngineTask
from .labels import QUEUE_LABEL

Json = Mapping[str, Any]

SCHEDULED, PULLING, STARTING, RUNNING, COMPLETE = "scheduled", "pulling", "starting", "running", "complete"
CREATING = (SCHEDULED, STARTING)
"""The states in which a pod, or its container, does not exist yet."""

PULLED_NOW = "Pulling"
"""The reason of the event that a node pulls the image of a pod."""

_IMAGE_REASONS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable")
_DISRUPTION = "DisruptionTarget"
_ENDED = ("Succeeded", "Failed")
_FAILED_JOB, _SUSPENDED = "failed", "suspended"
LOST_REMEDY = (
    "the task starts elsewhere when its pod is gone: when the node is back, when it was deleted (`kubectl delete node {node}`), or "
    "when it has the taint node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
)


def engine_task(job: Json | None, pods: Sequence[Json]) -> EngineTask:
    """The state of one task; `pods` are all of its Job, the controller's where `job` is its StatefulSet."""
    ordered = in_order(pods)
    newest = ordered[-1] if ordered else None
    is_complete = job is not None and bool(job.get("status", {}).get("succeeded"))
    if (
        job is not None
        and (problem := job_problem(job))
        and (newest is None or newest["status"].get("phase") in _ENDED)
    ):
        name = newest["metadata"]["name"] if newest else ""
        return EngineTask(False, name, _SUSPENDED if problem == _SUSPENDED else _FAILED_JOB, problem)
    if newest is None:
        return EngineTask(not is_complete, "", COMPLETE if is_complete else SCHEDULED)
    phase = newest["status"].get("phase", "Pending")
    if phase in _ENDED:
        if phase == "Succeeded" or is_complete:
            return EngineTask(False, newest["metadata"]["name"], COMPLETE)
        return EngineTask(job is not None, newest["metadata"]["name"], SCHEDULED, _end_reason(newest))
    former = _end_reason(ordered[-2]) if len(ordered) > 1 else ""
    state, reason = _live_state(newest)
    reason = reason or (former if state in (SCHEDULED, STARTING) else "")
    return EngineTask(True, newest["metadata"]["name"], state, reason)


def with_event(task: EngineTask, event: Json | None) -> EngineTask:
    """The state of a task whose pod or container is being created, with the newest event about that."""
    if event is None:
        return task
    if event["reason"] == PULLED_NOW:
        return task._replace(state=PULLING)
    return task._replace(state=STARTING, reason=f"{event['reason']}: {event.get('message', '')}")


def job_problem(job: Json) -> str:
    """Why a Job starts no pod any more, although its launcher has not ended; empty where it does. Kueue suspends those that wait in a
    queue, and continues them. A StatefulSet has no such state."""
    if job.get("spec", {}).get("suspend") and QUEUE_LABEL not in (job["metadata"].get("labels") or {}):
        return _SUSPENDED
    failed = _condition(job, "Failed")
    if failed.get("status") != "True":
        return ""
    return f"{failed.get('reason', '')}: {failed.get('message', '')}".rstrip(": ")


def in_order(pods: Sequence[Json]) -> list[Json]:
    """The pods of a task, from the oldest; those that have ended come first."""
    return sorted(
        pods, key=lambda pod: (pod["status"].get("phase") not in _ENDED, pod["metadata"]["creationTimestamp"])
    )


def _live_state(pod: Json) -> tuple[str, str]:
    status = pod["status"]
    if pod["metadata"].get("deletionTimestamp") and is_node_silent(pod):
        node = pod["spec"].get("nodeName", "")
        return SCHEDULED, f"the node {node} does not respond"
    condition = _condition(pod, "PodScheduled")
    if condition.get("status") == "False":
        return SCHEDULED, str(condition.get("message", ""))
    container: Json = next(iter(status.get("containerStatuses") or ()), {})
    waiting: Json = container.get("state", {}).get("waiting") or {}
    reason, message = waiting.get("reason", ""), waiting.get("message", "")
    if reason in _IMAGE_REASONS:
        return PULLING, f"{reason}: {message}" if message else reason
    if waiting:
        return STARTING, _waiting_reason(container, reason, message)
    return (RUNNING if status.get("phase") == "Running" else STARTING), ""


def _waiting_reason(container: Json, reason: str, message: str) -> str:
    """Why the container does not run; nothing while it is created for the first time."""
    ended: Json = container.get("lastState", {}).get("terminated") or {}
    if ended:
        how = ended.get("reason", "Error")
        return f"{how} (exit {ended.get('exitCode')}); {reason}" if how != "OOMKilled" else f"OOMKilled; {reason}"
    return "" if reason in ("ContainerCreating", "PodInitializing") else f"{reason}: {message}".rstrip(": ")


def _end_reason(pod: Json) -> str:
    """Why a pod has ended before its launcher has: evicted, preempted, its node lost."""
    status = pod["status"]
    if status.get("reason"):
        return f"{status['reason']}: {status.get('message', '')}".rstrip(": ")
    condition = _condition(pod, _DISRUPTION)
    if condition:
        return f"{condition.get('reason', '')}: {condition.get('message', '')}".rstrip(": ")
    container: Json = next(iter(status.get("containerStatuses") or ()), {})
    ended: Json = container.get("state", {}).get("terminated") or {}
    return f"{ended.get('reason', 'Error')} (exit {ended.get('exitCode')})" if ended else ""


def is_node_silent(pod: Json) -> bool:
    """Whether the node of a pod does not respond, as far as the pod shows it: Kubernetes then calls a pod not ready, although nothing
    else but its end could make it so."""
    container: Json = next(iter(pod["status"].get("containerStatuses") or ()), {})
    is_running = "running" in container.get("state", {})
    return is_running and _condition(pod, "Ready").get("status") == "False"


def _condition(pod: Json, kind: str) -> Json:
    conditions: Sequence[Json] = pod.get("status", {}).get("conditions") or ()
    return next((item for item in conditions if item["type"] == kind), {})
