"""`tfdeploy stop`: stop the training; the cluster remains."""

import time

from ... import registry
from ...agent.model.run_state import STOPPED, RunState
from ...backends.backend import access
from ...errors import BackendError, NotFound
from ...registry import Entry
from ...report.diagnosis import after_stop
from ...units import text_of_number
from ..cluster_selection import ClusterQuery, select_existing_cluster
from ..output import ask_to_confirm, print_answer, print_message
from ..parser import Parser, add_yes
from ..snapshot import Snapshot, no_run, snapshots, take_snapshot

_POLL_SECONDS = 0.3
_MARGIN_SECONDS = 60.0
"""A task has ended so long after its `stop_grace_period`, with its whole output in the record."""


def add_arguments(parser: Parser) -> None:
    """Its options and arguments."""
    add_yes(parser)


def stop(query: ClusterQuery, yes: bool = False) -> None:
    """Stop the training. The cluster remains.

    Tasks get SIGTERM, and SIGKILL after `stop_grace_period`. Machines, volumes, checkpoints, logs and TensorBoard remain. A stopped run
    stays stopped, also after `pulumi up`: to continue it, use `pulumi config set tfdeploy:resume_from RUN` and `pulumi up`.
    A run that has succeeded while other workers have time left to end by themselves remains succeeded, and these workers are stopped.
    """
    entry = select_existing_cluster(query)
    snapshot = take_snapshot(entry, events=0)
    run = snapshot.run_state
    if run is None:
        raise no_run(snapshot)
    if run.result is not None and snapshot.is_finished:
        _print(query, entry, snapshot, f"The run {run.spec.id} of {entry.title} has already ended: {run.result.state}.")
        return
    print_message(_effect(entry, run))
    ask_to_confirm(yes, "Stop the training?")
    if not yes:
        _refuse_another(entry, run)
    access(entry.cluster["backend"]).stop_training(entry.cluster)
    _print_end(query, entry, run, _wait(entry, run))


def _refuse_another(entry: Entry, run: RunState) -> None:
    """The question may have been open for long.

    Raises:
        NotFound: the cluster has another run now.
    """
    present = take_snapshot(registry.latest(entry), events=0).run_state
    if present is None or present.spec.id != run.spec.id:
        raise NotFound(f"{entry.title} no longer has the run {run.spec.id}. Nothing was stopped.")


def _print_end(query: ClusterQuery, entry: Entry, run: RunState, end: Snapshot) -> None:
    """What has become of the run: it may have ended by itself just before."""
    present = end.run_state
    result = present.result if present is not None and present.spec.id == run.spec.id else None
    if run.result is not None:
        message = (
            f"The tasks of the run {run.spec.id} of {entry.title} were stopped. The run remains {run.result.state}."
        )
        _print(query, entry, end, message)
    elif result is not None and result.state != STOPPED:
        _print(query, entry, end, f"The run {run.spec.id} of {entry.title} had already ended: {result.state}.")
    else:
        way_on = after_stop(run.spec.id, result.cause if result else "")
        _print(query, entry, end, f"The run {run.spec.id} was stopped. {way_on}")


def _effect(entry: Entry, run: RunState) -> str:
    grace = text_of_number(float(run.spec.grace))
    end = f"has already {run.result.state}" if run.result is not None else "ends now"
    tasks = "tasks that still run" if run.result is not None else "tasks"
    return (
        f"The run {run.spec.id} of {entry.title} {end}: its {tasks} get SIGTERM, and SIGKILL after {grace} s. What they have computed "
        "since their last checkpoint is lost. The cluster remains."
    )


def _wait(entry: Entry, run: RunState) -> Snapshot:
    """The cluster when the tasks have stopped.

    Raises:
        BackendError: they have not stopped in time.
        NotFound: nothing of the cluster exists any more.
    """
    deadline = time.monotonic() + float(run.spec.grace) + _MARGIN_SECONDS
    for snapshot in snapshots(entry, lambda: time.sleep(_POLL_SECONDS)):
        if not snapshot.is_finished and time.monotonic() > deadline:
            raise BackendError(f"the tasks of {entry.title} have not stopped yet. `tfdeploy status` shows them.")
    return snapshot


def _print(query: ClusterQuery, entry: Entry, snapshot: Snapshot, message: str) -> None:
    report = snapshot.report
    document = {"cluster": entry.title, "run": report.run, "state": report.state, "message": message}
    print_answer(query.as_json, document, message)
