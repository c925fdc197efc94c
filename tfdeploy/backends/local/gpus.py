"""The GPUs that a cluster may use: those of this machine that the user's shell allows and no other cluster of the user has."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from weakref import WeakKeyDictionary

from ...agent.model.settings import TaskSettings
from ...agent.record.record import Record
from ...paths import state_folder
from ...plan.plan import Plan
from ...plan.scheduler import Machine
from .paths import CLUSTERS, Places
from .supervisor import Supervisor

VISIBLE = "CUDA_VISIBLE_DEVICES"

Devices = Sequence[tuple[str, str]]
"""Index and UUID of each GPU."""

_planned: WeakKeyDictionary[object, dict[str, Sequence[str]]] = WeakKeyDictionary()
"""Pulumi's engine to the clusters that this program has planned in its update, each by its home, and their GPUs."""


def allowed_gpus(devices: Devices, listed: str | None) -> tuple[str, ...]:
    """The GPUs that a value of `CUDA_VISIBLE_DEVICES` allows, as it names them; all by their index where it is not set. As in CUDA, an
    entry that is not valid hides those after it. Pure."""
    if listed is None:
        return tuple(index for index, _ in devices)
    allowed: dict[str, str] = {}
    for entry in map(str.strip, listed.split(",")):
        device = _device(devices, entry)
        if not device or device in allowed:
            break
        allowed[device] = entry
    return tuple(allowed.values())


def _device(devices: Devices, entry: str) -> str:
    """The index of a GPU that is named by its index or by the first letters of its UUID; a MIG instance is its own."""
    if entry.startswith("MIG-"):
        return entry
    matches = [
        index for index, uuid in devices if entry == index or (entry.startswith("GPU-") and uuid.startswith(entry))
    ]
    return matches[0] if len(matches) == 1 else ""


def installed_gpus() -> Devices:
    """The NVIDIA GPUs, as `nvidia-smi` lists them; none where it is missing or finds no driver."""
    if shutil.which("nvidia-smi") is None:
        return ()
    command = ["nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader"]
    try:
        completed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    if completed.returncode:
        return ()
    lines = (line.partition(",") for line in completed.stdout.splitlines())
    return tuple((index.strip(), uuid.strip()) for index, _, uuid in lines)


def with_gpus(machine: Machine) -> Machine:
    """The machine with the GPUs that the shell of this process allows."""
    listed = os.environ.get(VISIBLE)
    limit = "" if listed is None else f"{VISIBLE}={listed!r}"
    return replace(machine, gpus=allowed_gpus(installed_gpus(), listed), limit=limit)


def without_used(machine: Machine, home: str) -> Machine:
    """The machine without the GPUs that other clusters of the user have."""
    devices, used = installed_gpus(), dict(_used_gpus(home))
    by_device = {_device(devices, gpu) or gpu: name for gpu, name in used.items()}
    taken = {gpu: name for gpu in machine.gpus if (name := by_device.get(_device(devices, gpu) or gpu))}
    limits = [machine.limit] * bool(machine.limit) + [f"{name} has GPU {gpu}" for gpu, name in taken.items()]
    return replace(machine, gpus=tuple(gpu for gpu in machine.gpus if gpu not in taken), limit=", ".join(limits))


def _used_gpus(home: str) -> Iterator[tuple[str, str]]:
    """Each GPU of another cluster with an open run, or planned in this update, and the name of that cluster's folder."""
    for other, gpus in _planned_here().items():
        if other != home:
            yield from ((gpu, Path(other).name) for gpu in gpus)
    for folder in (state_folder() / CLUSTERS).glob("*-*"):
        places = Places(str(folder))
        if str(folder) != home and Supervisor(places).lives() and _is_open(places):
            for settings in task_settings(places).values():
                yield from ((gpu, folder.name) for gpu in filter(None, (settings.gpus or "").split(",")))


def _is_open(places: Places) -> bool:
    run = Record(places.record).current()
    return run is None or run.result is None


def task_settings(places: Places) -> Mapping[str, TaskSettings]:
    """Hostname of each existing task to its settings."""
    settings = {}
    for path in sorted(places.tasks.glob("*/task.json")):
        with suppress(OSError, ValueError, TypeError):
            settings[path.parent.name] = TaskSettings.from_dict(json.loads(path.read_text(encoding="utf-8")))
    return settings


def note_planned(home: str, plan: Plan) -> None:
    """Note the GPUs of a cluster: the clusters that the same program plans after it get others."""
    _planned_here()[home] = [gpu for task in plan.tasks for gpu in task.gpus]


def _planned_here() -> dict[str, Sequence[str]]:
    from pulumi.runtime.settings import get_monitor

    monitor = get_monitor()
    return {} if monitor is None else _planned.setdefault(monitor, {})
