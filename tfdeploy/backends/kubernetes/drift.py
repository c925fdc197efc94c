"""What a cluster should have in its namespace, against what exists: what is missing, is being deleted, or is not as defined."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..base import CONTROLLER, ClusterRef
from .labels import TOKEN, hostname_of, object_name, prefix
from .states import job_problem

Json = Mapping[str, Any]

_WHOLE = ("selector", "matchLabels", "data")
"""Members that only have what a definition has. Elsewhere the API server adds its defaults."""


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


def missing_parts(
    cluster: ClusterRef,
    hostnames: Sequence[str],
    owners: Sequence[Json],
    present: Mapping[str, frozenset[str]],
    shared: Sequence[ObjectName],
) -> list[str]:
    """What these tasks do not have any more, and what of `shared` does not exist, each as a noun with its article. `present` has the
    names of the objects by kind, as far as they may be listed."""
    by_hostname = {hostname_of(item): item for item in owners}
    needed, missing = list(shared), []
    for hostname in hostnames:
        part, owner = owner_part(cluster, hostname), by_hostname.get(hostname)
        if owner is None:
            missing.append(str(part))
        else:
            needed += mounted_parts(cluster, owner)
            missing += [f"{part} ({problem})" for problem in [job_problem(owner)] if problem]
    missing += [str(part) for part in needed if part.name not in present.get(part.kind, (part.name,))]
    return list(dict.fromkeys(missing))


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
