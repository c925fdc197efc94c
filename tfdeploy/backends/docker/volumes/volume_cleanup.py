"""Remove a cluster's volumes, also from machines with an engine that this computer does not reach.

A manager cannot remove volumes of other nodes. A temporary service does that there: the agent's `remove_volumes` with the
machine's Docker socket, which is root on that machine. So its image is never the user's, but `docker.cleanup_image`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from docker.errors import APIError

from ....agent.remove_volumes import ONLY, SERVICE
from ....errors import BackendError
from ....spec.docker import CLEANUP_IMAGE
from ...base import CONTROLLER
from ...controller_calls import wait_for
from ..engine.engine import Engine, engine_errors
from ..labels import (
    CLEANUP_IMAGE_LABEL,
    HOSTNAME_LABEL,
    MACHINE_LABEL,
    TRAIN_VOLUME,
    cluster_labels,
    label_filter,
    search_labels,
    service_name,
    user_volume_labels,
    volume_name,
)
from ..swarm.services import AGENT_COMMAND, ServiceJson, Services
from ..swarm.swarm import Swarm
from .mounts import bind
from .volumes import writable_volumes

_HELPER = "remove-volumes"
"""The hostname of the service that removes volumes from other machines."""

_HELPER_SECONDS = 30.0
_DOCKER_SOCKET = "/var/run/docker.sock"
_ONE_TASK_PER_MACHINE: dict[str, Any] = {"GlobalJob": {}}
"""The mode of a service that runs once on each machine."""

_ENDED_STATUSES = ["exited", "dead", "created"]

Template = dict[str, Any]
"""A service's task template in the form of the Engine API."""


@dataclass(frozen=True)
class NotRemoved:
    """Machines on which a volume was not removed, and why."""

    machines: tuple[str, ...] = ()
    reason: str = ""


def checkpoint_helper(swarm: Swarm, services: Services) -> Template | None:
    """The service that removes the volume of the default `train_dir` from the other machines.

    It is read from the cluster's services before they are removed. None where no other machine can have the volume.
    """
    manager_id = swarm.engine.swarm_info()["NodeID"]
    nodes = swarm.engine.call(lambda api: api.nodes())
    has_others = any(node["ID"] != manager_id and node["Status"]["State"] == "ready" for node in nodes)
    if not has_others or not services or not _mounts_checkpoints(swarm, services):
        return None
    labels = label_filter(search_labels(swarm.cluster, TRAIN_VOLUME))["label"]
    return _template(swarm, services, next(iter(services)), labels, f"node.id!={manager_id}")


def _mounts_checkpoints(swarm: Swarm, services: Services) -> bool:
    """Whether the cluster uses the default `train_dir`; True also where the controller, which mounts it, does not exist."""
    if CONTROLLER not in services:
        return True
    name = volume_name(swarm.cluster, TRAIN_VOLUME)
    return any(mount["Source"] == name for mount in writable_volumes(services, CONTROLLER))


def remove_checkpoints(swarm: Swarm, helper: Template, timeout: float) -> NotRemoved:
    """Remove the volume of the default `train_dir` from the other machines; where that fails, they keep it."""
    manager_id = swarm.engine.swarm_info()["NodeID"]
    nodes = swarm.engine.call(lambda api: api.nodes())
    others = {node["ID"]: node["Description"]["Hostname"] for node in nodes if node["ID"] != manager_id}
    reason, done = "the machine does not respond", set()
    try:
        with _helper_service(swarm, helper):
            with suppress(BackendError):
                wait_for(lambda: swarm.has_ended(_HELPER), "", timeout)
            for task in swarm.all_tasks_of(_HELPER):
                status = task["Status"]
                if status["State"] == "complete":
                    done.add(task.get("NodeID"))
                else:
                    reason = status.get("Err") or status["State"]
    except BackendError as error:
        reason = str(error)
    return NotRemoved(tuple(sorted(name for node, name in others.items() if node not in done)), reason)


