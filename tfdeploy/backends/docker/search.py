"""The clusters of an engine, found by their labels."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from docker.errors import APIError

from ...errors import BackendError
from ..base import Cluster, Found
from . import names
from .engine import Engine, address

_LABEL = f"{names.PREFIX}cluster"


def found(place: str = "") -> list[Found]:
    """All that carries our labels on the engine of that address, by cluster.

    Raises:
        Unreachable: it does not answer.
    """
    home = address(place)
    try:
        items = list(_items(Engine(home)))
    except APIError as error:
        raise BackendError(f"the Docker engine at {home}: {error.explanation or error}") from None
    return grouped(home, items)


def grouped(home: str, items: Sequence[tuple[str, Mapping[str, str], float]]) -> list[Found]:
    """Kind, labels and age of things become clusters. Pure."""
    by_cluster: dict[tuple[str, ...], list[tuple[str, float]]] = {}
    for kind, labels, made in items:
        key = tuple(labels.get(f"{names.PREFIX}{part}", "") for part in ("project", "stack", "cluster"))
        by_cluster.setdefault(key, []).append((kind, made))
    return [_found(home, key, things) for key, things in sorted(by_cluster.items())]


def _found(home: str, key: Sequence[str], things: Sequence[tuple[str, float]]) -> Found:
    cluster: Cluster = {"backend": "docker", "project": key[0], "stack": key[1], "name": key[2], "home": home}
    kinds = [kind for kind, _ in things]
    has = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    return Found(cluster, has, min((made for _, made in things if made), default=0.0))


def _items(engine: Engine) -> Iterator[tuple[str, Mapping[str, str], float]]:
    wanted = {"label": [_LABEL]}
    managed = engine.call(lambda api: api.info())["Swarm"].get("ControlAvailable")
    if managed:
        for kind in ("services", "secrets", "configs"):
            for item in engine.call(lambda api, kind=kind: getattr(api, kind)(filters=wanted)):  # type: ignore[misc]
                yield kind.removesuffix("s"), item["Spec"].get("Labels") or {}, moment(item["CreatedAt"])
    for item in engine.call(lambda api: api.containers(all=True, filters=wanted)):
        yield "container", item["Labels"], float(item["Created"])
    for item in engine.call(lambda api: api.networks(filters=wanted)):
        yield "network", item["Labels"], moment(item["Created"])
    for item in engine.call(lambda api: api.volumes(filters=wanted))["Volumes"] or []:
        yield "volume", item["Labels"], moment(item["CreatedAt"])
    for item in engine.call(lambda api: api.images(filters=wanted)):
        # Not when it was built: layers that were known already keep their day.
        yield "image", item["Labels"], 0.0


def moment(text: Any) -> float:
    """A time of the engine's as seconds since 1970; 0 for none."""
    try:
        whole = datetime.datetime.fromisoformat(str(text)[:19]).replace(tzinfo=datetime.UTC)
        return whole.timestamp()
    except ValueError:
        return 0.0
