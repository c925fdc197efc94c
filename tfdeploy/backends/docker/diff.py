"""What a plan changes in existing services, and what that does to their tasks. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...plan.change import UPDATE, Change, detail, grouped
from ...plan.plan import Plan, TaskPlan
from ...spec.docker import HOST, OVERLAY
from ...units import text_of_size
from .labels import MACHINE_LABEL, Services
from .swarm.services import ContainerSettings
from .volumes import Mount

RESTARTS = "restarts, one task at a time"
RESTARTS_ALL = "restarts all tasks at once, and the training resumes"


@dataclass(frozen=True)
class FieldChange:
    """One setting of a task that changes."""

    field: str
    before: str
    after: str
    """Empty where it is not set."""
    effect: str = RESTARTS


def changes(plan: Plan, containers: Mapping[str, ContainerSettings], services: Services) -> tuple[Change, ...]:
    """The changes of existing services; one for all tasks that change in the same way."""
    fields = {
        task.hostname: tuple(field_changes(task, containers[task.hostname], services[task.hostname]["Spec"]))
        for task in plan.tasks
        if task.hostname in services
    }
    return grouped(_change(hostname, changed) for hostname, changed in fields.items() if changed)


def _change(hostname: str, fields: Sequence[FieldChange]) -> Change:
    effects = {change.effect for change in fields}
    effect = RESTARTS_ALL if RESTARTS_ALL in effects else RESTARTS
    details = tuple(detail(change.field, change.before, change.after) for change in fields)
    return Change(UPDATE, (hostname,), details, effect)


def field_changes(task: TaskPlan, container: ContainerSettings, spec: Mapping[str, Any]) -> Iterator[FieldChange]:
    """The settings of one task that differ from those of its service."""
    template = spec["TaskTemplate"]
    current = template["ContainerSpec"]
    limits = template.get("Resources", {}).get("Limits", {})
    is_on_overlay = any(network.get("Aliases") for network in template.get("Networks") or [])
    shm = [mount for mount in current.get("Mounts", []) if mount["Target"] == "/dev/shm"]
    volumes = [mount for mount in current.get("Mounts", []) if mount not in shm]
    shm_size = shm[0].get("TmpfsOptions", {}).get("SizeBytes", 0) if shm else 0
    pairs = {
        "image": (current["Image"].partition("@")[0], container.image),
        "user": (current.get("User", ""), container.user),
        "volumes": (_volumes_text(volumes), _volumes_text(container.mounts)),
        "shm_size": (_size_text(shm_size), _size_text(container.shm_size)),
        "memory": (_size_text(limits.get("MemoryBytes", 0)), _size_text(task.memory)),
        "cpus": (_cpus_text(limits.get("NanoCPUs", 0)), _cpus_text(int(task.cpus * 1e9))),
        "machine": (spec["Labels"].get(MACHINE_LABEL, ""), task.machine),
        "network": (OVERLAY if is_on_overlay else HOST, container.network),
    }
    for field, (before, after) in pairs.items():
        if before != after:
            yield FieldChange(field, before, after, RESTARTS_ALL if field == "network" else RESTARTS)


def checkpoint_warnings(plan: Plan, task_machines: Mapping[str, str]) -> list[str]:
    """A warning where each machine has its own volume for checkpoints, and the tasks are on several machines.

    `task_machines` is hostname to machine of the existing tasks.
    """
    planned = {task.hostname: task.machine for task in plan.tasks}
    if len({*planned.values(), *task_machines.values()}) < 2:
        return []
    removed = [f"{name} is removed from {machine}" for name, machine in task_machines.items() if name not in planned]
    added = [
        f"{name} is added on {machine}"
        for name, machine in planned.items()
        if task_machines and name not in task_machines
    ]
    moved = [
        f"{name} moves from {task_machines[name]} to {machine}"
        for name, machine in planned.items()
        if task_machines.get(name, machine) != machine
    ]
    reason = "train_dir is not set, so each machine has its own volume for checkpoints"
    remedy = "Set train_dir to a folder that all machines share"
    if moves := [*removed, *added, *moved]:
        effect = "a task that restarts finds only the checkpoints of its machine"
        return [f"{', '.join(moves)}. {reason}, and {effect}. {remedy}"]
    if len(set(planned.values())) < 2:
        return []
    return [f"{reason}, and no machine has all checkpoints. {remedy}"]


def _size_text(size: int) -> str:
    return text_of_size(size) if size else ""


def _cpus_text(nano_cpus: int) -> str:
    return f"{nano_cpus / 1e9:g}" if nano_cpus else ""


def _volumes_text(mounts: Sequence[Mount]) -> str:
    return " ".join(map(_mount_text, mounts))


def _mount_text(mount: Mount) -> str:
    """A mount as in `volumes`, with those of its options that matter to a task."""
    driver = (mount.get("VolumeOptions") or {}).get("DriverConfig") or {}
    options = {**driver.get("Options", {}), **mount.get("TmpfsOptions", {})}
    suffix = "".join(f",{key}={value}" for key, value in sorted(options.items()))
    return f"{mount.get('Source') or mount['Type']}:{mount['Target']}{':ro' if mount.get('ReadOnly') else ''}{suffix}"
