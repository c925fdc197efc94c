"""The way of a record when its run moves: the run is stopped, its record and newest checkpoint come to this computer and are checked,
and a controller without a record is given the copy.

Nothing is deleted where the run was. Each step can be repeated: the next update begins with the newest record again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..agent.control.move import arrive
from ..agent.model.run_state import MOVED, RunState, continues
from ..agent.record.artifact_manifest import stored_artifacts
from ..agent.record.record import ViewRequest
from ..agent.wire.rpc import CallError
from ..errors import BackendError, SpecError
from . import controller_calls
from .backend import load
from .base import ClusterRef, Replacement
from .controller_calls import ControllerApi
from .lost_record import give_record
from .move_checks import MovedRunProps, RunMover, StoppedRun, begins_again, missing_checkpoint
from .record_copy import RecordCopy

_STOP_SECONDS = 60.0

_ANOTHER = "another"
"""No run has this id: another one is submitted, which needs no checkpoint of this one."""


@dataclass(frozen=True)
class _Source:
    """Another place of the cluster, and what it has of the run."""

    cluster: ClusterRef
    stopped: StoppedRun
    run: RunState


def mover(backend: str) -> RunMover:
    """How runs move from and to this backend.

    Raises:
        SpecError: they do not.
    """
    runner = load(backend).runner
    if not isinstance(runner, RunMover):
        raise SpecError(
            "backend", f"a run cannot move from or to {backend!r}", "Destroy the cluster, and create it there."
        )
    return runner


def bring_here(props: MovedRunProps) -> list[str]:
    """Stop the run at its other places, and give the newest record that one of them has to the controller here, unless its own is
    newer. What a user should know of it, in sentences.

    Raises:
        BackendError: the record is at none of these places, or cannot be given. The run is stopped then, and can be continued where it
            was.
    """
    cluster = props["cluster"]
    with mover(cluster["backend"]).responding_controller(props) as controller:
        own = controller_calls.view(controller, ViewRequest()).run_state
        newest = max(_stopped(props["moved_from"]), key=lambda source: source.run.moves, default=None)
        if newest is None and own is None:
            places = ", ".join(f"{former['backend']} ({former['home']})" for former in props["moved_from"])
            raise BackendError(f"{cluster['name']}: no place has the record of the run: {places}")
        if newest is None or (own is not None and own.moves >= newest.run.moves):
            return []
        _check_source(props, newest)
        try:
            said = _stop_here(controller, cluster, own, newest) if own is not None else []
            returns = props["returns"] and props["run"]["id"] == newest.run.spec.id
            copied_at = newest.stopped.record.last_alive()
            give_record(controller, newest.stopped.folder, copied_at, True, returns)
        except (OSError, CallError) as error:
            where = f"the record of {newest.cluster['backend']} could not be moved to {cluster['backend']}"
            raise BackendError(f"{cluster['name']}: {where}: {error}") from None
    return said if newest.stopped.is_current else [*said, _stale(newest, props["run"]["id"])]


def _stopped(clusters: Sequence[ClusterRef]) -> list[_Source]:
    """What the other places have of the run, once it is stopped there."""
    sources = []
    for cluster in clusters:
        stopped = mover(cluster["backend"]).stop_to_move(cluster)
        run = stopped.record.current()
        if run is not None:
            sources.append(_Source(cluster, stopped, run))
    return sources


def _check_source(props: MovedRunProps, source: _Source) -> None:
    """Refuse a run that could not continue here. The one that is submitted may resume it."""
    submitted, run, name = props["run"], source.run, props["cluster"]["name"]
    run_id = run.spec.id if submitted.get("resume_from") == run.spec.id else str(submitted["id"])
    missing = missing_checkpoint(source.stopped, run, run_id)
    if missing:
        back = f"pulumi config set tfdeploy:backend {source.cluster['backend']} && pulumi up --refresh"
        raise BackendError(
            f"{name}: the run cannot continue on {props['cluster']['backend']}: {missing}. It is stopped. To continue it where it "
            f"was: {back}"
        )


def _stop_here(controller: ControllerApi, cluster: ClusterRef, own: RunState, newest: _Source) -> list[str]:
    """Stop what the run has left here when it moved away: its record becomes the newest one. If that may not have all of it, a copy is
    retained: where, in a sentence."""
    controller_calls.stop(controller, lambda: False, own.spec.grace + _STOP_SECONDS, to_move=True)
    if newest.stopped.is_current:
        return []
    copy = RecordCopy(cluster)
    if not copy.download(controller):
        raise BackendError(f"{cluster['name']}: the controller does not respond. Run `pulumi up` again")
    retained = copy.retire({"volumes": False, "record": True})
    return [retained] if retained else []


def _stale(source: _Source, submitted: str) -> str:
    lacks = begins_again(source.stopped, source.run, submitted)
    begins = ", which has no checkpoint and no weights: it begins again at step 0" if lacks else ""
    return (
        f"the controller on {source.cluster['backend']} does not respond: the run continues from the copy of its record on this "
        f"computer{begins}. If it still runs there, it is not stopped"
    )


def bring_home(cluster: ClusterRef, replacement: Replacement) -> None:
    """Stop the run before machines are replaced, and bring its whole record here, with its newest checkpoint unless the new machines
    see that anyway. The next controller is given the copy as the successor of one that was lost (`lost_record`).

    Raises:
        BackendError: something is missing. Then no machine may be replaced; the run is stopped, and can be continued.
    """
    stopped = mover(cluster["backend"]).stop_to_move(cluster)
    run = stopped.record.current()
    if not stopped.is_current and not _was_brought(run):
        raise _refusal(
            cluster,
            "the controller does not respond, so that its record and the newest checkpoint cannot be copied",
            "Run `pulumi up` without the change first. If the manager's machine is broken, terminate it: then `pulumi up` "
            "creates another one, and what its disk has since the last upload is lost",
        )
    if run is not None:
        _check_copy(cluster, StoppedRun(stopped.folder, is_current=True), run, replacement)
        if continues(run) and not replacement.keeps_train_dir:
            # The same folder may have an older checkpoint, where machines return to a volume of the user's.
            arrive(run)
            RecordCopy(cluster).record.save_other(run)


def _was_brought(run: RunState | None) -> bool:
    """Whether an earlier update has stopped the run and copied its record, and no controller has continued it since."""
    return run is not None and run.result is not None and run.result.cause == MOVED


def _check_copy(cluster: ClusterRef, copy: StoppedRun, run: RunState, replacement: Replacement) -> None:
    """Check that the copy is whole."""
    if run.result is None:
        raise _refusal(cluster, "the copy of its record is not complete", "Run `pulumi up` again")
    submitted = "" if replacement.continues else _ANOTHER
    missing = "" if replacement.keeps_train_dir else missing_checkpoint(copy, run, submitted)
    artifacts = stored_artifacts(copy.record.run_folder(run.spec.id))[0]
    partial = ", ".join(artifact.name for artifact in artifacts if not artifact.is_complete)
    missing = missing or (f"of {partial} only a part could be copied to this computer" if partial else "")
    if missing:
        raise _refusal(cluster, missing, "To continue it as it was, undo the change and run `pulumi up --refresh`")


def _refusal(cluster: ClusterRef, problem: str, remedy: str) -> BackendError:
    return BackendError(f"{cluster['name']}: no machine is replaced: {problem}. The run may be stopped. {remedy}")
