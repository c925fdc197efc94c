"""A run that moves: the contract of a backend that it can move from and to, and whether its record has something to continue from.

Without that the run would begin again. Pure but for the manifest of the record and the environment.
"""

import os
import posixpath
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from ..agent.control.artifact_uploads import has_uploads
from ..agent.model.run_state import FAILED, STOPPED, UPLOADED, RunState
from ..agent.record.artifact_manifest import ArtifactList, ManifestArtifact, load_manifest, stored_artifacts
from ..agent.record.artifact_selection import RESUMABLE
from ..agent.record.record import Record
from ..agent.record.stored_artifact import (
    CHECKPOINT,
    CLUSTER_LIMIT,
    FILES,
    LIMIT,
    NO_MATCH,
    OTHER_MACHINE,
    RUN_LIMIT,
    LeftOut,
)
from ..errors import BackendError, SpecError
from ..units import text_of_size
from .base import ClusterRef, RunProps
from .controller_calls import ControllerApi

WITHOUT_CHECKPOINT = "TFDEPLOY_WITHOUT_CHECKPOINT"
"""An environment variable with the value 1: a run that moves may begin again at step 0."""

_HARMLESS = (NO_MATCH, OTHER_MACHINE, CLUSTER_LIMIT, RUN_LIMIT)

_STATE = re.compile(
    r"ckpt|checkpoint|weights|backup|\.(keras|h5|hdf5|index|npz|npy|pt|pth|pkl|pickle|joblib|safetensors|msgpack|step|state)$",
    re.IGNORECASE,
)
"""Paths of other files that a program may continue from."""

_ANY_NAME = re.compile(r"[*?\]]$|^[^.]*$")
"""A pattern that may match names of every kind."""


class MovedRunProps(RunProps):
    """The inputs of a run that has a newer record on other backends, or had, or that was stopped because its machines are replaced."""

    moved_from: list[ClusterRef]
    """The cluster at its other places. Empty where only machines are replaced."""
    returns: bool
    """Whether the run was here before: then it continues also where it has failed at the other place."""


@dataclass(frozen=True)
class StoppedRun:
    """What a place has of a run that was stopped to be moved."""

    folder: Path
    """The record on this computer, or its copy."""
    is_current: bool
    """Whether the controller has responded, so that the record is whole. Else it is what this computer had of it."""

    @property
    def record(self) -> Record:
        """The record in this folder."""
        return Record(self.folder)


def not_stopped(cluster: ClusterRef) -> BackendError:
    """The error for tasks that still run: at two places at once they would train from one checkpoint."""
    where = f"the tasks of the run on {cluster['backend']} have not stopped, so it does not move"
    return BackendError(
        f"{cluster['name']}: {where}. Run `pulumi up` again, or set tfdeploy:backend to {cluster['backend']} to stay there"
    )


@runtime_checkable
class RunMover(Protocol):
    """What the task runner of a backend has that runs can move from and to."""

    def stop_to_move(self, cluster: ClusterRef) -> StoppedRun:
        """Stop the run because it moves, wait until its tasks have ended, and copy its record to this computer. BackendError: this is
        not the place that has it."""

    def responding_controller(self, props: RunProps) -> AbstractContextManager[ControllerApi]:
        """Create the controller, if it does not exist, and wait until it responds."""


def missing_checkpoint(stopped: StoppedRun, run: RunState, submitted: str) -> str:
    """Why the run could not continue with its newest checkpoint where the run `submitted` is submitted, in a sentence; else empty.
    `submitted` is empty where that is not known: then the run continues."""
    if _is_over(run, submitted) or "://" in run.spec.train_dir:
        return ""
    artifacts, left_out = stored_artifacts(stopped.record.run_folder(run.spec.id))
    partial = [item.name for item in artifacts if item.kind in RESUMABLE and not item.is_complete]
    has_checkpoint = any(item.kind == CHECKPOINT and item.is_complete for item in artifacts)
    if partial and (stopped.is_current or not has_checkpoint):
        return f"of its checkpoint {', '.join(partial)} only a part could be copied to this computer"
    lost = _not_uploaded(run) if stopped.is_current else []
    if lost:
        return f"what {', '.join(lost)} has in {run.spec.train_dir} could not be uploaded"
    stored = load_manifest(stopped.record.run_folder(run.spec.id))
    lacking = [item for item in left_out if item.reason not in _HARMLESS and not _is_older(item, stored)]
    if lacking and not has_checkpoint:
        names = ", ".join(f"{item.name} ({text_of_size(item.size)}, {item.reason})" for item in lacking)
        return f"these artifacts could not be uploaded: {names}"
    has_trained = not run.spec.serve and any(task.started for task in run.training_tasks)
    if stopped.is_current and submitted in ("", run.spec.id) and has_trained and not may_begin_again():
        return "" if _can_resume(stored) else _nothing_stored(run)
    return ""


