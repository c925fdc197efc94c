"""A run that continues with a controller that was given its record: at another place, or on other machines."""

import posixpath
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Optional

from ..model.run_spec import RunSpec
from ..model.run_state import (
    FAILED,
    MOVED,
    RUNNING,
    SCHEDULED,
    STARTING,
    STOPPED,
    LauncherReport,
    RunResult,
    RunState,
    TaskState,
    continues,
)
from ..record.record import Record
from ..record.run_folders import RunRefused, claimed_folder
from .end_policy import spent
from .restart_policy import stop_task
from .start_barrier import restart_barrier


def arrive(run: RunState) -> None:
    """The record of the run has come from another place. It has no folder here until `claim_train_dir`, and its former machines cost
    nothing after its last sign of life."""
    last = max(run.submitted_at, *(task.seen for task in run.tasks.values()))
    run.cost_before, run.cost_since = spent(run, last), last
    run.has_arrived, run.spec = True, replace(run.spec, restored_run="", cost_per_hour=0.0)


def stop_until_submitted(run: RunState, returns: bool, now: float) -> None:
    """The current run is stopped until it is submitted here: it seems to run if its controller did not respond. One that has failed at
    another place continues where it `returns` to the former one."""
    if run.result is None or (returns and run.result.state == FAILED):
        run.result = RunResult(STOPPED, MOVED, now)
        for task in run.tasks.values():
            stop_task(task, run.result, now)


def continue_run(run: RunState, now: float) -> None:
    """Continue the run here. What has succeeded or failed stays so; a stopped run begins with a new start barrier."""
    run.has_arrived = False
    if run.result is not None and run.result.state != STOPPED:
        return
    run.result, run.stopped_at, run.stop_requested = None, 0.0, False
    run.reached, run.restart_queue, run.restarting_task = [], [], ""
    run.address_book, run.reserved, run.uploads = {}, {}, {}
    for former in run.former.values():
        former.seen = 0.0
    for task in run.tasks.values():
        _begin_again(task)
    restart_barrier(run, now)


def _begin_again(task: TaskState) -> None:
    """The task as it is before its first start here. Its log has the attempts before."""
    has_started = task.state == RUNNING or bool(task.started)
    task.attempt += 1 if has_started else 0
    task.state, task.reason = STARTING if has_started else SCHEDULED, ""
    task.failures, task.losses, task.not_before, task.restart_delay = 0, 0, 0.0, 0.0
    task.report = LauncherReport(task.hostname, task.report.instance)
    task.host, task.port = "", 0
    task.ready, task.at_rest, task.seen, task.started, task.ended = False, False, 0.0, 0.0, 0.0
    task.end = None


def claim_train_dir(record: Record, spec: RunSpec, mode: int) -> RunSpec:
    """The specification, with the run that has the artifacts for an empty `train_dir`. A run that has arrived here, or that
    this one resumes, gets its folder here first: `run_folders.train_dir` returns what the record has.

    Raises:
        RunRefused: the folder cannot be created.
    """
    for run_id in filter(None, (spec.id, spec.resume_from)):
        run = record.load(run_id)
        if run is None:
            continue
        if _needs_folder(run, spec.train_dir):
            run.spec = replace(
                run.spec, train_dir=_folder(spec.train_dir, run.spec.train_dir, mode), restored_run=run_id
            )
            record.save_other(run)
        return replace(spec, restored_run=run.spec.restored_run)
    return spec


def _needs_folder(run: RunState, base: str) -> bool:
    """Whether the folder of the run is one of another place; or one that its new machines do not have, as where a file system was
    added."""
    if run.has_arrived:
        return not run.spec.restored_run
    former = run.spec.train_dir
    is_elsewhere = posixpath.dirname(former) != (base.rstrip("/") or "/")
    return continues(run) and is_elsewhere and "://" not in former and "://" not in base


def create_train_dir(run: Optional[RunState], mode: int) -> None:
    """Create the folder of a run again, if it was lost with the disk. Where that fails, launchers report that they cannot use it."""
    folder = run.spec.train_dir if run else ""
    if folder and "://" not in folder and not Path(folder).exists():
        with suppress(OSError):
            Path(folder).mkdir(parents=True)
            if mode:
                Path(folder).chmod(mode)


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
