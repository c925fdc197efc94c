"""Remove what a cluster has in its namespace: all objects with its label, also those that Pulumi did not create."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import BackendError
from ..controller_calls import wait_for
from ..parallel_calls import PARALLEL_CALLS, for_all
from .cluster_objects import KINDS, ClusterObjects
from .labels import AGENT, SECRETS, TRAIN, hostname_of, object_name
from .states import in_order, is_node_silent

_SECONDS = 60.0
_WITH_PODS = ("Job", "StatefulSet", "Pod")
"""Removed first. On a node that does not respond they may exist until it is back."""


def remove_tasks(objects: ClusterObjects, hostnames: Sequence[str], seconds: float) -> None:
    """Remove tasks, and wait until their pods have ended. A pod on a node that does not respond is not waited for: Kubernetes removes
    it with the node, or when that is back.

    Raises:
        BackendError: a pod has not ended in time.
    """
    objects.delete_jobs(hostnames)
    _await_end(objects, hostnames, seconds)
    for_all(list(hostnames), lambda name: objects.delete("Secret", object_name(objects.cluster, name)), PARALLEL_CALLS)


def _await_end(objects: ClusterObjects, hostnames: Sequence[str], seconds: float) -> None:
    def have_ended() -> bool:
        pods = objects.pods()
        return not any(name in pods and not all(map(is_node_silent, pods[name])) for name in hostnames)

    wait_for(have_ended, f"the pods of {', '.join(hostnames)} did not end", seconds)


def remove_all(objects: ClusterObjects, seconds: float, retain_checkpoints: bool) -> str:
    """Remove everything; the claim with the checkpoints unless it is retained.

    Returns:
        Sentences about tasks that may still run, and about the claim that still exists, and how to remove it.

    Raises:
        BackendError: something cannot be removed.
    """
    hostnames = list({*objects.jobs(), *objects.pods()})
    objects.delete_jobs(list(objects.jobs()))
    for item in objects.list("StatefulSet"):
        objects.delete("StatefulSet", item["metadata"]["name"])
    if hostnames:
        _await_end(objects, hostnames, seconds)
    unfinished = _on_silent_nodes(objects)
    train = object_name(objects.cluster, TRAIN)

    def left() -> list[tuple[str, str]]:
        found = [
            (kind, item["metadata"]["name"]) for kind in KINDS if kind not in _WITH_PODS for item in objects.list(kind)
        ]
        return [item for item in found if not (retain_checkpoints and item == ("PersistentVolumeClaim", train))]

    def none_is_left() -> bool:
        for kind, name in left():
            objects.delete(kind, name)
        return not left()

    try:
        wait_for(none_is_left, "not removed", _SECONDS)
    except BackendError:
        names = ", ".join(" ".join(item) for item in left())
        problem = f"{names} of {objects.cluster['name']} cannot be removed"
        if holders := _on_silent_nodes(objects):
            problem = f"{problem}: {holders}. Run `pulumi destroy` again then"
        raise BackendError(problem) from None
    if not retain_checkpoints or objects.read("PersistentVolumeClaim", train) is None:
        return unfinished
    namespace = objects.api.namespace
    remedy = f"`kubectl --namespace {namespace} delete pvc {train}` removes it"
    retained = f"the checkpoints are retained in the claim {train} of the namespace {namespace}; {remedy}"
    return "; ".join(filter(None, [unfinished, retained]))


def _on_silent_nodes(objects: ClusterObjects) -> str:
    """The tasks that may still run, on nodes that do not respond, in a sentence; empty for none."""
    newest = {hostname: in_order(pods)[-1] for hostname, pods in sorted(objects.pods().items())}
    tasks = [f"{hostname} on {pod['spec'].get('nodeName', '')}" for hostname, pod in newest.items()]
    if not tasks:
        return ""
    end = "Kubernetes ends it and removes its Job and pod when its node is back or was deleted (`kubectl delete node NODE`)"
    return f"what may still run, because its node does not respond: {', '.join(tasks)}. {end}"


def remove_unused(objects: ClusterObjects, used: Mapping[str, Any]) -> None:
    """Remove the agents and Secrets that were replaced, unless a pod still mounts them."""
    needed = {used.get("agent"), used.get("secrets"), used.get("token")}
    for job in objects.jobs().values():
        for volume in job["spec"]["template"]["spec"]["volumes"]:
            needed |= {volume.get("configMap", {}).get("name"), volume.get("secret", {}).get("secretName")}
    for kind, suffix in (("ConfigMap", AGENT), ("Secret", SECRETS)):
        for item in objects.list(kind):
            name = item["metadata"]["name"]
            is_ours = name.startswith(object_name(objects.cluster, f"{suffix}-")) and not hostname_of(item)
            if is_ours and name not in needed:
                objects.delete(kind, name)
