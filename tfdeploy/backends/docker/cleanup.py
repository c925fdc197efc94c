"""Remove everything of a cluster from a Swarm: all objects with its labels, also those that Pulumi did not create."""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from docker.errors import APIError

from ...errors import BackendError
from ..controller_calls import wait_for
from .labels import RECORD_VOLUME, TRAIN_VOLUME, cluster_filter, label_filter, search_labels
from .swarm.services import ContainerDependencies
from .swarm.swarm import Swarm
from .volumes import volume_cleanup
from .volumes.retained_volumes import remaining_volume_text, retained_volume_text
from .volumes.volume_cleanup import NotRemoved

_RETRY_SECONDS = 30.0
_NETWORK_SECONDS = 15.0
"""A container has 10 s to end, unless the user gives it more. On a machine that does not respond it may never end."""

_ENDED_STATUSES = ["exited", "dead", "created"]

Filters = dict[str, list[str]]
Labels = Mapping[str, str]


@dataclass(frozen=True)
class _Kind:
    """One kind of object on an engine, and the calls of the engine's API that list and remove it."""

    name: str
    list_ids: Callable[[Filters, Any], list[str]]
    """The ids of the objects with the labels; a volume's id is its name."""
    remove: Callable[[str, Any], None]


_NETWORK = _Kind(
    "network",
    lambda filters, api: [item["Id"] for item in api.networks(filters=filters)],
    lambda network, api: api.remove_network(network),
)
_SWARM_KINDS = (
    _NETWORK,
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
_ENDED_CONTAINER = _Kind(
    "container",
    lambda filters, api: [
        item["Id"] for item in api.containers(all=True, filters={**filters, "status": _ENDED_STATUSES})
    ],
    lambda container, api: api.remove_container(container, force=True),
)


def remove_all(swarm: Swarm, timeout: float, retain_checkpoints: bool, task_machines: Collection[str]) -> str:
    """Remove services, networks, configs, secrets, images and the record's volume; the volume with the checkpoints unless it is
    retained. `task_machines` are the machines of the tasks that use that volume.

    Returns:
        A sentence about the volumes that still exist, and how to remove them.

    Raises:
        BackendError: something cannot be removed; the message names it.
    """
    services = swarm.services()
    helper = None if retain_checkpoints else volume_cleanup.checkpoint_helper(swarm, services)
    swarm.remove(*services, timeout=timeout)
    error = f"the containers of {swarm.cluster['name']} did not end"
    wait_for(lambda: _no_container_exists(swarm), error, timeout)
    not_removed = volume_cleanup.remove_checkpoints(swarm, helper, timeout) if helper else NotRemoved()
    for kind in (*_SWARM_KINDS, _IMAGE):
        _remove_kind(swarm, kind)
    for volume in (RECORD_VOLUME, *(() if retain_checkpoints else (TRAIN_VOLUME,))):
        _remove_kind(swarm, _VOLUME, search_labels(swarm.cluster, volume))
    if retain_checkpoints:
        return _retained_checkpoints(swarm, task_machines)
    return remaining_volume_text(swarm.cluster, not_removed.machines, not_removed.reason)


def _retained_checkpoints(swarm: Swarm, task_machines: Collection[str]) -> str:
    manager = swarm.engine.name()
    has_volume = bool(_list_ids(swarm, _VOLUME, search_labels(swarm.cluster, TRAIN_VOLUME)))
    return retained_volume_text(
        swarm.cluster, [*([manager] if has_volume else []), *sorted(set(task_machines) - {manager, ""})]
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
