"""What a local cluster is refused for, before anything is made."""

import importlib.util
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ...agent.record import Record
from ...agent.states import TENSORBOARD
from ...agent.workplace import bindable
from ...errors import SpecError
from ...plan import Plan
from ...spec import ClusterSpec
from ..refusing import refuse_requirements, refuse_same_ports, refuse_script
from .packages import interpreter_folder
from .places import Places

_BRING_BOARD = ("tensorboard", "tensorflow", "tensorflow-cpu")


def refuse_program(spec: ClusterSpec, code_files: Sequence[str]) -> None:
    """The command's program must be one that a task finds; so must a script that is given to Python."""
    program = spec.command[0]
    where = f"{spec.name}: command"
    if "{" in program:
        return
    if "/" in program:
        found = program.startswith("/") and os.access(program, os.X_OK)
        if not found and os.path.normpath(program) not in code_files:
            raise SpecError(where, f"{program!r} is no program of this machine, nor a file of `code`", "Mend its path.")
        return
    path = os.pathsep.join([str(interpreter_folder()), os.environ.get("PATH", os.defpath)])
    if shutil.which(program, path=path) is None and not spec.requirements:
        raise SpecError(where, f"the program {program!r} is not to be found", f"Install it; looked in {path}.")
    refuse_script(spec, code_files)


def refuse_packages(spec: ClusterSpec) -> None:
    """pip must be able to read the requirements; TensorBoard must be there, or among them, be it with TensorFlow up to 2.20."""
    refuse_requirements(spec)
    brought = any(canonicalize_name(Requirement(line).name) in _BRING_BOARD for line in spec.requirements)
    if spec.job(TENSORBOARD) and not brought and importlib.util.find_spec(TENSORBOARD) is None:
        wrong = (
            f"the package is not installed beside {interpreter_folder() / 'python'}: it does not come with TensorFlow"
        )
        raise SpecError(f"{spec.name}: tensorboard", wrong, "Install it: pip install tensorboard.")


def refuse_ports(plan: Plan, home: str) -> None:
    """A port that was asked for must be free, or this cluster's own."""
    places = Places(home)
    job = Record(places.record).current() if places.record.exists() else None
    ours = {task.port for task in job.tasks.values()} if job and places.keeper_socket.exists() else set()
    refuse_same_ports(plan)
    for task in plan.tasks:
        where = f"{plan.cluster}: jobs: {task.job}: port"
        if task.port and task.port not in ours and not bindable(task.port):
            raise SpecError(where, f"{task.port} (for {task.hostname}) is taken", "Choose another, or none.")


def refuse_folders(spec: ClusterSpec, data_dir: str) -> None:
    """Data that is to be read must be there."""
    if data_dir and "://" not in data_dir and not Path(data_dir).is_dir():
        raise SpecError(f"{spec.name}: data_dir", f"{data_dir} is no folder", "Name one that is there, or a URL.")
