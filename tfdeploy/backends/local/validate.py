"""The arguments that a local cluster refuses, before anything is created."""

import importlib.util
import os
import shutil
from collections.abc import Sequence, Set
from pathlib import Path

from ...agent.launch.workdir import inherited
from ...agent.model.run_state import TENSORBOARD, RunState
from ...agent.record.record import Record
from ...agent.system.ports import is_bindable
from ...errors import SpecError
from ...plan.plan import Plan
from ...plan.scheduler import Machine
from ...spec.cluster import ClusterSpec
from ...spec.jobs import DATA_SERVICE
from ...units import counted, text_of_size
from ..validate import refuse_requirements, refuse_same_ports, refuse_script
from .paths import Places
from .requirements import interpreter_folder
from .supervisor import allowed_files, most_tasks, needed_files

_TENSORFLOW_MEMORY = 400 * 1024**2
"""What a process of TensorFlow 2.21 uses of its own after `import tensorflow` and one step of a small model."""

_TASKS_PER_CPU = 16

_WITH_TENSORBOARD = ("tensorboard", "tensorflow", "tensorflow-cpu")


def task_path(places: Places, run_id: str, current: RunState | None) -> str:
    """The `PATH` of the tasks of a run. The current run has that of the shell that submitted it."""
    own, run = [str(interpreter_folder())], ""
    if current and run_id in (current.spec.id, current.spec.content_id):
        own, run = current.spec.path or own, current.spec.id
    path = inherited(str(places.environments), run).get("PATH", os.defpath)
    return os.pathsep.join(dict.fromkeys([*own, *path.split(os.pathsep)]))


def refuse_program(spec: ClusterSpec, code_files: Sequence[str], path: str) -> None:
    """The command's program must exist on a task's `PATH` or in `code`; so must a script that Python runs."""
    program = spec.command[0]
    where = f"{spec.name}: command"
    if "{" in program:
        return
    if "/" in program:
        is_installed = program.startswith("/") and os.access(program, os.X_OK)
        if not is_installed and os.path.normpath(program) not in code_files:
            raise SpecError(
                where, f"{program!r} is neither a program on this machine nor a file in `code`", "Correct its path."
            )
        return
    if shutil.which(program, path=path) is None and not spec.requirements:
        remedy = (
            f'Write "./{program}": it is a file of `code`.'
            if program in code_files
            else "Correct its name, or install it."
        )
        raise SpecError(where, f"the program {program!r} does not exist in {path}", remedy)
    refuse_script(spec, code_files)


def refuse_packages(spec: ClusterSpec) -> None:
    """pip must be able to read the requirements; TensorBoard must be installed or among them. TensorFlow up to 2.20 includes it."""
    refuse_requirements(spec)
    if spec.job(TENSORBOARD) and not _requires_tensorboard(spec) and importlib.util.find_spec(TENSORBOARD) is None:
        problem = (
            f"the package is not installed beside {interpreter_folder() / 'python'}: TensorFlow does not include it"
        )
        raise SpecError(f"{spec.name}: tensorboard", problem, "Install it: pip install tensorboard.")


def _requires_tensorboard(spec: ClusterSpec) -> bool:
    from packaging.requirements import Requirement  # takes long to load
    from packaging.utils import canonicalize_name

    return any(canonicalize_name(Requirement(line).name) in _WITH_TENSORBOARD for line in spec.requirements)


def refuse_ports(plan: Plan, home: str) -> None:
    """A requested port must be free, or in use by this cluster."""
    refuse_same_ports(plan)
    requested = [task for task in plan.tasks if task.port]
    own_ports = _own_ports(Places(home)) if requested else frozenset()
    for task in requested:
        where = f"{plan.cluster}: jobs.{task.job}.port"
        if task.port not in own_ports and not is_bindable(task.port):
            raise SpecError(where, f"{task.port} (for {task.hostname}) is in use", "Choose another, or none.")


def refuse_few_files(spec: ClusterSpec) -> None:
    """The limit of open files must be high enough for the cluster's supervisord, with all workers that may be added."""
    workers = sum(job.count for job in spec.jobs if job.name == "worker")
    tasks = sum(job.count for job in spec.jobs) + max(0, spec.max_workers - workers)
    limit, needed = allowed_files(), needed_files(tasks)
    if limit < needed:
        need = "needs" if tasks == 1 else "need"
        wrong = f"{counted(tasks, 'task')} {need} {needed} open files, and the hard limit of this shell is {limit} (`ulimit -Hn`)"
        most = most_tasks(limit)
        fewer = f", or use at most {most} tasks" if most else ""
        raise SpecError(f"{spec.name}: workers", wrong, f"Raise it, as root, in /etc/security/limits.conf{fewer}.")


def crowded_warnings(spec: ClusterSpec, machine: Machine) -> list[str]:
    """A warning where the tasks will probably not have enough memory or processors. A task without a limit of its memory counts as one
    that does little more than import TensorFlow; the user's services may do less, and only count with a limit."""
    tasks = sum(job.count for job in spec.training_jobs)
    large = [job for job in spec.training_jobs if job.memory or not job.is_service or job.name in DATA_SERVICE]
    memory, many = sum(job.count * (job.memory or _TENSORFLOW_MEMORY) for job in large), sum(job.count for job in large)
    found = []
    if memory > machine.memory:
        found.append(
            f"{many} tasks may need {text_of_size(memory)} of memory ({text_of_size(memory // many)} each), and {machine.name} has "
            f"{text_of_size(machine.memory)}: the kernel kills tasks when it is used up"
        )
    if tasks > _TASKS_PER_CPU * machine.cpus:
        found.append(
            f"{tasks} tasks share {counted(int(machine.cpus), 'processor')} of {machine.name}: each gets a small part of one"
        )
    fewer = "Use fewer tasks, or other machines (`backend`)"
    return [f"{'; '.join(found)}. {fewer}"] if found else []


def _own_ports(places: Places) -> Set[int]:
    """The ports that the cluster uses, if its controller runs."""
    if not places.record.exists() or not places.controller_socket.exists():
        return frozenset()
    run_state = Record(places.record).current()
    return {task.port for task in run_state.tasks.values()} if run_state else frozenset()


def refuse_unknown_run(spec: ClusterSpec, plan: Plan, home: str) -> None:
    """The run to resume must be in the record, or have a folder in `train_dir`: one that is mistyped would train from scratch."""
    base, places = plan.run.train_dir, Places(home)
    if not spec.resume_from or "://" in base:
        return
    runs = Record(places.record).runs() if places.record.exists() else []
    if spec.resume_from not in runs and not (Path(base) / spec.resume_from).is_dir():
        where = f"neither in the record nor as a folder in {base}" if Path(base).is_dir() else "in the record"
        wrong = f"there is no run {spec.resume_from!r}, {where}"
        has = f"The record has: {', '.join(runs)}." if runs else "The record has no run yet."
        remedy = (
            f"Use the id of an earlier run. {has}"
            if runs
            else f"{has} Remove the argument: the first run begins without one."
        )
        raise SpecError(f"{spec.name}: resume_from", wrong, remedy)


def refuse_folders(spec: ClusterSpec, data_dir: str) -> None:
    """The data folder must exist."""
    if data_dir and "://" not in data_dir and not Path(data_dir).is_dir():
        raise SpecError(f"{spec.name}: data_dir", f"{data_dir} is not a folder", "Name an existing folder or a URL.")
