"""What a task has in volumes: what is its own, and what others have too. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..base import Cluster
from . import names

Services = Mapping[str, Mapping[str, Any]]
"""Hostname to service, as the Engine API gives it."""

_HERE = "local"
"""The driver whose volumes are on one machine, and nobody else's of the same name are the same."""


def volumes(services: Services, hostname: str) -> Sequence[Mapping[str, Any]]:
    """The volumes that a task mounts and may write to."""
    mounts = services[hostname]["Spec"]["TaskTemplate"]["ContainerSpec"].get("Mounts") or []
    return [mount for mount in mounts if mount["Type"] == "volume" and mount.get("Source")]


def own(cluster: Cluster, services: Services, hostname: str) -> list[str]:
    """The names of those that it alone mounts and may write to; never that of the cluster's checkpoints."""
    shared = names.volume(cluster, names.TRAIN)
    return [
        mount["Source"]
        for mount in volumes(services, hostname)
        if mount["Source"] != shared and not mount.get("ReadOnly") and not _others(services, hostname, mount)
    ]


def _others(services: Services, hostname: str, mount: Mapping[str, Any]) -> bool:
    """Whether another service mounts it; one on another machine does not, where volumes are of one machine."""
    driver = (mount.get("VolumeOptions") or {}).get("DriverConfig") or {}
    of_one_machine = driver.get("Name", _HERE) == _HERE and not driver.get("Options")
    return any(
        other != hostname
        and any(one["Source"] == mount["Source"] for one in volumes(services, other))
        and not (of_one_machine and _machine(services, other) not in ("", _machine(services, hostname)))
        for other in services
    )


def _machine(services: Services, hostname: str) -> str:
    """Where its tasks stand; empty where that is not said."""
    machine: str = services[hostname]["Spec"]["Labels"].get(names.MACHINE, "")
    return machine


def sentences(cluster: Cluster, services: Services, hostname: str, train_dir: str, anew: bool) -> list[str]:
    """What a restart, or a replacement (`anew`), does to a task's data."""
    machine = _machine(services, hostname)
    lost = own(cluster, services, hostname) if anew else []
    shared = names.volume(cluster, names.TRAIN)
    stay = [one["Source"] for one in volumes(services, hostname) if one["Source"] not in (*lost, shared)]
    told = [
        f"{hostname} gets a new container on {machine}; the other tasks go on.",
        "What it has written into its container is lost.",
    ]
    if lost:
        verb = "are" if len(lost) > 1 else "is"
        told.append(
            f"Its own {_named(lost)} on {machine} {verb} removed with its content, unless it was there before the cluster."
        )
    elif anew:
        told.append("It has no volume of its own that could be lost.")
    if stay:
        told.append(f"The {_named(stay)} {'stay' if len(stay) > 1 else 'stays'}.")
    return [*told, f"What is in train_dir ({train_dir}) stays."]


def _named(volumes: Sequence[str]) -> str:
    return f"{'volumes' if len(volumes) > 1 else 'volume'} {', '.join(volumes)}"
