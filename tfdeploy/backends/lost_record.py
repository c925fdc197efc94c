"""The record of a controller whose disk was lost: its successor gets the copy on this computer, and continues the run.

The copy also has what launchers could not report, where they were stopped because their machines left the controller's place.
"""

import json
from dataclasses import replace
from itertools import chain, count
from pathlib import Path

from ..agent.control import reconcile
from ..agent.launch.program import Program
from ..agent.model.run_state import RunState
from ..agent.record.artifact_manifest import MANIFEST, load_manifest
from ..agent.record.output import DIFFERS, Log
from ..agent.record.record import Record
from ..agent.record.record_files import Range, RecordList, list_files, read_ranges, small_file
from ..agent.record.replica import pack
from ..agent.system.files import sha256_of
from ..agent.wire.rpc import CallError
from ..errors import BackendError
from ..units import moment
from . import controller_calls
from .base import ClusterRef
from .controller_calls import ControllerApi, understood
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
        if RecordList.from_dict(controller.json("POST", "/files", {"runs": []})).run:
            return ""
        lost_at = copy.record.last_alive() or run.submitted_at
        give_record(controller, copy.folder, lost_at)
    except (OSError, CallError, ValueError) as error:
        raise BackendError(f"{cluster['name']}: the record in {copy.folder} could not be restored: {error}") from None
    return f"the controller has no record: it gets that of {moment(lost_at)}, which was copied from its predecessor"


def give_record(
    controller: ControllerApi, folder: Path, copied_at: float, is_moved: bool = False, returns: bool = False
) -> None:
    """Give the record in a folder to a controller that has none, or that of a run that has moved away (see `ImportRequest`). It says
    which ranges of which files it wants.

    Raises:
        OSError, CallError: a file cannot be read; the controller does not respond, or refuses it.
    """
    listed = json.dumps(list_record(folder).to_dict()).encode()
    reply = json.loads(controller.call("PUT", "/import", listed))
    while reply["wanted"] is not None:
        ranges = understood(lambda data: [Range(*part) for part in data["wanted"]], reply)
        reply = json.loads(controller.call("PUT", "/import/ranges", pack(ranges, read_ranges(folder, ranges))))
    controller.json("POST", "/import", {"copied_at": copied_at, "is_moved": is_moved, "returns": returns})


def list_record(folder: Path) -> RecordList:
    """The files of the record in a folder, with the hashes of what is in them. The list of artifacts may have others, as after a crash
    of what copied them."""
    record = Record(folder)
    listed = RecordList(record.record_id(), 0.0, list_files(folder))
    files = [
        file if file.text is not None else file._replace(sha256=sha256_of(folder / file.name, file.size))
        for file in listed.files
    ]
    for run_folder in map(record.run_folder, record.runs()):
        name = f"runs/{run_folder.name}/{MANIFEST}"
        if (folder / name).exists() and not listed.text(name):  # it is damaged
            files.append(small_file(name, json.dumps(load_manifest(run_folder).to_dict())))
    return listed._replace(files=files, run=listed.text("current").strip())


def add_left(cluster: ClusterRef, hostname: str, folder: Path) -> None:
    """`add_left_to` for the copy on this computer.

    Raises:
        RecordCopyError: the copy cannot be written.
    """
    copy = RecordCopy(cluster)
    with copy.locked():
        add_left_to(copy.record, hostname, folder)


def add_left_to(record: Record, hostname: str, folder: Path) -> None:
    """Add to a record what the folder of a launcher that was stopped has: output that has not arrived, and the end of its program."""
    run = record.current()
    if run is not None and run.has_had(hostname):
        _add_output(Log(folder / "spool" / run.spec.id), record, run.spec.id, hostname)
        _add_end(record, run, hostname, Program(folder))


def _add_output(source: Log, record: Record, run_id: str, hostname: str) -> None:
    """Add the pieces that a launcher has; those that differ from the output that is stored are stored apart, and from each other."""
    source.cut_tails()
    for first, size in source.sizes().items():
        data = source.read(first, size)
        apart = (record.log_apart(run_id, hostname, f"left{number or ''}") for number in count())
        next(log for log in chain([record.log(run_id, hostname)], apart) if log.store(first, first, data) != DIFFERS)


def _add_end(record: Record, run: RunState, hostname: str, program: Program) -> None:
    """As if the launcher had reported it. An end of another run, or of an attempt before, is known."""
    task = run.tasks.get(hostname)
    if task is None or program.run_id != run.spec.id or program.attempt < task.attempt:
        return
    report = replace(
        task.report,
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
