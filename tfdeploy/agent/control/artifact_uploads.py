"""Which launcher uploads the artifacts of a run, and when that is over. Pure.

While the run trains, the launcher of the task that saves checkpoints uploads the newest ones. At the end every machine uploads. Its
tasks share `train_dir`, so one of them uploads for all: the one that ended last of those whose launchers were not ordered to exit.
The machine of the task that decides the result uploads at once, and once more when the others have: where they have files of the same
names, its files are stored.
"""

from typing import Callable, Dict, List, Optional, Tuple

from .. import events
from ..events import Event
from ..run_state import (
    FINAL,
    INTERRUPTED,
    RUNNING,
    UPLOAD_GIVEN_UP,
    UPLOAD_LOST,
    UPLOAD_WAITS,
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
"""A machine has so much time to upload, and once more when its launcher comes back."""

_RECENT_SECONDS = 10.0
"""A launcher that has reported within this time can be asked to upload."""

_SAVING = ("chief-0", "worker-0", "gpu-worker-0")
"""The first of these that a run has is TensorFlow's chief, which saves checkpoints."""

_OPEN = (UPLOAD_WAITS, UPLOADING)


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
    for machine, tasks in _machines(run).items():
        if not all(_is_over(run, task, now) for task in tasks):
            run.uploads.pop(machine, None)
        elif machine not in run.uploads and any(task.started for task in tasks):
            candidates = [task for task in tasks if task.can_upload]
            if candidates:
                last = max(candidates, key=lambda task: _presence(task, now))
                run.uploads[machine] = MachineUpload(last.hostname, now)
    for machine, upload in run.uploads.items():
        if upload.state == UPLOAD_WAITS and not _others_follow(run, machine, now):
            upload.state, upload.at = UPLOADING, now


def _machines(run: RunState) -> Dict[str, List[TaskState]]:
    machines: Dict[str, List[TaskState]] = {}
    for task in run.training_tasks:
        machines.setdefault(task.machine, []).append(task)
    return machines


def _presence(task: TaskState, now: float) -> Tuple[bool, bool, float]:
    """How likely it is that the launcher of this task receives another order: the highest is asked to upload."""
    return not task.exits, now - task.seen < _RECENT_SECONDS, task.since


def _last_machine(run: RunState) -> str:
    deciding = deciding_tasks(run)
    return deciding[0].machine if deciding else ""


def _others_follow(run: RunState, machine: str, now: float) -> bool:
    """Whether other machines upload, or will when their tasks have ended."""
    others = [task for task in run.training_tasks if task.machine != machine]
    uploads = any(upload.state == UPLOADING for name, upload in run.uploads.items() if name != machine)
    return uploads or not all(_is_over(run, task, now) for task in others)


def attempt(run: RunState, hostname: str) -> int:
    """The attempt that counts for the checkpoints of this upload: that of the task which decides the result, if there is one."""
    deciding = deciding_tasks(run)
    return deciding[0].attempt if deciding else run.as_former(hostname).attempt


def may_replace(run: RunState, machine: str) -> bool:
    """Whether files of other machines are replaced by those of this one: not after the last upload, as by one that was lost and came
    back."""
    last = _last_machine(run)
    return machine == last or last not in run.uploads or run.uploads[last].state != UPLOADED


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


def _upload_of(run: RunState, hostname: str) -> Optional[MachineUpload]:
    return run.uploads.get(machine_of(run, hostname) or "")


def is_asked(run: RunState, hostname: str) -> bool:
    """Whether the launcher of this task has to upload, now or later. One that was lost and is there again does, too."""
    upload = _upload_of(run, hostname)
    return upload is not None and _may_continue(upload)


def is_taken(run: RunState, hostname: str, is_current: bool, now: float) -> bool:
    """Whether the controller takes what the launcher of this task uploads. An upload of an earlier run may continue: it is not marked
    as lost, so that it has the time of one upload."""
    if is_current:
        return uploads_checkpoints(run, hostname) or is_asked(run, hostname)
    upload = _upload_of(run, hostname)
    return upload is not None and upload.state == UPLOADING and now <= upload.at + MAX_SECONDS


def request_to(run: RunState, hostname: str) -> Optional[UploadRequest]:
    """What this launcher is asked to upload now; None while it waits."""
    upload = _upload_of(run, hostname)
    if upload is None or upload.state != UPLOADING:
        return None
    return UploadRequest(run.spec.id, run.spec.train_dir, list(run.spec.artifacts))


def are_open(run: RunState) -> bool:
    """Whether a launcher uploads, or is about to."""
    return any(upload.state in _OPEN for upload in run.uploads.values())


def expire(
    run: RunState,
    now: float,
    silent_seconds: Callable[[str], float],
    has_called: Callable[[str], bool] = lambda hostname: True,
) -> List[Event]:
    """Give uploads of silent launchers to others of their machines, or mark them as lost, and give up those that take too long.
    `silent_seconds` is how long the launcher of a task has sent nothing, or how long the controller runs; `has_called` is whether it
    has sent anything since the controller began."""
    happened = []
    machines = _machines(run) if run.uploads else {}

    def is_there(hostname: str) -> bool:
        return silent_seconds(hostname) <= SILENT_SECONDS and has_called(hostname)

    for machine, upload in run.uploads.items():
        silent = silent_seconds(upload.task)
        is_silent, is_late = silent > SILENT_SECONDS, now > upload.at + MAX_SECONDS
        if upload.state == UPLOAD_LOST and is_there(upload.task):
            upload.state, upload.at = UPLOADING, now
        elif upload.state == UPLOAD_WAITS and (is_silent or is_late):
            upload.state = UPLOADED
        elif upload.state == UPLOADING and is_silent:
            others = [task.hostname for task in machines.get(machine, ()) if task.can_upload and not task.exits]
            upload.task = next(filter(is_there, others), upload.task)
            if not is_there(upload.task):
                upload.state = UPLOAD_LOST
                happened.append(Event(events.ARTIFACTS_LOST, task=upload.task, machine=machine, delay=silent))
        elif upload.state == UPLOADING and is_late:
            upload.state = UPLOAD_GIVEN_UP
            happened.append(Event(events.ARTIFACTS_LOST, task=upload.task, machine=machine))
    return happened


def finish(run: RunState, hostname: str, now: float) -> None:
    """The launcher of this task has uploaded all that it can."""
    machine = machine_of(run, hostname)
    if machine is not None:
        waits = machine == _last_machine(run) and _others_follow(run, machine, now)
        run.uploads[machine].state, run.uploads[machine].at = UPLOAD_WAITS if waits else UPLOADED, now


def others_remain(run: RunState, machine: str) -> bool:
    """Whether another machine of the run has not uploaded everything: it may continue what has arrived."""
    return any(_may_continue(upload) for name, upload in run.uploads.items() if name != machine)


def _may_continue(upload: MachineUpload) -> bool:
    return upload.state in (*_OPEN, UPLOAD_LOST)


def are_given_up(run: RunState) -> bool:
    """Whether uploads of the run took too long, and no launcher is asked for any."""
    uploads = run.uploads.values()
    return any(upload.state == UPLOAD_GIVEN_UP for upload in uploads) and not any(map(_may_continue, uploads))


def shift_clock(run: RunState, seconds: float) -> None:
    """Correct the times after the wall clock was set by so many seconds."""
    for upload in run.uploads.values():
        upload.at += seconds
