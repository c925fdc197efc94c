"""The folder `train_dir` of each run. Only the controller creates it."""

import re
from pathlib import Path

from ..model.run_spec import RunSpec
from .record import Record

_LIFE_DIGITS = 8


_FOLDER_OF_A_LIFE = re.compile(rf"\w+-[0-9a-f]{{{_LIFE_DIGITS}}}")


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
