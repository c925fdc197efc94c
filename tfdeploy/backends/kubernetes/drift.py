"""What a cluster should have in its namespace. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..base import CONTROLLER, ClusterRef
from .labels import TOKEN, object_name, prefix

Json = Mapping[str, Any]


class ObjectName(NamedTuple):
    """An object by its kind and name."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"the {self.kind} {self.name}"


def shared_parts(cluster: ClusterRef) -> list[ObjectName]:
    """What all pods of a cluster need."""
    own, controller = prefix(cluster), object_name(cluster, CONTROLLER)
    return [
        ObjectName("Service", own),
        ObjectName("NetworkPolicy", own),
        ObjectName("NetworkPolicy", controller),
        ObjectName("Secret", object_name(cluster, TOKEN)),
    ]


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
