"""Which launcher uploads the artifacts of a run, and when that is over. Pure.

While the run trains, the launcher of the task that saves checkpoints uploads the newest ones. At the end every machine uploads. Its
tasks share `train_dir`, so one of them uploads for all: the one that ended last of those whose launchers were not ordered to exit.
Machines upload one after another: where they share a file system, what is stored already is not sent again.
"""

from typing import Callable, Dict, List, Optional, Tuple

from .. import events
from ..events import Event
from ..run_state import (
    FINAL,
    INTERRUPTED,
    RUNNING,
    UPLOAD_LOST,
    UPLOADED,
    UPLOADING,
    MachineUpload,
    RunState,
    TaskState,
)
from ..sync import UploadRequest
from .end_policy import deciding_tasks

SILENT_SECONDS = 30.0
"""The launcher that uploads is lost when it was silent for so long."""

MAX_SECONDS = 900.0
"""What was not uploaded so long after its turn began is lost, too. The launcher of a lost upload has so much time once more."""

_RECENT_SECONDS = 10.0
"""A launcher that has reported within this time can be asked to upload."""

_SAVING = ("chief-0", "worker-0", "gpu-worker-0")
"""The first of these that a run has is TensorFlow's chief, which saves checkpoints."""


def has_uploads(run: RunState) -> bool:
    """Whether anything of this run is uploaded: a URL keeps what it has."""
    return bool(run.spec.artifacts) and bool(run.spec.train_dir) and "://" not in run.spec.train_dir


def _is_over(run: RunState, task: TaskState, now: float) -> bool:
    """Whether its program has ended, or its launcher is silent since the end of the run: then `expire` decides whether it is lost."""
    has_ended = task.state in FINAL or (task.state == INTERRUPTED and task.machine_ends)
    return has_ended or (run.result is not None and run.silent_seconds(task, now) > SILENT_SECONDS)


def request_uploads(run: RunState, now: float) -> None:
    """Choose the launcher for each machine on which all training tasks have ended, or stop because it is shut down, or are silent after
    the end of the run. Where one of them starts again, or reports that it runs, its machine uploads once more later."""
    if not has_uploads(run):
        return
    machines: Dict[str, List[TaskState]] = {}
    for task in run.training_tasks:
        machines.setdefault(task.machine, []).append(task)
    for machine, tasks in machines.items():
        if not all(_is_over(run, task, now) for task in tasks):
            run.uploads.pop(machine, None)
        elif machine not in run.uploads and any(task.started for task in tasks):
            candidates = [task for task in tasks if task.can_upload]
            if candidates:
                last = max(candidates, key=lambda task: _presence(task, now))
                run.uploads[machine] = MachineUpload(last.hostname, now)
    turn = _turn(run)
    if turn is not None:
        run.uploads[turn].turn_at = run.uploads[turn].turn_at or now


def _presence(task: TaskState, now: float) -> Tuple[bool, bool, float]:
    """How likely it is that the launcher of this task receives another order: the highest is asked to upload."""
    return not task.exits, now - task.seen < _RECENT_SECONDS, task.since


def _turn(run: RunState) -> Optional[str]:
    """The machine that uploads now."""
    waiting = [machine for machine, upload in run.uploads.items() if upload.state == UPLOADING]
    if len(waiting) < 2:
        return next(iter(waiting), None)
    ranks = _ranks(run)
    return min(waiting, key=lambda machine: (run.uploads[machine].at, ranks.get(machine, len(run.tasks))))


def _deadline(upload: MachineUpload) -> float:
    return (upload.again_at or upload.turn_at or upload.at) + MAX_SECONDS


def _is_given_up(upload: MachineUpload, now: float) -> bool:
    """Whether the upload was lost, and its launcher has had time again."""
    return upload.state == UPLOAD_LOST and bool(upload.again_at) and now > _deadline(upload)


def uploads_checkpoints(run: RunState, hostname: str) -> bool:
    """Whether the launcher of this task uploads checkpoints now, while its program runs."""
    if run.spec.checkpoint_upload_interval <= 0 or not has_uploads(run):
        return False
    task = next((run.tasks[name] for name in _SAVING if name in run.tasks), None)
    return task is not None and task.hostname == hostname and task.state == RUNNING and task.can_upload


def checkpoints_from(run: RunState, hostname: str) -> Optional[UploadRequest]:
    """What this launcher uploads while its program runs; None for nothing."""
    if not uploads_checkpoints(run, hostname):
        return None
    spec = run.spec
    return UploadRequest(spec.id, spec.train_dir, list(spec.artifacts), spec.checkpoint_upload_interval)


def machine_of(run: RunState, hostname: str) -> Optional[str]:
    """The machine for which this task uploads at the end; None where it does not."""
    return next((machine for machine, upload in run.uploads.items() if upload.task == hostname), None)


