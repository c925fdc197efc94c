"""Everything of a cluster's taken off the Swarm, however it came to be left."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from docker.errors import APIError

from ...errors import BackendError
from ..base import Cluster
from ..keeping import wait_for
from . import names
from .engine import Engine, refusals
from .mounts import bind
from .services import PYTHON
from .swarm import Swarm

_SECONDS = 30.0
_ENGINE = "/var/run/docker.sock"
_ONCE: dict[str, Any] = {"GlobalJob": {}}
"""A mode of a service: one task on each machine, to its end."""

Template = dict[str, Any]


def clear(swarm: Swarm, seconds: float, keep_volumes: bool) -> None:
    """Remove services, networks, configs, secrets, images, and volumes unless they are to be kept.

    Raises:
        BackendError: something does not go away; it is named.
    """
    engine, cluster = swarm.engine, swarm.cluster
    services = swarm.services()
    helper = elsewhere(swarm, list(services.values())) if not keep_volumes else None
    swarm.remove(*services, seconds=seconds)
    wait_for(lambda: not _containers(engine, cluster), f"the containers of {cluster['name']} did not end", seconds)
    if helper is not None:
        _volumes_elsewhere(swarm, helper, seconds)
    for kind, found, remove in _kinds(keep_volumes):
        _remove_all(engine, cluster, kind, found, remove)


def tidy(swarm: Swarm, used: Iterable[str]) -> None:
    """Remove the networks, configs and secrets of the cluster that others have taken the place of; `used` names those that
    services refer to, each beginning with its id. What is in use for a moment more stays for `clear`."""
    wanted = {reference.split()[0] for reference in used}
    for kind, find, remove in _kinds(keep_volumes=True):
        for item in swarm.engine.call(lambda api: find(api, names.filters(swarm.cluster))) if kind != "image" else []:  # noqa: B023
            if item.get("ID", item.get("Id")) not in wanted:
                with suppress(APIError):
                    swarm.engine.gone(lambda api, item=item: remove(api, item))  # type: ignore[misc]  # noqa: B023


def elsewhere(swarm: Swarm, services: list[Any]) -> Template | None:
    """What would remove the cluster's volumes from the other machines of the Swarm: the agent, in an image of the
    cluster's. None where there is no other machine, or no service to take image and agent from."""
    mine = swarm.engine.swarm()["NodeID"]
    others = [node for node in swarm.engine.call(lambda api: api.nodes()) if node["ID"] != mine]
    specs = [item["Spec"]["TaskTemplate"]["ContainerSpec"] for item in services]
    if not specs or not any(node["Status"]["State"] == "ready" for node in others):
        return None
    container = {
        "Image": specs[0]["Image"],
        "Configs": specs[0]["Configs"],
        "Command": [*PYTHON, "forget", *names.filters(swarm.cluster)["label"]],
        "User": "0",
        "Mounts": [bind(_ENGINE, _ENGINE, False)],
        "Labels": dict(names.labels(swarm.cluster)),
    }
    return {
        "ContainerSpec": container,
        "RestartPolicy": {"Condition": "none"},
        "Placement": {"Constraints": [f"node.id!={mine}"]},
    }


def _volumes_elsewhere(swarm: Swarm, template: Template, seconds: float) -> None:
    """Run it on every other machine, once; a machine that does not answer keeps what it has."""
    name = names.service(swarm.cluster, "forget")
    labels = {**names.labels(swarm.cluster), names.HOSTNAME: "forget"}
    swarm.engine.gone(lambda api: api.remove_service(name))
    with refusals(name):
        swarm.engine.call(lambda api: api.create_service(template, name=name, labels=labels, mode=_ONCE))
    with suppress(BackendError):
        wait_for(lambda: swarm.over("forget"), "", seconds)
    swarm.remove("forget", seconds=seconds)


def _containers(engine: Engine, cluster: Cluster) -> list[Any]:
    """Those of this engine that the Swarm has not removed yet; ended ones that it left are removed here."""
    found: list[Any] = engine.call(lambda api: api.containers(all=True, filters=names.filters(cluster)))
    for item in found:
        if item["State"] in ("exited", "dead", "created"):
            try:
                engine.gone(lambda api, item=item: api.remove_container(item["Id"], force=True))  # type: ignore[misc]
            except APIError:
                continue
    return found


Find = Callable[[Any, dict[str, Any]], list[dict[str, Any]]]
Remove = Callable[[Any, dict[str, Any]], Any]


def _kinds(keep_volumes: bool) -> list[tuple[str, Find, Remove]]:
    kinds: list[tuple[str, Find, Remove]] = [
        ("network", lambda api, f: api.networks(filters=f), lambda api, item: api.remove_network(item["Id"])),
        ("config", lambda api, f: api.configs(filters=f), lambda api, item: api.remove_config(item["ID"])),
        ("secret", lambda api, f: api.secrets(filters=f), lambda api, item: api.remove_secret(item["ID"])),
        ("image", lambda api, f: api.images(filters=f), lambda api, item: api.remove_image(item["Id"], force=True)),
    ]
    if not keep_volumes:
        kinds.append(
            (
                "volume",
                lambda api, f: api.volumes(filters=f)["Volumes"] or [],
                lambda api, item: api.remove_volume(item["Name"]),
            )
        )
    return kinds


def _remove_all(engine: Engine, cluster: Cluster, kind: str, find: Find, remove: Remove) -> None:
    """Remove all of one kind; what is still in use for a moment is tried again."""
    last: list[str] = []

    def gone() -> bool:
        for item in engine.call(lambda api: find(api, names.filters(cluster))):
            try:
                engine.gone(lambda api, item=item: remove(api, item))  # type: ignore[misc]
            except APIError as error:
                last[:] = [str(error.explanation or error)]
        return not engine.call(lambda api: find(api, names.filters(cluster)))

    try:
        wait_for(gone, "not removed", _SECONDS)
    except BackendError:
        raise BackendError(f"a {kind} of {cluster['name']} cannot be removed: {' '.join(last)}") from None
