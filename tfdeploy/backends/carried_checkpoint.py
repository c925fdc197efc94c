"""Whether the record of a run that moves has its newest checkpoint: without it the run would begin again. Pure but for its manifest."""

from ..agent.artifact_manifest import stored_artifacts
from ..agent.artifacts import CHECKPOINT, CLUSTER_LIMIT, NO_MATCH, OTHER_MACHINE
from ..agent.run_state import FAILED, STOPPED, UPLOADED, RunState
from ..agent.uploads import has_uploads
from ..units import text_of_size
from .run_mover import StoppedRun

_HARMLESS = (NO_MATCH, OTHER_MACHINE, CLUSTER_LIMIT)


def missing_checkpoint(stopped: StoppedRun, run: RunState, submitted: str) -> str:
    """Why the run could not continue with its newest checkpoint where the run `submitted` is submitted, in a sentence; else empty."""
    if _is_over(run, submitted) or "://" in run.spec.train_dir:
        return ""
    artifacts, left_out = stored_artifacts(stopped.record.run_folder(run.spec.id))
    partial = [item.name for item in artifacts if item.kind == CHECKPOINT and not item.is_complete]
    if partial:
        return f"of its checkpoint {', '.join(partial)} only a part could be copied to this computer"
    lost = _not_uploaded(run) if stopped.is_current else []
    if lost:
        return f"what {', '.join(lost)} has in {run.spec.train_dir} could not be uploaded"
    lacking = [item for item in left_out if item.reason not in _HARMLESS]
    if lacking and not any(item.kind == CHECKPOINT for item in artifacts):
        names = ", ".join(f"{item.name} ({text_of_size(item.size)}, {item.reason})" for item in lacking)
        return f"these artifacts could not be uploaded: {names}"
    return ""


def _is_over(run: RunState, submitted: str) -> bool:
    """Whether the run does not continue. One that has failed does if it returns: then it is submitted again."""
    state = run.result.state if run.result else STOPPED
    return state != STOPPED and not (state == FAILED and run.spec.id == submitted)


def _not_uploaded(run: RunState) -> list[str]:
    """The machines on which the run has trained, without those that have uploaded their artifacts: as after a reboot."""
    machines = {task.machine for task in run.training_tasks if task.started} if has_uploads(run) else set()
    uploaded = {machine for machine, upload in run.uploads.items() if upload.state == UPLOADED}
    return sorted((machines | set(run.uploads)) - uploaded)


def begins_again(stopped: StoppedRun, run: RunState, submitted: str) -> bool:
    """Whether the run continues, and its record has no checkpoint."""
    if _is_over(run, submitted) or "://" in run.spec.train_dir:
        return False
    return not any(item.kind == CHECKPOINT for item in stored_artifacts(stopped.record.run_folder(run.spec.id))[0])
