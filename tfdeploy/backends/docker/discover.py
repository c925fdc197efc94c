"""The clusters on an engine, discovered by their labels."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from docker.errors import APIError

from ...errors import BackendError
from ..base import ClusterRef, DiscoveredCluster
from .engine.engine import Engine, engine_address
from .labels import ID_LABEL, NAME_LABEL, OWNER_LABEL, PROJECT_LABEL, STACK_LABEL

_UNKNOWN = "?"
"""The project and the stack, where none of the services remains that have them."""


class LabelledObject(NamedTuple):
    """One object on the engine that has our labels."""

    kind: str
    labels: Mapping[str, str]
    created: float
    """Seconds since 1970; 0 where it is not known."""


def discover_clusters(place: str = "") -> list[DiscoveredCluster]:
    """All clusters with objects on the engine of that address.

    Raises:
        Unreachable: the engine does not respond.
    """
    home = engine_address(place)
    try:
        objects = list(_objects(Engine(home)))
    except APIError as error:
        raise BackendError(f"the Docker engine at {home}: {error.explanation or error}") from None
    return group_by_cluster(home, objects)


def group_by_cluster(home: str, objects: Sequence[LabelledObject]) -> list[DiscoveredCluster]:
    """The clusters that these objects belong to. Pure."""
    by_cluster: dict[str, list[LabelledObject]] = {}
    for item in objects:
        by_cluster.setdefault(item.labels[ID_LABEL], []).append(item)
    return [_cluster(home, cluster_id, items) for cluster_id, items in sorted(by_cluster.items())]


def _cluster(home: str, cluster_id: str, objects: Sequence[LabelledObject]) -> DiscoveredCluster:
    labels = {key: value for item in objects for key, value in item.labels.items()}
    cluster: ClusterRef = {
        "id": cluster_id,
        "owner": labels.get(OWNER_LABEL, ""),
        "backend": "docker",
        "project": labels.get(PROJECT_LABEL, _UNKNOWN),
        "stack": labels.get(STACK_LABEL, _UNKNOWN),
        "name": labels.get(NAME_LABEL, ""),
        "home": home,
    }
    kinds = [item.kind for item in objects]
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    return DiscoveredCluster(cluster, counts, min((item.created for item in objects if item.created), default=0.0))


def _objects(engine: Engine) -> Iterator[LabelledObject]:
    filters = {"label": [ID_LABEL]}
    if engine.call(lambda api: api.info())["Swarm"].get("ControlAvailable"):
        for kind in ("services", "secrets", "configs"):
            for item in engine.call(lambda api, kind=kind: getattr(api, kind)(filters=filters)):  # type: ignore[misc]
                labels = item["Spec"].get("Labels") or {}
                yield LabelledObject(kind.removesuffix("s"), labels, timestamp(item["CreatedAt"]))
    for item in engine.call(lambda api: api.containers(all=True, filters=filters)):
        yield LabelledObject("container", item["Labels"], float(item["Created"]))
    for item in engine.call(lambda api: api.networks(filters=filters)):
        yield LabelledObject("network", item["Labels"], timestamp(item["Created"]))
    for item in engine.call(lambda api: api.volumes(filters=filters))["Volumes"] or []:
        yield LabelledObject("volume", item["Labels"], timestamp(item["CreatedAt"]))
    for item in engine.call(lambda api: api.images(filters=filters)):
        # An image has the time of its oldest build: its layers may have been in the build cache.
        yield LabelledObject("image", item["Labels"], 0.0)


def timestamp(text: Any) -> float:
    """A time of the engine in seconds since 1970; 0 for none."""
    try:
        moment = datetime.datetime.fromisoformat(str(text)[:19]).replace(tzinfo=datetime.UTC)
        return moment.timestamp()
    except ValueError:
        return 0.0
