"""Which launcher uploads the artifacts of a run, and when that is over. Pure.

While the run trains, the launcher of the task that saves checkpoints uploads the newest ones. At the end every machine uploads. Its
tasks share `train_dir`, so one of them uploads for all: the one that ended last of those whose launchers were not ordered to exit. The
machine of the task that decides the result uploads last: where others have files of the same names, its files are stored.
"""

from typing import Dict, List, Optional, Set, Tuple

from ..model import events
from ..model.deciding_tasks import deciding_tasks
from ..model.events import Event
from ..model.run_state import (
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
from ..model.sync import UploadRequest

SILENT_SECONDS = 30.0
"""The launcher that uploads is lost when it was silent for so long."""

MAX_SECONDS = 900.0
"""A machine has so much time to upload, and once more when its launcher comes back."""

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
    the end of the run. Where one of them starts again, or reports that it runs, its machine uploads once more later. The last machine
    waits for the others, unless it is shut down."""
    if not has_uploads(run):
        return
    machines = _machines(run)
    training = {name for name, tasks in machines.items() if not all(_is_over(run, task, now) for task in tasks)}
    for machine, tasks in machines.items():
        if machine in training:
            run.uploads.pop(machine, None)
        elif machine not in run.uploads and any(task.started for task in tasks):
            candidates = [task for task in tasks if task.report.can_upload]
            if candidates:
                uploader = max(candidates, key=lambda task: _presence(task, now))
                run.uploads[machine] = MachineUpload(uploader.hostname, now, UPLOAD_WAITS)
    last = _last_machine(run)
    others = training | machines_in(run, *_OPEN)
    for machine, upload in run.uploads.items():
        ends = any(task.machine_ends for task in machines.get(machine, ()))
        if upload.state == UPLOAD_WAITS and (machine != last or ends or not others - {last}):
            upload.state, upload.at = UPLOADING, now


def _machines(run: RunState) -> Dict[str, List[TaskState]]:
    machines: Dict[str, List[TaskState]] = {}
    for task in run.training_tasks:
        machines.setdefault(task.report.machine, []).append(task)
    return machines


def _presence(task: TaskState, now: float) -> Tuple[bool, bool, float]:
    """How likely it is that the launcher of this task receives another order: the highest is asked to upload."""
    return not task.exits, now - task.seen <= SILENT_SECONDS, task.since


def _last_machine(run: RunState) -> str:
    """That of the task which decides the result; where none does, any."""
    tasks = [*deciding_tasks(run), *run.training_tasks]
    return tasks[0].report.machine if tasks else ""


def attempt(run: RunState, hostname: str) -> int:
    """The attempt that counts for what this task uploads: that of the task which decides the result, if there is one. It is 0 for what
    comes after the last machine has uploaded, as from one that was lost and came back: that replaces nothing."""
    deciding, last = deciding_tasks(run), _last_machine(run)
    has_ended = last in run.uploads and run.uploads[last].state == UPLOADED
    if has_ended and machine_of(run, hostname) != last:
        return 0
    return deciding[0].attempt if deciding else run.as_former(hostname).attempt


def uploads_checkpoints(run: RunState, hostname: str) -> bool:
    """Whether the launcher of this task uploads checkpoints now, while its program runs."""
    task = next((run.tasks[name] for name in _SAVING if name in run.tasks), None)
    is_saving = task is not None and task.hostname == hostname and task.state == RUNNING and task.report.can_upload
    return is_saving and has_uploads(run) and run.spec.checkpoint_upload_interval > 0


def checkpoints_from(run: RunState, hostname: str) -> Optional[UploadRequest]:
    """What this launcher uploads while its program runs; None for nothing."""
    return _request(run, run.spec.checkpoint_upload_interval) if uploads_checkpoints(run, hostname) else None


def _request(run: RunState, interval: float = 0.0) -> UploadRequest:
    return UploadRequest(run.spec.id, run.spec.train_dir, list(run.spec.artifacts), interval)


def machine_of(run: RunState, hostname: str) -> Optional[str]:
    """The machine for which this task uploads at the end; None where it does not."""
    return next((machine for machine, upload in run.uploads.items() if upload.task == hostname), None)


def _upload_of(run: RunState, hostname: str) -> Optional[MachineUpload]:
    return run.uploads.get(machine_of(run, hostname) or "")


def is_asked(run: RunState, hostname: str) -> bool:
    """Whether the launcher of this task has to upload, now or later. One that was lost and is there again does, too."""
    upload = _upload_of(run, hostname)
    return upload is not None and upload.state in (*_OPEN, UPLOAD_LOST)


def is_taken(run: RunState, hostname: str, is_current: bool, now: float) -> bool:
    """Whether the controller takes what the launcher of this task uploads. An upload of an earlier run may continue: it is not marked
    as lost, so that it has the time of one upload."""
    if is_current:
        return uploads_checkpoints(run, hostname) or is_asked(run, hostname)
    upload = _upload_of(run, hostname)
    return upload is not None and upload.state == UPLOADING and now <= upload.at + MAX_SECONDS


def request_to(run: RunState, hostname: str) -> Optional[UploadRequest]:
    """What this launcher is asked to upload now. While it waits for other machines, which may train for long, these are checkpoints as
    before the end of its program, or nothing."""
    upload = _upload_of(run, hostname)
    if upload is None or upload.state not in _OPEN:
        return None
    if upload.state == UPLOADING:
        return _request(run)
    interval = run.spec.checkpoint_upload_interval
    return _request(run, interval) if interval > 0 else None


def are_open(run: RunState) -> bool:
    """Whether a launcher uploads, or is about to."""
    return bool(machines_in(run, *_OPEN))


def machines_in(run: RunState, *states: str) -> Set[str]:
    """The machines whose uploads are in one of these states."""
    return {machine for machine, upload in run.uploads.items() if upload.state in states}


def expire(run: RunState, now: float) -> List[Event]:
    """Give uploads of silent launchers to others of their machines, or mark them as lost, and give up those that take too long."""
    happened = []
    machines = _machines(run) if run.uploads else {}

    def is_there(hostname: str) -> bool:
        task = run.tasks.get(hostname)
        return task is not None and now - task.seen <= SILENT_SECONDS

    for machine, upload in run.uploads.items():
        task = run.tasks.get(upload.task)
        silent = run.silent_seconds(task, now) if task else now - upload.at
        if upload.state == UPLOAD_LOST and is_there(upload.task):
            upload.state, upload.at = UPLOAD_WAITS, now
        elif upload.state in _OPEN and silent > SILENT_SECONDS:
            others = [task.hostname for task in machines.get(machine, ()) if task.report.can_upload and not task.exits]
            upload.task = next(filter(is_there, others), upload.task)
            if not is_there(upload.task):
                upload.state = UPLOAD_LOST
                happened.append(Event(events.ARTIFACTS_LOST, task=upload.task, machine=machine, delay=silent))
        elif upload.state == UPLOADING and now > upload.at + MAX_SECONDS:
            upload.state = UPLOAD_GIVEN_UP
            happened.append(Event(events.ARTIFACTS_LOST, task=upload.task, machine=machine))
    return happened


def finish(run: RunState, hostname: str, now: float) -> None:
    """The launcher of this task has uploaded all that it can."""
    upload = _upload_of(run, hostname)
    if upload is not None:
        upload.state, upload.at = UPLOADED, now


def shift_clock(run: RunState, seconds: float) -> None:
    """Correct the times after the wall clock was set by so many seconds."""
    for upload in run.uploads.values():
        upload.at += seconds