def is_asked(run: RunState, hostname: str, now: float) -> bool:
    """Whether the launcher of this task has to upload. One that was lost and is there again does, too, for some time."""
    machine = machine_of(run, hostname)
    if machine is None or run.uploads[machine].state == UPLOADED:
        return False
    return not _is_given_up(run.uploads[machine], now)


def is_taken(run: RunState, hostname: str, is_current: bool, now: float) -> bool:
    """Whether the controller takes what the launcher of this task uploads. An upload of an earlier run may continue: it is not marked
    as lost, so that it has the time of one upload."""
    machine = machine_of(run, hostname)
    if is_current and uploads_checkpoints(run, hostname):
        return True
    if machine is None or is_current:
        return is_asked(run, hostname, now)
    upload = run.uploads[machine]
    return upload.state == UPLOADING and now <= _deadline(upload)


def request_to(run: RunState, hostname: str, now: float) -> Optional[UploadRequest]:
    """What this launcher is asked to upload now; None while another machine uploads."""
    machine = machine_of(run, hostname)
    if machine != (_turn(run) or machine) or not is_asked(run, hostname, now):
        return None
    return UploadRequest(run.spec.id, run.spec.train_dir, list(run.spec.artifacts))


def rank(run: RunState, machine: str) -> int:
    """Where two machines have different files of one name, those of the lower rank are stored: of the machine with the chief, or with
    the task that decides the result."""
    return _ranks(run).get(machine, len(run.tasks))


def _ranks(run: RunState) -> Dict[str, int]:
    """The rank of each machine, in a time that grows with the tasks: a run may have 1,000 on as many machines."""
    deciding = {task.hostname for task in deciding_tasks(run)}
    ranks: Dict[str, int] = {}
    for number, task in enumerate(sorted(run.training_tasks, key=lambda task: task.hostname not in deciding)):
        ranks.setdefault(task.machine, number)
    return ranks


def are_open(run: RunState) -> bool:
    """Whether a launcher uploads, or is about to."""
    return any(upload.state == UPLOADING for upload in run.uploads.values())


def expire(
    run: RunState,
    now: float,
    silent_seconds: Callable[[str], float],
    has_called: Callable[[str], bool] = lambda hostname: True,
) -> List[Event]:
    """Mark uploads as lost if their launchers are silent, or if they take too long. `silent_seconds` is how long the launcher of a task
    has sent nothing, or how long the controller runs; `has_called` is whether it has sent anything since the controller began."""
    happened = []
    turn, are_waiting = _turn(run), sum(upload.state == UPLOADING for upload in run.uploads.values()) > 1
    for machine, upload in run.uploads.items():
        silent = silent_seconds(upload.task)
        is_silent = silent > SILENT_SECONDS
        if upload.state == UPLOAD_LOST and not upload.again_at and turn is None:
            upload.again_at = now if not is_silent and has_called(upload.task) else 0.0
        elif upload.state == UPLOADING and (is_silent or (machine == turn and now > _deadline(upload))):
            upload.state = UPLOAD_LOST
            upload.again_at = 0.0 if is_silent else upload.again_at or (0.0 if are_waiting else now)
            delay = silent if is_silent else 0.0
            happened.append(Event(events.ARTIFACTS_LOST, task=upload.task, machine=machine, delay=delay))
    return happened


def finish(run: RunState, hostname: str) -> None:
    """The launcher of this task has uploaded all that it can."""
    machine = machine_of(run, hostname)
    if machine is not None:
        run.uploads[machine].state = UPLOADED


def reopen(run: RunState, hostname: str, now: float) -> None:
    """The launcher that was lost uploads again."""
    machine = machine_of(run, hostname)
    if machine is not None and run.uploads[machine].state == UPLOAD_LOST and is_asked(run, hostname, now):
        upload = run.uploads[machine]
        run.uploads[machine] = MachineUpload(hostname, now, turn_at=now, again_at=upload.again_at or now)


def others_remain(run: RunState, machine: str) -> bool:
    """Whether another machine of the run has not uploaded everything: it may continue what has arrived."""
    return any(upload.state != UPLOADED for name, upload in run.uploads.items() if name != machine)


def are_given_up(run: RunState, now: float) -> bool:
    """Whether uploads of the run were lost, and no launcher is asked for any."""
    is_lost = any(upload.state == UPLOAD_LOST for upload in run.uploads.values())
    return is_lost and not any(is_asked(run, upload.task, now) for upload in run.uploads.values())


def shift_clock(run: RunState, seconds: float) -> None:
    """Correct the times after the wall clock was set by so many seconds."""
    for upload in run.uploads.values():
        upload.at += seconds
        upload.turn_at += seconds if upload.turn_at else 0.0
        upload.again_at += seconds if upload.again_at else 0.0
