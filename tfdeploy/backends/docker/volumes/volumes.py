"""The volumes of a task: which of them only it uses, and what a restart does to its data. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...base import ClusterRef
from ..labels import MACHINE_LABEL, TRAIN_VOLUME, volume_name
from ..swarm.services import Services

_LOCAL_DRIVER = "local"
"""The default driver; without options, its volumes exist on one machine only, also when others have the same name."""


def writable_volumes(services: Services, hostname: str) -> Sequence[Mapping[str, Any]]:
    """The named volumes that a task mounts."""
    mounts = services[hostname]["Spec"]["TaskTemplate"]["ContainerSpec"].get("Mounts") or []
    return [mount for mount in mounts if mount["Type"] == "volume" and mount.get("Source")]


def exclusive_volumes(cluster: ClusterRef, services: Services, hostname: str) -> list[str]:
    """The names of the volumes that only this task mounts and may write to, without the cluster's checkpoints."""
    checkpoints = volume_name(cluster, TRAIN_VOLUME)
    return [
        mount["Source"]
        for mount in writable_volumes(services, hostname)
        if mount["Source"] != checkpoints and not mount.get("ReadOnly") and not _is_shared(services, hostname, mount)
    ]


def _is_shared(services: Services, hostname: str, mount: Mapping[str, Any]) -> bool:
    """Whether another service mounts the volume; for a volume of one machine, another service on that machine."""
    driver = (mount.get("VolumeOptions") or {}).get("DriverConfig") or {}
    is_of_one_machine = driver.get("Name", _LOCAL_DRIVER) == _LOCAL_DRIVER and not driver.get("Options")
    return any(
        other != hostname
        and any(item["Source"] == mount["Source"] for item in writable_volumes(services, other))
        and not (is_of_one_machine and _machine(services, other) not in ("", _machine(services, hostname)))
        for other in services
    )


def _machine(services: Services, hostname: str) -> str:
    """The machine of a service's task; empty for a service that is not placed on one."""
    machine: str = services[hostname]["Spec"]["Labels"].get(MACHINE_LABEL, "")
    return machine


def restart_effects(cluster: ClusterRef, services: Services, hostname: str, train_dir: str, replace: bool) -> list[str]:
    """Sentences about what a restart, or a replacement, does to a task's data."""
    machine = _machine(services, hostname)
    removed = exclusive_volumes(cluster, services, hostname) if replace else []
    checkpoints = volume_name(cluster, TRAIN_VOLUME)
    mounted = [mount["Source"] for mount in writable_volumes(services, hostname)]
    retained = [volume for volume in mounted if volume not in (*removed, checkpoints)]
    sentences = [
        f"{hostname} gets a new container on {machine}; the other tasks continue.",
        "Files that it wrote into its old container are lost.",
    ]
    if removed:
        data = "will be removed with all data, unless created before the cluster"
        sentences.append(f"{_named(removed)} on {machine}, used only by this task, {data}.")
    elif replace:
        sentences.append("No volume is used only by this task, so none is removed.")
    if retained:
        sentences.append(f"{_named(retained)} will be retained.")
    return [*sentences, f"Files in train_dir ({train_dir}) will be retained."]


def _named(volumes: Sequence[str]) -> str:
    return f"Volume{'s' if len(volumes) > 1 else ''} {', '.join(volumes)}"
