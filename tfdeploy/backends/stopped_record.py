"""The record of a run that is stopped because its machines are replaced. It is on this computer before one of them is deleted.

The controller of the next machines gets that copy, as the successor of one that was lost (`lost_record`).
"""

from ..agent.control.move import arrive
from ..agent.record.artifact_manifest import stored_artifacts
from ..agent.run_state import MOVED, RunState, continues
from ..errors import BackendError
from ..plan.replacement import Replacement
from .base import ClusterRef
from .move import RunMover, StoppedRun, missing_checkpoint
from .record_copy import RecordCopy

_ANOTHER = "another"
"""No run has this id: another one is submitted, which needs no checkpoint of this one."""


def take(cluster: ClusterRef, run_mover: RunMover, replacement: Replacement) -> None:
    """Stop the run, and bring its whole record here, with its newest checkpoint unless the new machines see that anyway.

    Raises:
        BackendError: something is missing. Then no machine may be replaced; the run is stopped, and can be continued.
    """
    stopped = run_mover.stop_to_move(cluster)
    run = stopped.record.current()
    if not stopped.is_current and not _was_taken(run):
        raise _refusal(
            cluster,
            "the controller does not respond, so that its record and the newest checkpoint cannot be copied",
            "Run `pulumi up` without the change first. If the manager's machine is broken, terminate it: then `pulumi up` "
            "creates another one, and what its disk has since the last upload is lost",
        )
    if run is not None:
        _check(cluster, StoppedRun(stopped.folder, is_current=True), run, replacement)
        if continues(run) and not replacement.keeps_train_dir:
            _leave_train_dir(cluster, run)


def _was_taken(run: RunState | None) -> bool:
    """Whether an earlier update has stopped the run and copied its record, and no controller has continued it since."""
    return run is not None and run.result is not None and run.result.cause == MOVED


def _check(cluster: ClusterRef, copy: StoppedRun, run: RunState, replacement: Replacement) -> None:
    """Check that the copy is whole."""
    if run.result is None:
        raise _refusal(cluster, "the copy of its record is not complete", "Run `pulumi up` again")
    missing = (
        "" if replacement.keeps_train_dir else missing_checkpoint(copy, run, "" if replacement.continues else _ANOTHER)
    )
    missing = missing or _missing_artifacts(copy, run)
    if missing:
        raise _refusal(cluster, missing, "To continue it as it was, undo the change and run `pulumi up --refresh`")


def _leave_train_dir(cluster: ClusterRef, run: RunState) -> None:
    """Have the next controller choose another folder: the same one may have an older checkpoint, where machines return to a volume of
    the user's."""
    arrive(run, cluster["backend"])
    RecordCopy(cluster).record.save_other(run)


def _missing_artifacts(copy: StoppedRun, run: RunState) -> str:
    artifacts = stored_artifacts(copy.record.run_folder(run.spec.id))[0]
    partial = [artifact.name for artifact in artifacts if not artifact.is_complete]
    return f"of {', '.join(partial)} only a part could be copied to this computer" if partial else ""


def _refusal(cluster: ClusterRef, problem: str, remedy: str) -> BackendError:
    return BackendError(f"{cluster['name']}: no machine is replaced: {problem}. The run may be stopped. {remedy}")
