"""Everything of a cluster's taken off the Swarm, however it came to be left."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from docker.errors import APIError

from ...agent.forget import ONLY, SERVICE
from ...errors import BackendError
from ..keeping import wait_for
from . import names
from .engine import refusals
from .mounts import bind
from .services import PYTHON
from .swarm import Swarm

_SECONDS = 30.0
_FORGET = "forget"
_ENGINE = "/var/run/docker.sock"
_ONCE: dict[str, Any] = {"GlobalJob": {}}
"""A mode of a service: one task on each machine, to its end."""

_OVER = ["exited", "dead", "created"]
"""What a container is called that does not run."""

Template = dict[str, Any]
Filters = dict[str, list[str]]


@dataclass(frozen=True)
class _Kind:
    """One kind of thing on an engine, and the calls of the engine's API that find and remove it."""

    name: str
    find: Callable[[Filters, Any], list[str]]
    """The ids of those that carry the labels; a volume has only its name."""
    remove: Callable[[str, Any], None]
    """Remove the one of that id."""


_SUPPLIES = (
    _Kind(
        "network",
        lambda filters, api: [item["Id"] for item in api.networks(filters=filters)],
        lambda network, api: api.remove_network(network),
    ),
    _Kind(
        "config",
        lambda filters, api: [item["ID"] for item in api.configs(filters=filters)],
        lambda config, api: api.remove_config(config),
    ),
    _Kind(
        "secret",
        lambda filters, api: [item["ID"] for item in api.secrets(filters=filters)],
        lambda secret, api: api.remove_secret(secret),
    ),
)
_IMAGE = _Kind(
    "image",
    lambda filters, api: [item["Id"] for item in api.images(filters=filters)],
    lambda image, api: api.remove_image(image, force=True),
)
_VOLUME = _Kind(
    "volume",
    lambda filters, api: [item["Name"] for item in api.volumes(filters=filters)["Volumes"] or []],
    lambda volume, api: api.remove_volume(volume),
)
_ENDED = _Kind(
    "container",
    lambda filters, api: [item["Id"] for item in api.containers(all=True, filters={**filters, "status": _OVER})],
    lambda container, api: api.remove_container(container, force=True),
)


def clear(swarm: Swarm, seconds: float, keep_volumes: bool) -> None:
    """Remove services, networks, configs, secrets, images, and volumes unless they are to be kept.

    Raises:
        BackendError: something does not go away; it is named.
    """
    services = swarm.services()
    helper = _elsewhere(swarm, list(services.values())) if not keep_volumes else None
    swarm.remove(*services, seconds=seconds)
    wait_for(lambda: _containers_gone(swarm), f"the containers of {swarm.cluster['name']} did not end", seconds)
    if helper is not None:
        _volumes_elsewhere(swarm, helper, seconds)
    for kind in (*_SUPPLIES, _IMAGE, *([] if keep_volumes else [_VOLUME])):
        _remove_all(swarm, kind)


def tidy(swarm: Swarm, used: Iterable[str]) -> None:
    """Remove the networks, configs and secrets of the cluster that others have taken the place of; `used` names those that
    services refer to, each beginning with its id. What is in use for a moment more stays for `clear`."""
    wanted = {reference.split()[0] for reference in used}
    for kind in _SUPPLIES:
        _remove(swarm, kind, wanted)


def _elsewhere(swarm: Swarm, services: list[Any]) -> Template | None:
    """What would remove the cluster's volumes from the other machines of the Swarm: the agent, in an image of the
    cluster's. None where there is no other machine, or no service to take image and agent from."""
    mine = swarm.engine.swarm()["NodeID"]
    others = [node for node in swarm.engine.call(lambda api: api.nodes()) if node["ID"] != mine]
    specs = [item["Spec"]["TaskTemplate"]["ContainerSpec"] for item in services]
    if not specs or not any(node["Status"]["State"] == "ready" for node in others):
        return None
    return _forgetting(swarm, specs[0], (), f"node.id!={mine}")


