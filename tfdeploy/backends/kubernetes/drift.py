"""What a cluster should have in its namespace, and how what exists differs from it. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..base import CONTROLLER, ClusterRef
from ..container_layout import CONTROLLER_PORT, TASK_PORT
from .labels import HOSTNAME_LABEL, ID_LABEL, TOKEN, cluster_labels, metadata, object_name, prefix
from .pods import secret

Json = Mapping[str, Any]


_WHOLE = ("selector", "matchLabels", "data")
"""Members that only have what a definition has. Elsewhere the API server adds its defaults."""


class ObjectName(NamedTuple):
    """An object by its kind and name."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"the {self.kind} {self.name}"


def shared_objects(cluster: ClusterRef, token: str) -> list[dict[str, Any]]:
    """The objects that do not depend on the run: names for the pods, who may connect to them, and the controller's token.

    The controller's port is open to the API server, which is no pod; its calls need the token.
    """
    own = {"podSelector": {"matchLabels": {ID_LABEL: cluster["id"]}}}
    controller = {"podSelector": {"matchLabels": {**cluster_labels(cluster), HOSTNAME_LABEL: CONTROLLER}}}
    service = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {ID_LABEL: cluster["id"]},
        "ports": [{"name": "tensorflow", "port": TASK_PORT}],
    }
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    ports = [{"port": CONTROLLER_PORT, "protocol": "TCP"}]
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata(cluster, ""), "spec": service},
        {
            **policy,
            "metadata": metadata(cluster, ""),
            "spec": {**own, "policyTypes": ["Ingress"], "ingress": [{"from": [own]}]},
        },
        {
            **policy,
            "metadata": metadata(cluster, CONTROLLER),
            "spec": {**controller, "policyTypes": ["Ingress"], "ingress": [{"ports": ports}]},
        },
        secret(cluster, TOKEN, {"token": token}),
    ]


def shared_parts(cluster: ClusterRef) -> list[ObjectName]:
    """What all pods of a cluster need."""
    return [ObjectName(item["kind"], item["metadata"]["name"]) for item in shared_objects(cluster, "")]


def owner_part(cluster: ClusterRef, hostname: str) -> ObjectName:
    """The Job of a task, or the StatefulSet of the controller."""
    return ObjectName("StatefulSet" if hostname == CONTROLLER else "Job", object_name(cluster, hostname))


def mounted_parts(cluster: ClusterRef, owner: Json) -> Iterator[ObjectName]:
    """What of the cluster the pods of a Job or StatefulSet mount; without what belongs to the user."""
    for volume in owner["spec"]["template"]["spec"].get("volumes", ()):
        for kind, source, member in (
            ("ConfigMap", "configMap", "name"),
            ("Secret", "secret", "secretName"),
            ("PersistentVolumeClaim", "persistentVolumeClaim", "claimName"),
        ):
            name = volume.get(source, {}).get(member, "")
            if name.startswith(f"{prefix(cluster)}-"):
                yield ObjectName(kind, name)


def repair(existing: Json, desired: Json) -> dict[str, Any]:
    """The merge patch that makes an object as it is defined; empty for one that is."""
    patch: dict[str, Any] = {}
    for key, value in desired.items():
        present = existing.get(key)
        if isinstance(value, Mapping) and isinstance(present, Mapping):
            change = repair(present, value)
            if key in _WHOLE:
                change |= dict.fromkeys(present.keys() - value.keys())
            if change:
                patch[key] = change
        elif not _contains(present, value):
            patch[key] = value
    return patch


def _contains(present: Any, value: Any) -> bool:
    """Whether the server has this value, with its defaults."""
    if isinstance(value, Mapping):
        return isinstance(present, Mapping) and not repair(present, value)
    if isinstance(value, list):
        return isinstance(present, list) and len(present) == len(value) and all(map(_contains, present, value))
    return bool(present == value)
