"""The record of a run that moves: the run is stopped where it was, and its record is imported here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..agent.record import record_import
from ..agent.record.record import ViewRequest
from ..agent.record.record_import import ImportRequest
from ..agent.run_state import RunState, moves_after
from ..agent.transport.rpc import CallError
from ..errors import BackendError, SpecError
from . import controller_calls
from .base import ClusterRef
from .controller_calls import ControllerApi
from .load import load
from .move import MovedRunProps, RunMover, StoppedRun, begins_again, missing_checkpoint

LastStep = Callable[[StoppedRun], int]
"""The last step that the current run of a record has logged; 0 for none."""


@dataclass(frozen=True)
class _Source:
    """Another place of the cluster, and what it has of the run."""

    cluster: ClusterRef
    stopped: StoppedRun
    run: RunState


def import_record(props: MovedRunProps, last_step: LastStep) -> list[str]:
    """Stop the run at its other places, and import the newest record that one of them has into the controller here, unless its own is
    newer. What a user should know of it, in sentences.

    Raises:
        BackendError: the record is at none of these places, or cannot be imported. The run is stopped then, and can be continued where
            it was.
    """
    cluster = props["cluster"]
    with mover(cluster["backend"]).responding_controller(props) as controller:
        own = controller_calls.view(controller, ViewRequest()).run_state
        sources = _stopped(props["moved_from"])
        newest = max(sources, key=lambda source: moves_after(source.run), default=None)
        if newest is None:
            if own is None:
                places = ", ".join(f"{former['backend']} ({former['home']})" for former in props["moved_from"])
                raise BackendError(f"{cluster['name']}: no place has the record of the run: {places}")
            return []
        if own is not None and own.moves >= newest.run.moves:
            return []
        if own is not None:
            controller_calls.stop(controller, lambda: False, own.spec.grace + _STOP_SECONDS, to_move=True)
        missing = missing_checkpoint(newest.stopped, newest.run, _continued(props, newest.run))
        if missing:
            back = f"pulumi config set tfdeploy:backend {newest.cluster['backend']} && pulumi up --refresh"
            raise BackendError(
                f"{cluster['name']}: the run cannot continue on {cluster['backend']}: {missing}. It is stopped. To continue it "
                f"where it was: {back}"
            )
        _send(controller, newest, cluster, last_step(newest.stopped))
    return [] if newest.stopped.is_current else [_stale(newest, props["run"]["id"])]


_STOP_SECONDS = 60.0


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


def _continued(props: MovedRunProps, run: RunState) -> str:
    """The id of the run that is submitted; of this one, if that resumes it."""
    submitted = props["run"]
    return run.spec.id if submitted.get("resume_from") == run.spec.id else str(submitted["id"])


def _stopped(clusters: Sequence[ClusterRef]) -> list[_Source]:
    """What the other places have of the run, once it is stopped there."""
    sources = []
    for cluster in clusters:
        stopped = mover(cluster["backend"]).stop_to_move(cluster)
        run = stopped.record.current()
        if run is not None:
            sources.append(_Source(cluster, stopped, run))
    return sources


def _send(controller: ControllerApi, source: _Source, target: ClusterRef, step: int) -> None:
    """Import a record. The controller checks it as a whole."""
    try:
        digest = record_import.send(source.stopped.folder, controller.call)
        request = ImportRequest(digest, source.cluster["backend"], target["backend"], step)
        controller_calls.finish_import(controller, request)
    except (OSError, CallError) as error:
        raise BackendError(
            f"{target['name']}: the record of {source.cluster['backend']} could not be moved to {target['backend']}: {error}"
        ) from None


def _stale(source: _Source, submitted: str) -> str:
    lacks = begins_again(source.stopped, source.run, submitted)
    begins = ", which has no checkpoint and no weights: it begins again at step 0" if lacks else ""
    return (
        f"the controller on {source.cluster['backend']} does not respond: the run continues from the copy of its record on this "
        f"computer{begins}. If it still runs there, it is not stopped"
    )
