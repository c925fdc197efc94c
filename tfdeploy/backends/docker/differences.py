"""What a plan changes in the services that stand, in words; pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...containers import OVERLAY
from ...plan import Plan, TaskPlan
from . import names

Standing = Mapping[str, Mapping[str, Any]]
"""Hostname to service, as the Engine API gives it."""


def sentences(plan: Plan, containers: Mapping[str, Mapping[str, Any]], standing: Standing) -> list[str]:
    """A sentence for each group of tasks in which the same changes, and what that does to them."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for task in plan.tasks:
        if task.hostname in standing:
            words = tuple(_changes(task, containers[task.hostname], standing[task.hostname]["Spec"]))
            groups.setdefault(words, []).append(task.hostname)
    groups.pop((), None)
    return [f"{', '.join(hostnames)}: {', '.join(words)} {_effect(words)}" for words, hostnames in groups.items()]


def unshared(plan: Plan, standing: Mapping[str, str]) -> list[str]:
    """A warning where checkpoints are in a volume of each machine's own, and not all of them on one; `standing` is hostname to
    machine, of the tasks that stand."""
    now = {task.hostname: task.machine for task in plan.tasks}
    if len({*now.values(), *standing.values()}) < 2:
        return []
    moves = [
        f"{name} moves from {standing[name]} to {machine}"
        for name, machine in now.items()
        if standing.get(name, machine) != machine
    ]
    comes = [f"{name} comes to {machine}" for name, machine in now.items() if standing and name not in standing]
    goes = [f"{name} goes from {machine}" for name, machine in standing.items() if name not in now]
    told = [*goes, *comes, *moves]
    own = "train_dir is not given, so each machine has a volume of its own"
    share = "Name a folder that all machines share"
    if told:
        return [f"{', '.join(told)}: {own}, and who starts again finds only what was saved on its machine. {share}"]
    if len(set(now.values())) < 2:
        return []
    return [f"{own}: checkpoints of tasks on other machines than the first are not together. {share}"]


def _effect(words: Sequence[str]) -> str:
    verb = "changes" if len(words) == 1 else "change"
    if "network" in words:
        return f"{verb}: all are replaced at once, and resume"
    return f"{verb}: their containers are replaced, while they run one at a time"


def _changes(task: TaskPlan, container: Mapping[str, Any], spec: Mapping[str, Any]) -> list[str]:
    template = spec["TaskTemplate"]
    now = template["ContainerSpec"]
    limits = template.get("Resources", {}).get("Limits", {})
    on_overlay = any(network.get("Aliases") for network in template.get("Networks") or [])
    shm = [mount for mount in now.get("Mounts", []) if mount["Target"] == "/dev/shm"]
    mounts = [mount for mount in now.get("Mounts", []) if mount not in shm]
    pairs = {
        "image": (now["Image"].partition("@")[0], container["image"]),
        "user": (now.get("User", ""), container["user"]),
        "volumes": (list(map(_essence, mounts)), list(map(_essence, container["mounts"]))),
        "shm_size": (shm[0].get("TmpfsOptions", {}).get("SizeBytes", 0) if shm else 0, container["shm_size"]),
        "memory": (limits.get("MemoryBytes", 0), task.memory),
        "cpus": (limits.get("NanoCPUs", 0), int(task.cpus * 1e9)),
        "machine": (spec["Labels"].get(names.MACHINE), task.machine),
        "network": (on_overlay, container["network"] == OVERLAY),
    }
    return [word for word, (before, after) in pairs.items() if before != after]


def _essence(mount: Mapping[str, Any]) -> tuple[str, str, str, bool, Mapping[str, Any]]:
    driver = mount.get("VolumeOptions", {}).get("DriverConfig") or {}
    options = {**driver.get("Options", {}), **mount.get("TmpfsOptions", {})}
    return mount["Type"], mount.get("Source", ""), mount["Target"], bool(mount.get("ReadOnly")), options
