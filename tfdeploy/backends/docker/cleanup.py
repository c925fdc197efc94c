"""Remove everything of a cluster from a Swarm: all objects with its labels, also those that Pulumi did not create.

A manager cannot remove volumes of other nodes, whose engines this computer does not reach. A temporary service does that there: the
agent's `remove_volumes` with the machine's Docker socket, which is root on that machine. So its image is never the user's, but
`docker.cleanup_image`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import MappingProxyType
from typing import Any

from docker.errors import APIError

from ...agent.remove_volumes import ONLY, SERVICE
from ...errors import BackendError
from ...spec.docker import CLEANUP_IMAGE
from ..base import CONTROLLER
from ..controller_calls import wait_for
from .engine.engine import Engine, engine_errors
from .labels import (
    CLEANUP_IMAGE_LABEL,
    HOSTNAME_LABEL,
    RECORD_VOLUME,
    TRAIN_VOLUME,
    Services,
    cluster_filter,
    cluster_labels,
    label_filter,
    machine_of,
    search_labels,
    service_name,
    user_volume_labels,
    volume_name,
)
from .swarm.services import AGENT_COMMAND, ContainerDependencies
from .swarm.swarm import Swarm
from .volumes import bind, writable_volumes

_RETRY_SECONDS = 30.0
_NETWORK_SECONDS = 15.0
"""A container has 10 s to end, unless the user gives it more. On a machine that does not respond it may never end."""

Filters = Mapping[str, list[str]]
Labels = Mapping[str, str]


_HELPER = "remove-volumes"
"""The hostname of the service that removes volumes from other machines."""

_HELPER_SECONDS = 30.0
_DOCKER_SOCKET = "/var/run/docker.sock"
_ONE_TASK_PER_MACHINE: dict[str, Any] = {"GlobalJob": {}}
"""The mode of a service that runs once on each machine."""

Template = dict[str, Any]
"""A service's task template in the form of the Engine API."""


class _Kind:
    """One kind of object on an engine, by the names that the engine's API has for it."""

    def __init__(self, name: str, key: str = "ID", filters: Filters = MappingProxyType({}), **removal: bool) -> None:
        """`key` is the member with the id; `removal` are the options of its removal."""
        self.name, self._key, self._filters, self._removal = name, key, filters, removal

    def list_ids(self, filters: Filters, api: Any) -> list[str]:
        """The ids of the objects with the labels; a volume's id is its name."""
        options = {"all": True} if self.name == "container" else {}
        items = getattr(api, f"{self.name}s")(filters={**filters, **self._filters}, **options)
        return [item[self._key] for item in (items["Volumes"] or [] if self.name == "volume" else items)]

    def remove(self, object_id: str, api: Any) -> None:
        """Remove one."""
        getattr(api, f"remove_{self.name}")(object_id, **self._removal)


_NETWORK = _Kind("network", "Id")
_SWARM_KINDS = (_NETWORK, _Kind("config"), _Kind("secret"))
_IMAGE = _Kind("image", "Id", force=True)
_VOLUME = _Kind("volume", "Name")
_ENDED_CONTAINER = _Kind("container", "Id", {"status": ["exited", "dead", "created"]}, force=True)


def remove_all(swarm: Swarm, timeout: float, retain_checkpoints: bool, task_machines: Collection[str]) -> str:
    """Remove services, networks, configs, secrets, images and the record's volume; the volume with the checkpoints unless it is
    retained. `task_machines` are the machines of the tasks that use that volume.

    Returns:
        A sentence about the volumes that still exist, and how to remove them.

    Raises:
        BackendError: something cannot be removed; the message names it.
    """
    services = swarm.services()
    helper = None if retain_checkpoints else _checkpoint_helper(swarm, services)
    swarm.remove(*services, timeout=timeout)
    _stop_abandoned(swarm)
    error = f"the containers of {swarm.cluster['name']} did not end"
    wait_for(lambda: _no_container_exists(swarm), error, timeout)
    remaining = _remove_checkpoints(swarm, helper, timeout) if helper else ""
    for kind in (*_SWARM_KINDS, _IMAGE):
        _remove_kind(swarm, kind)
    for volume in (RECORD_VOLUME, *(() if retain_checkpoints else (TRAIN_VOLUME,))):
        _remove_kind(swarm, _VOLUME, search_labels(swarm.cluster, volume))
    if retain_checkpoints:
        return _retained_checkpoints(swarm, task_machines)
    return remaining


def _retained_checkpoints(swarm: Swarm, task_machines: Collection[str]) -> str:
    """Where the checkpoints of a destroyed cluster are, and how they are removed; empty where there are none."""
    manager, name = swarm.engine.name(), volume_name(swarm.cluster, TRAIN_VOLUME)
    has_volume = bool(_list_ids(swarm, _VOLUME, search_labels(swarm.cluster, TRAIN_VOLUME)))
    machines = [*([manager] if has_volume else []), *sorted(set(task_machines) - {manager, ""})]
    if not machines:
        return ""
    return (
        f"the checkpoints are retained in the volume {name} on {', '.join(machines)}; "
        f"`docker volume rm {name}` {'there' if len(machines) == 1 else 'on each'} removes them"
    )


