"""The record of a run that was stopped because its machines are replaced. It is on this computer until the run trains on others."""

import shutil
from pathlib import Path

from ..agent.control.move import stop_until_submitted
from ..agent.record.artifact_manifest import stored_artifacts
from ..agent.run_state import FAILED, RunState
from ..errors import BackendError
from ..plan.replacement import Replacement
from .base import ClusterRef
from .move import RunMover, StoppedRun, missing_checkpoint
from .record_copy import RecordCopy

_FOLDER = "carried"

_ANOTHER = "another"
"""No run has this id: another one is submitted, which needs no checkpoint of this one."""


def folder_of(cluster: ClusterRef) -> Path:
    """Where the record is; nothing else writes to it."""
    return RecordCopy(cluster).home / _FOLDER


def stored(cluster: ClusterRef) -> StoppedRun | None:
    """What was brought here; None where no run waits for other machines."""
    folder = folder_of(cluster)
    return StoppedRun(folder, is_current=True) if folder.exists() else None


def remove(cluster: ClusterRef) -> None:
    """The run trains on the new machines, which have the record."""
    shutil.rmtree(folder_of(cluster), ignore_errors=True)


def take(cluster: ClusterRef, run_mover: RunMover, replacement: Replacement) -> None:
    """Stop the run, and bring its whole record here, with its newest checkpoint unless the new machines see that anyway.

    Raises:
        BackendError: something is missing. Then no machine may be replaced; the run is stopped, and can be continued.
    """
    former, stopped = stored(cluster), run_mover.stop_to_move(cluster)
    if not stopped.is_current:
        if former is None:
            raise _refusal(
                cluster,
                "the controller does not respond, so that its record and the newest checkpoint cannot be copied",
                "Run `pulumi up` without the change first. If the manager's machine is broken, terminate it: then `pulumi up` "
                "creates another one, and what its disk has since the last upload is lost",
            )
        return  # an earlier update has brought the record, and replaced the manager's machine
    if stopped.record.current() is None:
        return
    draft = folder_of(cluster).with_suffix(".draft")
    RecordCopy(cluster).copy_to(draft)
    _check(cluster, StoppedRun(draft, is_current=True), replacement, is_return=former is not None)
    remove(cluster)
    draft.rename(folder_of(cluster))


def _check(cluster: ClusterRef, copy: StoppedRun, replacement: Replacement, is_return: bool) -> None:
    """Check that the copy is whole. A run that has failed before it trained on other machines continues when it returns."""
    run = copy.record.current()
    if run is None or run.result is None:
        raise _refusal(cluster, "the copy of its record is not complete", "Run `pulumi up` again")
    if is_return and run.result.state == FAILED:
        run.result = None
        stop_until_submitted(run, None, run.submitted_at)
        copy.record.save_other(run)
    submitted = _ANOTHER if not replacement.continues else run.spec.id if is_return else ""
    missing = "" if replacement.keeps_train_dir else missing_checkpoint(copy, run, submitted)
    missing = missing or _missing_artifacts(copy, run)
    if missing:
        raise _refusal(cluster, missing, "To continue it as it was, undo the change and run `pulumi up --refresh`")


def _missing_artifacts(copy: StoppedRun, run: RunState) -> str:
    artifacts = stored_artifacts(copy.record.run_folder(run.spec.id))[0]
    partial = [artifact.name for artifact in artifacts if not artifact.is_complete]
    return f"of {', '.join(partial)} only a part could be copied to this computer" if partial else ""


def _refusal(cluster: ClusterRef, problem: str, remedy: str) -> BackendError:
    return BackendError(f"{cluster['name']}: no machine is replaced: {problem}. The run may be stopped. {remedy}")
