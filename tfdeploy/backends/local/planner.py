"""From a spec to a plan on this machine, with its processors, memory and GPUs. Nothing here writes."""

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from ...agent.model.settings import TaskSettings
from ...agent.record.record import Record
from ...agent.record.run_folders import recorded_folder
from ...errors import SpecError
from ...paths import absolute, state_folder
from ...plan.inventory import Inventory
from ...plan.plan import Plan, TaskPlan, grouped, updates
from ...plan.retained_data import RetainedData
from ...plan.scheduler import Machine
from ...spec.arg_reader import not_encodable
from ...spec.cluster import ClusterSpec
from ..base import ClusterRef, Planner, Rendered, shown_limits
from ..image_content import named_image_content
from ..record_copy import record_archive
from . import gpus, validate
from .paths import CLUSTERS, Places, machine_id

if TYPE_CHECKING:
    import pulumi

_MOST_FILES = 10_000


@dataclass(frozen=True, kw_only=True)
class LocalInventory(Inventory):
    """What exists on this machine."""

    tasks: Mapping[str, TaskSettings]
    """Hostname of each existing task to its settings."""


class LocalPlanner(Planner[LocalInventory]):
    """The contract is `backends.base.Planner`."""

    def home(self, folder: str, spec: ClusterSpec, providers: "Mapping[str, pulumi.ProviderResource]") -> str:
        """A cluster's home is its folder in the user's state folder.

        Raises:
            SpecError: the path is not in UTF-8, so that Pulumi cannot store it.
        """
        home = str(state_folder() / CLUSTERS / folder)
        if not_encodable(home):
            raise SpecError("XDG_STATE_HOME", f"the path {home!r} is not in UTF-8", "Set it to another folder.")
        return home

    def inspect(self, cluster: ClusterRef, spec: ClusterSpec, program_folder: Path) -> LocalInventory:
        """This machine, and the tasks that the cluster's folder has."""
        places = Places(cluster["home"])
        machine = this_machine()
        if any(job.gpus for job in spec.jobs):
            machine = gpus.without_used(machine, cluster["home"])
        tasks = gpus.task_settings(places)
        record = Record(places.record)
        return LocalInventory(
            machines=(machine,),
            train_dir=absolute(spec.train_dir or str(places.train), str(program_folder)),
            data_dir=absolute(spec.data_dir, str(program_folder)),
            image=named_image_content(spec),
            task_machines=dict.fromkeys(tasks, machine.name),
            task_gpus={name: tuple(filter(None, (limits.gpus or "").split(","))) for name, limits in tasks.items()},
            run=record.current(),
            results=record.results(),
            place={"id": machine_id(), "name": machine.name},
            tasks=tasks,
        )

    def validate(
        self, cluster: ClusterRef, spec: ClusterSpec, plan: Plan, inventory: LocalInventory, code_files: Sequence[str]
    ) -> Sequence[str]:
        """Refuse a program, a requirement or a folder that does not exist, and a port that is in use."""
        if not inventory.results.get(plan.run.id):
            gpus.note_planned(cluster["home"], plan)
        path = validate.task_path(Places(cluster["home"]), plan.run.id, inventory.run)
        validate.refuse_program(spec, code_files, path)
        validate.refuse_packages(spec)
        validate.refuse_ports(plan, cluster["home"])
        validate.refuse_unknown_run(spec, plan, cluster["home"])
        validate.refuse_folders(spec, plan.run.data_dir)
        validate.refuse_few_files(spec)
        return validate.crowded_warnings(spec, inventory.machines[0])

    def render(self, cluster: ClusterRef, spec: ClusterSpec, plan: Plan, inventory: LocalInventory) -> Rendered:
        """Tasks are processes, so only the changes."""
        existing = inventory.tasks
        changes = [
            change
            for task in plan.tasks
            if task.hostname in existing
            for change in updates(
                task.hostname, _settings(existing[task.hostname], task), "restarts, one task at a time"
            )
        ]
        return Rendered(changes=grouped(changes), retained=tuple(_retained_data(cluster, plan)))


def _retained_data(cluster: ClusterRef, plan: Plan) -> Iterator[RetainedData]:
    """`pulumi destroy` moves the record and the default `train_dir` to another folder, and leaves a user's own `train_dir` alone."""
    places, archive = Places(cluster["home"]), record_archive(cluster)
    folder = recorded_folder(Record(places.record), plan.run)
    train_dir = folder.rpartition("/")[0] or plan.run.train_dir
    is_default = places.train in (Path(train_dir), *Path(train_dir).parents)
    yield RetainedData("record", archive, True, _size_of(places.record))
    size = None if "://" in train_dir else _size_of(Path(train_dir))
    yield RetainedData("checkpoints", archive if is_default else train_dir, True, size)


def _size_of(folder: Path) -> int | None:
    """The bytes in a folder; None if it does not exist, or has too many files to be asked about in every update."""
    if not folder.is_dir():
        return None
    size = 0
    for number, path in enumerate(folder.rglob("*")):
        if number == _MOST_FILES:
            return None
        with suppress(OSError):
            size += path.lstat().st_size
    return size


def _settings(before: TaskSettings, after: TaskPlan) -> dict[str, tuple[str, str]]:
    """Before and after."""
    old, new = shown_limits(before.limits), shown_limits(after.limits)
    del old["cpus"]  # of a process they only count when it is placed
    return {
        **{name: (text, new[name]) for name, text in old.items()},
        "gpus": (before.gpus or "", ",".join(after.gpus)),
    }


def this_machine() -> Machine:
    """The machine that the program runs on, as the scheduler needs it."""
    machine = Machine(
        name=platform.node().partition(".")[0] or "localhost",
        role="Master",
        provider="local",
        region="",
        cpus=float(len(os.sched_getaffinity(0))),
        memory=psutil.virtual_memory().total,
    )
    return gpus.with_gpus(machine)