def remove_unused(swarm: Swarm, used: ContainerDependencies) -> None:
    """Remove the cluster's networks, configs and secrets that were replaced. What is still in use is left to `remove_all`.

    A network is in use until the last container of the former services has ended. Its addresses are free only then, so this waits for
    that for a while.
    """
    references = [used["agent"], used["token"], *used.get("secrets", {}).values()]
    retained = {used.get("network", ""), *(reference["id"] for reference in references), *swarm.mounted_secrets()}
    for kind in _SWARM_KINDS:
        _try_to_remove(swarm, kind, retained)

    def only_used_networks_exist() -> bool:
        if retained.issuperset(_list_ids(swarm, _NETWORK)):
            return True
        _try_to_remove(swarm, _NETWORK, retained)
        return False

    with suppress(BackendError):
        wait_for(only_used_networks_exist, "not removed", _NETWORK_SECONDS)


def _stop_abandoned(swarm: Swarm) -> None:
    """Stop the containers on this engine whose services were removed by hand: Docker before 23 does not end those of a job."""
    filters = {**cluster_filter(swarm.cluster), "status": ["running"]}
    for container in swarm.engine.call(lambda api: api.containers(filters=filters)):
        with suppress(APIError):  # it has ended meanwhile
            swarm.engine.call(lambda api, container_id=container["Id"]: api.kill(container_id, "SIGTERM"))  # type: ignore[misc]


def _no_container_exists(swarm: Swarm) -> bool:
    """Whether the Swarm has removed the cluster's containers on this engine; ended ones that it left are removed here."""
    filters = cluster_filter(swarm.cluster)
    containers = swarm.engine.call(lambda api: api.containers(all=True, filters=filters))
    _try_to_remove(swarm, _ENDED_CONTAINER)
    return not containers


def _list_ids(swarm: Swarm, kind: _Kind, labels: Labels | None = None) -> list[str]:
    """The ids of the objects with these labels, by default the cluster's."""
    return swarm.engine.call(partial(kind.list_ids, label_filter(labels or search_labels(swarm.cluster))))


def _try_to_remove(swarm: Swarm, kind: _Kind, retained: Collection[str] = (), labels: Labels | None = None) -> str:
    """Remove the cluster's objects of one kind; the reason when the engine refuses one of them, else ""."""
    reason = ""
    for object_id in _list_ids(swarm, kind, labels):
        if object_id not in retained:
            try:
                swarm.engine.remove(partial(kind.remove, object_id))
            except APIError as error:
                reason = str(error.explanation or error)
    return reason


def _remove_kind(swarm: Swarm, kind: _Kind, labels: Labels | None = None) -> None:
    """Remove all objects of one kind with these labels; those still in use are retried for a while."""
    reason = ""

    def none_is_left() -> bool:
        nonlocal reason
        reason = _try_to_remove(swarm, kind, labels=labels) or reason
        return not _list_ids(swarm, kind, labels)

    try:
        wait_for(none_is_left, "not removed", _RETRY_SECONDS)
    except BackendError:
        raise BackendError(f"a {kind.name} of {swarm.cluster['name']} cannot be removed: {reason}") from None


def _checkpoint_helper(swarm: Swarm, services: Services) -> Template | None:
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


def _remove_checkpoints(swarm: Swarm, helper: Template, timeout: float) -> str:
    """Remove the volume of the default `train_dir` from the other machines; a sentence about those where that fails, which keep it."""
    manager_id, name = swarm.engine.swarm_info()["NodeID"], volume_name(swarm.cluster, TRAIN_VOLUME)
    nodes = swarm.engine.call(lambda api: api.nodes())
    others = {node["ID"]: node["Description"]["Hostname"] for node in nodes if node["ID"] != manager_id}
    reason = "the machine does not respond"
    try:
        with _helper_service(swarm, helper):
            with suppress(BackendError):
                wait_for(lambda: swarm.has_ended(_HELPER), "", timeout)
            for task in swarm.all_tasks_of(_HELPER):
                status = task["Status"]
                if status["State"] == "complete":
                    others.pop(task.get("NodeID"), None)
                else:
                    reason = status.get("Err") or status["State"]
    except BackendError as error:
        reason = str(error)
    if not others:
        return ""
    return (
        f"the volume {name} could not be removed from {', '.join(sorted(others.values()))} ({reason}); "
        f"run `docker volume rm {name}` where it exists, or set docker.cleanup_image to an image that these machines can pull"
    )


def remove_volumes(
    swarm: Swarm,
    services: Services,
    hostname: str,
    volumes: Sequence[str],
    timeout: float,
    machine_engine: Engine | None,
) -> None:
    """Remove volumes that Docker created for a task from its machine. Its container has ended, and its service was removed, which
    `services` still has.

    `machine_engine` is the engine of the task's machine; None where this computer does not reach it.

    Raises:
        BackendError: they cannot be removed.
    """
    spec = services[hostname]["Spec"]
    machine = machine_of(services[hostname])
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
        reason = failures[-1].reason or "they are in use"
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


def _image(services: Services) -> str:
    controller = services.get(CONTROLLER)
    return (controller["Spec"]["Labels"].get(CLEANUP_IMAGE_LABEL) if controller else "") or CLEANUP_IMAGE


def _remove_from(engine: Engine, swarm: Swarm, service: str, volumes: Sequence[str]) -> bool:
    """Remove volumes from one engine, with the ended containers that mount them; True when none is left."""
    for container in engine.call(partial(_ENDED_CONTAINER.list_ids, {"label": [f"{SERVICE}={service}"]})):
        engine.remove(partial(_ENDED_CONTAINER.remove, container))
    filters = label_filter(user_volume_labels(swarm.cluster))
    remaining = {*volumes}.intersection(engine.call(partial(_VOLUME.list_ids, filters)))
    for volume in remaining:
        with suppress(APIError):
            engine.remove(partial(_VOLUME.remove, volume))
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
