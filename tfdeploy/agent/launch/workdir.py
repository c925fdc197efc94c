"""Where a task's program runs: its folder with the code, its port, its environment, the run's `train_dir`."""

import errno
import fcntl
import json
import math
import os
import re
import shutil
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Dict, Iterator, List, Mapping, Optional, Sequence

from .. import task_command
from ..polling import wait_until
from ..run_spec import RunSpec
from ..settings import SECRET_VARIABLE, TaskSettings
from . import task_environment

if TYPE_CHECKING:
    from ..record.record import Record  # no launcher has one, and it takes long to load

_LIFE_DIGITS = 8
_FOLDER_OF_A_LIFE = re.compile(rf"\w+-[0-9a-f]{{{_LIFE_DIGITS}}}")

STACKS_FILE = "stacks.txt"
"""In the launcher's folder: where a program writes its Python stacks, if it has agreed to that."""

_NOT_INHERITED = ("SUPERVISOR_", "TF_CONFIG")
"""Variables with these prefixes are for the launcher, not for the program."""


_MAX_NAMED = 5
"""So many models are named that were not stored."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


class IsLocked(OSError):
    """Another process holds the lock of a folder."""


@contextmanager
def locked(folder: Path, seconds: float = math.inf) -> Iterator[None]:
    """Hold an exclusive lock on the folder; waits so long until the previous process has exited.

    Raises:
        IsLocked: it holds the lock after that time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        if seconds == math.inf:
            fcntl.flock(lock, fcntl.LOCK_EX)
        elif not wait_until(partial(_is_ours, lock), seconds):
            raise IsLocked(f"{folder} is locked")
        yield


def _is_ours(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unstored_models(folder: Path, since: float) -> List[str]:
    """The models and checkpoints in a working directory, which nothing stores, that are newer than this time."""
    from ..record.artifacts import DEFAULT_PATTERNS, choose  # needed once, at the end of a program
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


class RunRefused(Exception):
    """A run that cannot be started."""


def train_dir(record: "Record", spec: RunSpec, mode: int = 0) -> str:
    """The run's own folder. A run that the record has keeps its folder, wherever that was moved; a new run never begins in a used one.

    A URL cannot be inspected. So a run's folder there also has a part of the record's id in its name, which no other cluster has, and
    which this cluster does not have again after `destroy`.

    Raises:
        RunRefused: there is no run `resume_from`, or the folder cannot be created.
    """
    base = spec.train_dir.rstrip("/") or "/"
    if folder := recorded_folder(record, spec):
        return folder
    if "://" in base and not spec.resume_from:
        return f"{base}/{spec.id}-{record.record_id()[:_LIFE_DIGITS]}"
    if spec.resume_from:
        return _earlier_folder(base, spec.resume_from, record)
    try:
        return claimed_folder(Path(base), spec.id, mode)
    except OSError as error:
        raise RunRefused(f"train_dir: {base} cannot be used ({error.strerror})") from None


def recorded_folder(record: "Record", spec: RunSpec) -> str:
    """The folder of a run that the record has, or of the one that it resumes; else empty."""
    for run_id in (spec.id, spec.resume_from):
        run = record.load(run_id) if run_id else None
        if run is not None:
            return _present_folder(run.spec.train_dir, spec.train_dir.rstrip("/") or "/")
    return ""


def _present_folder(former: str, base: str) -> str:
    """The folder of an earlier run as it is now: below `base`, if the folder that it was in is gone, as one that was moved."""
    are_folders = "://" not in former and "://" not in base
    is_gone = are_folders and not Path(former).parent.exists()
    return str(Path(base) / Path(former).name) if is_gone else former


def _earlier_folder(base: str, resume_from: str, record: "Record") -> str:
    """The folder of a run that this record does not have, by its name: that of a cluster that was destroyed, or of another one."""
    folder = f"{base}/{resume_from}"
    if "://" in base and _FOLDER_OF_A_LIFE.fullmatch(resume_from):
        return folder
    if "://" not in base and Path(folder).is_dir():
        return str(Path(folder))
    runs = ", ".join(record.runs()) or "none"
    remedy = (
        f". To resume a run of another cluster, use the name of its folder in {base}, such as 0123456789ab-01234567"
    )
    hint = remedy if "://" in base else ""
    raise RunRefused(f"resume_from: there is no run {resume_from!r}. Existing runs: {runs}{hint}")


def claimed_folder(base: Path, run_id: str, mode: int) -> str:
    """A new folder below `base`: creating it claims it, also where two clusters begin the same run at the same time."""
    base.mkdir(parents=True, exist_ok=True)
    number = 1
    folder = base / run_id
    while not _create(folder):
        number += 1
        folder = base / f"{run_id}-{number}"
    if mode:
        folder.chmod(mode)
    return str(folder)


def _create(folder: Path) -> bool:
    """Create a folder; False where it exists."""
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    return True


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