def may_begin_again() -> bool:
    """Whether the user has said that a run which moves may begin again."""
    return os.environ.get(WITHOUT_CHECKPOINT) == "1"


def _nothing_stored(run: RunState) -> str:
    patterns = ", ".join(run.spec.artifacts) or "an empty list"
    return (
        f"nothing is stored that it could continue from: `artifacts` ({patterns}) names no checkpoint and no weights in "
        f"{run.spec.train_dir}. Name the files with its state in `artifacts`, or set {WITHOUT_CHECKPOINT}=1: then it begins at step 0"
    )


def failed_run(where: str, run: RunState, place: str) -> SpecError:
    """The error for a run that has failed. `where` is the argument that moves it, `place` where it would continue."""
    wrong = f"the run {run.spec.id} has failed, and a failed run does not continue on {place}"
    remedy = f"Set `run_id` for another run; with resume_from={run.spec.id!r} it continues from the same checkpoint."
    return SpecError(where, wrong, remedy)


def refuse_without_checkpoint(name: str, run: RunState, place: str, remedy: str = "") -> None:
    """Raise SpecError if nothing of what a run has in `train_dir` at this place would be stored that it could continue from, unless the
    user has said that it may begin again. `remedy` is another one than to store it."""
    patterns = run.spec.artifacts
    if not can_name_checkpoint(patterns) and not may_begin_again():
        nothing = f"names no checkpoint and no weights ({', '.join(patterns)})" if patterns else "is empty"
        wrong = f"`artifacts` {nothing}, so that the checkpoints in {run.spec.train_dir} on {place} would be lost"
        raise SpecError(
            f"{name}: artifacts", wrong, f"Remove it: by default the newest checkpoint is uploaded.{remedy}"
        )


def without_checkpoint(effect: str) -> str:
    """What a preview says of a run that stores nothing to continue from; `effect` is that of an update which fails."""
    return (
        "without one it begins again at step 0" if may_begin_again() else f"without one the update fails, and {effect}"
    )


def can_name_checkpoint(patterns: Sequence[str]) -> bool:
    """Whether one of the patterns of `artifacts` may name something that a program can continue from."""
    return any(_STATE.search(pattern) or _ANY_NAME.search(posixpath.basename(pattern)) for pattern in patterns)


def _is_older(item: LeftOut, stored: ArtifactList) -> bool:
    """Whether it is beyond the limits, and a newer one of its folder is stored: the newest are uploaded first."""
    suffix, folder = posixpath.splitext(item.name)[1], posixpath.dirname(item.name)
    return item.reason == LIMIT and any(
        other.kind in RESUMABLE
        and suffix == posixpath.splitext(other.name)[1]
        and folder == posixpath.dirname(other.name)
        for other in stored.artifacts
        if other.kind != CHECKPOINT
    )


def _can_resume(stored: ArtifactList) -> bool:
    return any(map(_is_state, stored.artifacts))


def _is_state(artifact: ManifestArtifact) -> bool:
    if artifact.kind == FILES:
        return any(_STATE.search(file.name) for file in artifact.files)
    return artifact.kind in RESUMABLE


def _is_over(run: RunState, submitted: str) -> bool:
    """Whether the run does not continue. One that has failed does if it returns: then it is submitted again."""
    state = run.result.state if run.result else STOPPED
    return state != STOPPED and not (state == FAILED and run.spec.id == submitted)


def _not_uploaded(run: RunState) -> list[str]:
    """The machines on which the run has trained, without those that have uploaded their artifacts: as after a reboot."""
    machines = {task.report.machine for task in run.training_tasks if task.started} if has_uploads(run) else set()
    uploaded = {machine for machine, upload in run.uploads.items() if upload.state == UPLOADED}
    return sorted((machines | set(run.uploads)) - uploaded)


def begins_again(stopped: StoppedRun, run: RunState, submitted: str) -> bool:
    """Whether the run continues, and its record has nothing to continue from."""
    if _is_over(run, submitted) or "://" in run.spec.train_dir:
        return False
    return not _can_resume(load_manifest(stopped.record.run_folder(run.spec.id)))
