"""The `train_dir` of a run that has arrived with its record from another backend."""

from dataclasses import replace
from pathlib import Path

from ..launch.workdir import RunRefused, claimed_folder
from ..record.record import Record
from ..run_spec import RunSpec


def settle(record: Record, spec: RunSpec, mode: int) -> RunSpec:
    """The specification, with the run that has the artifacts for an empty `train_dir`. A run that has arrived from another backend, or
    that this one resumes, gets its folder here first: `workdir.train_dir` returns what the record has.

    Raises:
        RunRefused: the folder cannot be created.
    """
    for run_id in filter(None, (spec.id, spec.resume_from)):
        run = record.load(run_id)
        if run is None:
            continue
        if run.arrived_from and not run.spec.restored_run:
            run.spec = replace(
                run.spec, train_dir=_folder(spec.train_dir, run.spec.train_dir, mode), restored_run=run_id
            )
            record.save_other(run)
        return replace(spec, restored_run=run.spec.restored_run)
    return spec


def _folder(base: str, former: str, mode: int) -> str:
    """The former URL, or a new folder: one with the same path may be that of another machine, or has an older checkpoint where a run
    returns."""
    name = former.rpartition("/")[2]
    base = base.rstrip("/") or "/"
    if "://" in former:
        return former
    if "://" in base:
        return f"{base}/{name}"
    try:
        return claimed_folder(Path(base), name, mode)
    except OSError as error:
        raise RunRefused(f"train_dir: {base} cannot be used ({error.strerror})") from None
