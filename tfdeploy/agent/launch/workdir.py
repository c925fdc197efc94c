"""Where a task's program runs: its folder with the code, its environment, and whether it can write to `train_dir`."""

import errno
import json
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence

from ..model import task_command
from ..model.run_spec import RunSpec
from ..model.settings import SECRET_VARIABLE, TaskSettings
from . import task_environment

STACKS_FILE = "stacks.txt"
"""In the launcher's folder: where a program writes its Python stacks, if it has agreed to that."""

_NOT_INHERITED = ("SUPERVISOR_", "TF_CONFIG")
"""Variables with these prefixes are for the launcher, not for the program."""


_MAX_NAMED = 5
"""So many models are named that were not stored."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def unstored_models(folder: Path, since: float) -> List[str]:
    """The models and checkpoints in a working directory, which nothing stores, that are newer than this time."""
    from ..model.run_spec import DEFAULT_PATTERNS  # needed once, at the end of a program
    from ..record.artifact_selection import choose  # needed once, at the end of a program
    from .artifact_sender import scan

    files, _ = scan(folder)  # what cannot be read is left out
    own = {name: file for name, file in files.items() if file.changed >= since * 1e9 and not file.is_outside}
    chosen, _ = choose(own, DEFAULT_PATTERNS, lambda name: "")
    return [artifact.name for artifact in chosen][:_MAX_NAMED]


def unpack(archive: Optional[Path], folder: Path) -> None:
    """Extract the code archive to `folder` in one step; without one the folder is empty.

    Raises:
        OSError, ValueError: it cannot be extracted; then nothing of it is left.
    """
    draft = folder.with_name(folder.name + ".draft")
    shutil.rmtree(str(draft), ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        if archive is not None:
            _extract(archive, draft)
        draft.replace(folder)
    except BaseException:
        shutil.rmtree(str(draft), ignore_errors=True)
        raise


def _extract(archive: Path, folder: Path) -> None:
    from zipfile import BadZipFile, ZipFile  # many runs have no code

    try:
        with ZipFile(str(archive)) as bundle:
            for item in bundle.infolist():
                path = Path(bundle.extract(item, str(folder)))
                mode = (item.external_attr >> 16) & 0o777
                if mode and path.is_file():
                    path.chmod(mode)
    except BadZipFile as error:
        raise ValueError(str(error)) from None


def folder_names(parent: Path) -> List[str]:
    """The names of the folders in `parent`; none where it is missing."""
    return sorted(folder.name for folder in parent.iterdir()) if parent.exists() else []


def remove_others(parent: Path, names: Sequence[str]) -> None:
    """Remove all folders in `parent` except these: those of earlier runs."""
    for name in folder_names(parent):
        if name not in names:
            shutil.rmtree(str(parent / name), ignore_errors=True)


def secret_variables(folder: Path) -> Dict[str, str]:
    """The secrets that are also environment variables."""
    files = sorted(folder.iterdir()) if folder.exists() else []
    return {path.name: path.read_text() for path in files if SECRET_VARIABLE.fullmatch(path.name)}


def secret_environment(folder: Path, names: Sequence[str]) -> Dict[str, str]:
    """The variables of the user's `env` that are secret."""
    return {name: (folder / name).read_text() for name in names}


def inherited(environments: str, run: str) -> Mapping[str, str]:
    """What the programs of a run inherit: the environment of who submitted the run, where it is stored; else this process's."""
    with suppress(OSError, ValueError):
        if environments:
            stored: Dict[str, str] = json.loads((Path(environments) / f"{run}.json").read_text(encoding="utf-8"))
            return stored
    return os.environ


def environment(
    base: Mapping[str, str],
    book: Sequence[task_command.TaskAddress],
    task: task_command.TaskAddress,
    spec: RunSpec,
    settings: TaskSettings,
) -> Dict[str, str]:
    """The program's environment."""
    secrets = Path(settings.secrets)
    path: List[str] = [*spec.path, *filter(None, [base.get("PATH", os.defpath)])]
    return {
        **{name: value for name, value in base.items() if not name.startswith(_NOT_INHERITED)},
        "PATH": os.pathsep.join(path),
        **({"CUDA_VISIBLE_DEVICES": settings.gpus} if settings.gpus is not None else {}),
        "TFDEPLOY_SECRETS": str(secrets),
        "TFDEPLOY_STACKS": str(Path(settings.folder) / STACKS_FILE),
        **secret_variables(secrets),
        **task_environment.environment(book, task, spec, secret_environment(secrets, spec.secret_env)),
    }


@dataclass(frozen=True)
class Command:
    """A program to start."""

    arguments: List[str]
    environment: Dict[str, str]
    folder: Path


def train_dir_problem(folder: str) -> str:
    """Why a task cannot write to its run's folder; empty when it can. A missing folder is created.

    On another machine than the controller's it may be a folder of that machine.

    Raises:
        OSError: the disk is full, or does not respond.
    """
    if "://" in folder:
        return ""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in _FULL:
            raise
        return f"train_dir {folder} cannot be created by user {os.getuid()} ({error.strerror})"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"train_dir {folder} cannot be written by user {os.getuid()}: change its owner, or set container.user"
    return ""