def _forgetting(swarm: Swarm, like: Mapping[str, Any], more: Sequence[str], where: str) -> Template:
    """The agent's `forget` on the machines `where`, in the image of a container `like` this one."""
    container = {
        "Image": like["Image"],
        "Configs": like["Configs"],
        "Command": [*PYTHON, "forget", *names.filters(swarm.cluster)["label"], *more],
        "User": "0",
        "Mounts": [bind(_ENGINE, _ENGINE, False)],
        "Labels": dict(names.labels(swarm.cluster)),
    }
    return {
        "ContainerSpec": container,
        "RestartPolicy": {"Condition": "none"},
        "Placement": {"Constraints": [where]},
    }


def _volumes_elsewhere(swarm: Swarm, template: Template, seconds: float) -> None:
    """Run it on every other machine, once; a machine that does not answer keeps what it has."""
    with _once(swarm, template), suppress(BackendError):
        wait_for(lambda: swarm.over(_FORGET), "", seconds)


def forget_volumes(swarm: Swarm, hostname: str, volumes: Sequence[str], seconds: float) -> None:
    """Remove volumes of the cluster's from the machine of a task whose container has ended.

    Raises:
        BackendError: they do not go away.
    """
    found = swarm.services()[hostname]["Spec"]
    like, machine = found["TaskTemplate"]["ContainerSpec"], found["Labels"][names.MACHINE]
    which = f"the volumes {', '.join(volumes)} of {hostname} on {machine}"
    if machine == swarm.engine.call(lambda api: api.info())["Name"]:
        wait_for(
            lambda: _forgotten_here(swarm, found["Name"], volumes),
            f"{which} are in use elsewhere, and stay: not",
            seconds,
        )
        return
    with _once(swarm, _forgetting(swarm, like, (ONLY, found["Name"], *volumes), f"node.hostname=={machine}")):
        wait_for(lambda: swarm.over(_FORGET), f"{which} were not removed", seconds)
        refused = swarm.fate(_FORGET)[1]
    if refused:
        raise BackendError(f"{which} are in use elsewhere, and stay.")


def _forgotten_here(swarm: Swarm, service: str, volumes: Sequence[str]) -> bool:
    """Remove them from this engine, and the ended containers that have them still; whether none is left."""
    of_service = [*names.filters(swarm.cluster)["label"], f"{SERVICE}={service}"]
    for container in swarm.engine.call(partial(_ENDED.find, {"label": of_service})):
        swarm.engine.gone(partial(_ENDED.remove, container))
    left = set(volumes) & set(_found(swarm, _VOLUME))
    for volume in left:
        with suppress(APIError):
            swarm.engine.gone(partial(_VOLUME.remove, volume))
    return not left


@contextmanager
def _once(swarm: Swarm, template: Template) -> Iterator[None]:
    """A service that runs this, for as long as it is looked at."""
    name = names.service(swarm.cluster, _FORGET)
    labels = {**names.labels(swarm.cluster), names.HOSTNAME: _FORGET}
    swarm.engine.gone(lambda api: api.remove_service(name))
    with refusals(name):
        swarm.engine.call(lambda api: api.create_service(template, name=name, labels=labels, mode=_ONCE))
    try:
        yield
    finally:
        swarm.remove(_FORGET, seconds=_SECONDS)


def _containers_gone(swarm: Swarm) -> bool:
    """Whether the Swarm has removed those of this engine; ended ones that it left are removed here."""
    filters = names.filters(swarm.cluster)
    found = swarm.engine.call(lambda api: api.containers(all=True, filters=filters))
    _remove(swarm, _ENDED)
    return not found


def _found(swarm: Swarm, kind: _Kind) -> list[str]:
    return swarm.engine.call(partial(kind.find, names.filters(swarm.cluster)))


def _remove(swarm: Swarm, kind: _Kind, kept: Collection[str] = ()) -> str:
    """Remove what is the cluster's of one kind, but for `kept`; why the engine would not, or "" where it did."""
    why = ""
    for item in _found(swarm, kind):
        if item not in kept:
            try:
                swarm.engine.gone(partial(kind.remove, item))
            except APIError as error:
                why = str(error.explanation or error)
    return why


def _remove_all(swarm: Swarm, kind: _Kind) -> None:
    """Remove all of one kind; what is still in use for a moment is tried again."""
    why = ""

    def gone() -> bool:
        nonlocal why
        why = _remove(swarm, kind) or why
        return not _found(swarm, kind)

    try:
        wait_for(gone, "not removed", _SECONDS)
    except BackendError:
        raise BackendError(f"a {kind.name} of {swarm.cluster['name']} cannot be removed: {why}") from None