def remove_volumes(
    swarm: Swarm, hostname: str, volumes: Sequence[str], timeout: float, machine_engine: Engine | None
) -> None:
    """Remove volumes that Docker created for a task from its machine. The container must have ended.

    `machine_engine` is the engine of the task's machine; None where this computer does not reach it.

    Raises:
        BackendError: they cannot be removed.
    """
    services = swarm.services()
    spec = services[hostname]["Spec"]
    machine = spec["Labels"][MACHINE_LABEL]
    title = f"the volumes {', '.join(volumes)} of {hostname} on {machine}"
    if machine_engine is not None:
        error = f"{title} are in use and were not removed"
        wait_for(lambda: _remove_from(machine_engine, swarm, spec["Name"], volumes), error, timeout)
        return
    labels = [*label_filter(user_volume_labels(swarm.cluster))["label"], ONLY, spec["Name"], *volumes]
    template = _template(swarm, services, hostname, labels, f"node.hostname=={machine}")
    with _helper_service(swarm, template):
        wait_for(lambda: swarm.has_ended(_HELPER), f"{title} were not removed", timeout)
        failures = swarm.history(_HELPER).failures
    if failures:
        reason = failures[-1]["Status"].get("Err") or "they are in use"
        raise BackendError(f"{title} were not removed ({reason}). Run `docker volume rm` there.")


def _template(swarm: Swarm, services: Services, hostname: str, arguments: Sequence[str], constraint: str) -> Template:
    """The agent's `remove_volumes` with the agent of a service."""
    container = {
        "Image": _image(services),
        "Configs": services[hostname]["Spec"]["TaskTemplate"]["ContainerSpec"]["Configs"],
        "Command": [*AGENT_COMMAND, "remove-volumes", *arguments],
        "User": "0",
        "Mounts": [bind(_DOCKER_SOCKET, _DOCKER_SOCKET, False)],
        "Labels": dict(cluster_labels(swarm.cluster)),
    }
    return {
        "ContainerSpec": container,
        "RestartPolicy": {"Condition": "none"},
        "Placement": {"Constraints": [constraint]},
    }


def _image(services: Mapping[str, ServiceJson]) -> str:
    controller = services.get(CONTROLLER)
    return (controller["Spec"]["Labels"].get(CLEANUP_IMAGE_LABEL) if controller else "") or CLEANUP_IMAGE


def _remove_from(engine: Engine, swarm: Swarm, service: str, volumes: Sequence[str]) -> bool:
    """Remove volumes from one engine, with the ended containers that mount them; True when none is left."""
    ended = {"label": [f"{SERVICE}={service}"], "status": _ENDED_STATUSES}
    for item in engine.call(lambda api: api.containers(all=True, filters=ended)):
        engine.remove(lambda api, item=item: api.remove_container(item["Id"], force=True))  # type: ignore[misc]
    filters = label_filter(user_volume_labels(swarm.cluster))
    existing = engine.call(lambda api: api.volumes(filters=filters))["Volumes"] or []
    remaining = set(volumes) & {item["Name"] for item in existing}
    for volume in remaining:
        with suppress(APIError):
            engine.remove(lambda api, volume=volume: api.remove_volume(volume))  # type: ignore[misc]
    return not remaining


@contextmanager
def _helper_service(swarm: Swarm, template: Template) -> Iterator[None]:
    """A temporary service, which is removed at the end."""
    name = service_name(swarm.cluster, _HELPER)
    labels = {**cluster_labels(swarm.cluster), HOSTNAME_LABEL: _HELPER}
    swarm.engine.remove(lambda api: api.remove_service(name))
    with engine_errors(name):
        swarm.engine.call_once(
            lambda api: api.create_service(template, name=name, labels=labels, mode=_ONE_TASK_PER_MACHINE)
        )
    try:
        yield
    finally:
        swarm.remove(_HELPER, timeout=_HELPER_SECONDS)
