"""The record of a controller whose disk was lost: its successor gets the copy on this computer, and continues the run.

The copy also has what launchers could not report, where they were stopped because their machines left the controller's place.
"""

from dataclasses import replace
from pathlib import Path

from ..agent.control import reconcile
from ..agent.launch.program import Program
from ..agent.record.output import DIFFERS, Log
from ..agent.record.record import Record
from ..agent.record.record_files import RecordList
from ..agent.run_state import RunState
from ..agent.sync import LauncherReport
from ..agent.transport.rpc import CallError
from ..errors import BackendError
from ..units import moment
from . import controller_calls
from .base import ClusterRef
from .controller_calls import ControllerApi
from .record_copy import RecordCopy


def restore(controller: ControllerApi, cluster: ClusterRef, seconds: float) -> str:
    """Import the copy on this computer into a controller that has no record, once it responds; a sentence about it. Empty where the
    controller has a record, however old, or this computer has no copy.

    Raises:
        BackendError: the controller does not respond within so many seconds, or the record cannot be imported. The run is not
            submitted then: it would begin again.
    """
    copy = RecordCopy(cluster)
    run = copy.record.current()
    if run is None:
        return ""
    controller_calls.await_controller(controller, cluster["name"], seconds)
    try:
        if RecordList.from_dict(controller.json("POST", "/files", {"runs": []})).runs:
            return ""
        lost_at = copy.record.last_alive() or run.submitted_at
        controller_calls.give_record(controller, copy.folder, lost_at)
    except (OSError, CallError, ValueError) as error:
        raise BackendError(f"{cluster['name']}: the record in {copy.folder} could not be restored: {error}") from None
    return f"the controller has no record: it gets that of {moment(lost_at)}, which was copied from its predecessor"


def add_left(cluster: ClusterRef, hostname: str, folder: Path) -> None:
    """Add to the copy what the folder of a launcher that was stopped has: output that has not arrived, and the end of its program.

    Raises:
        RecordCopyError: the copy cannot be written.
    """
    copy = RecordCopy(cluster)
    with copy.locked():
        run = copy.record.current()
        if run is not None and run.has_had(hostname):
            _add_output(Log(folder / "spool" / run.spec.id), copy.record, run.spec.id, hostname)
            _add_end(copy.record, run, hostname, Program(folder))


def _add_output(source: Log, record: Record, run_id: str, hostname: str) -> None:
    """Add the pieces that a launcher has; one that differs from the output that is stored is stored apart."""
    source.cut_tails()
    for first, size in source.sizes().items():
        data = source.read(first, size)
        if record.log(run_id, hostname).store(first, first, data) == DIFFERS:
            record.log_apart(run_id, hostname, "left").store(first, first, data)


def _add_end(record: Record, run: RunState, hostname: str, program: Program) -> None:
    """As if the launcher had reported it. An end of another run, or of an attempt before, is known."""
    task = run.tasks.get(hostname)
    if task is None or program.run_id != run.spec.id or program.attempt < task.attempt:
        return
    report = LauncherReport(
        hostname,
        task.instance,
        host=task.host,
        port=task.port,
        ready=task.ready,
        run_id=program.run_id,
        attempt=program.attempt,
        phase=program.phase,
        started=program.started,
        exit=program.exit,
    )
    now = program.exit.at if program.exit else task.seen
    happened = reconcile.apply_report(run, program.complete(report), now)
    record.add_events(run.spec.id, [replace(event, at=event.at or now) for event in happened])
    record.save_other(run)
