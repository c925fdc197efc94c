"""The import of another controller's record: a run that has moved continues with its states, events, logs and artifacts.

The list of its files arrives first, then the ranges that are missing here. It replaces the record here in one step, after all hashes
and names were checked; an import that was cut off continues.
"""

import hashlib
import json
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, List, Optional

from .. import events
from ..control import move
from ..events import Event
from ..files import sha256_of, write_whole
from ..json_data import JsonData
from ..launch.workdir import RunRefused
from ..run_state import RunState
from . import artifact_precedence
from .artifact_manifest import MANIFEST, ArtifactList, is_complete, load_manifest, save_manifest, size_of
from .artifacts import NOT_COPIED, LeftOut
from .record import Record
from .record_files import Range, RecordFile, RecordList, is_record_file, list_files, read_ranges
from .replica import divide, pack, unpack

_FOLDER, _LIST = "import", "list.json"
"""The folder in the record with what has arrived so far."""

_SINGLE_FILES = ("format", "record_id", "current")


@dataclass(frozen=True)
class ImportRequest(JsonData):
    """What has arrived, once all has. `origin` and `place` are for the event: backends, or what has replaced what."""

    sha256: str
    """The hash of the list of files."""
    origin: str
    place: str
    step: int = 0
    """The last step that the run has logged; 0 for none."""
    is_same_place: bool = False
    """The record was copied away before machines of this place were replaced, and returns."""
    keeps_train_dir: bool = False
    """The new machines see the former `train_dir` too."""


def send(folder: Path, call: Callable[[str, str, bytes], bytes]) -> str:
    """Send the record in a folder to a controller, which `call` calls; the hash of the list of its files.

    Raises:
        OSError: a file cannot be read.
    """
    record_id = Record(folder).record_id()  # it is created when it is read first
    files = [_hashed(folder, file) for file in list_files(folder)]
    listed = json.dumps(RecordList(record_id, 0.0, files).to_dict()).encode()
    lacking = [Range(*part) for part in json.loads(call("PUT", "/import", listed))["lacking"]]
    for ranges in divide(lacking):
        call("PUT", "/import/ranges", pack(ranges, read_ranges(folder, ranges)))
    return hashlib.sha256(listed).hexdigest()


def _hashed(folder: Path, file: RecordFile) -> RecordFile:
    return file if file.sha256 else file._replace(sha256=sha256_of(folder / file.name, file.size))


def begin(record: Path, listed: bytes) -> List[Range]:
    """Store the list of a record that is about to arrive; what is missing of its files.

    Raises:
        ValueError: it has names that a record does not have.
        OSError: the disk is full.
    """
    files = RecordList.from_dict(json.loads(listed)).files
    for file in files:
        if not is_record_file(file.name):
            raise ValueError(f"{file.name!r} is not a file of a record")
    write_whole(record / _FOLDER / _LIST, listed)
    arrived = record / _FOLDER / "record"
    ends = [(file, max(0, size_of(arrived / file.name))) for file in files if file.text is None]
    return [Range(file.name, end, file.size - end) for file, end in ends if end < file.size]


def put(record: Path, content: bytes) -> None:
    """Store ranges of files.

    Raises:
        ValueError: they were damaged on their way, or what is before them is missing.
        OSError: the disk is full.
    """
    for part, data in unpack(content):
        path = record / _FOLDER / "record" / part.name
        size = max(0, size_of(path))
        if not is_record_file(part.name) or part.offset > size:
            raise ValueError(f"{part.name} has {size} bytes, and this part begins at {part.offset}")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("r+b" if size else "wb") as file:
            file.truncate(part.offset)
            file.seek(part.offset)
            file.write(data)


def finish(record: Record, run: Optional[RunState], request: ImportRequest, now: float) -> None:
    """Replace the record by the one that has arrived. `run` is the current run here.

    Raises:
        RunRefused: the record here has runs that the one which has arrived does not continue.
        ValueError: the archive is not whole, or has names that a record does not have.
        OSError: the disk is full.
    """
    folder = record.folder / _FOLDER
    arrived = folder / "record"
    _complete(folder, request)
    _refuse_other(record, run, Record(arrived), request)
    _mark_arrived(Record(arrived), run or record.current(), request, now)
    _retain(record, Record(arrived))
    _install(arrived, record.folder)
    shutil.rmtree(str(folder), ignore_errors=True)


def _complete(folder: Path, request: ImportRequest) -> None:
    """Check what has arrived, and add the files whose content is in the list."""
    content = (folder / _LIST).read_bytes()
    if hashlib.sha256(content).hexdigest() != request.sha256:
        raise ValueError("the import is that of another record")
    files = RecordList.from_dict(json.loads(content)).files
    for file in files:
        path = folder / "record" / file.name
        if file.text is not None or not file.size:
            write_whole(path, file.text or "")
        elif size_of(path) != file.size or sha256_of(path) != file.sha256:
            path.unlink(missing_ok=True)
            raise ValueError(f"{file.name} has not arrived, or has another hash")
    names = {folder / "record" / file.name for file in files}
    for path in (folder / "record").rglob("*"):
        if path.is_file() and path not in names:
            path.unlink()  # of an earlier import, which was cut off


def _refuse_other(record: Record, run: Optional[RunState], arrived: Record, request: ImportRequest) -> None:
    current = arrived.current()
    if current is None:
        raise ValueError("the record that was imported has no current run")
    if run is None and record.current() is None:
        return
    own = run or record.current()
    is_newer = own is not None and own.result is not None and current.moves > own.moves
    is_again = run is None and own is not None and bool(own.arrived_from) and current.moves >= own.moves
    returns = request.is_same_place and own is not None and own.result is not None and current.moves == own.moves
    if record.record_id() != arrived.record_id() or not (is_newer or is_again or returns):
        raise RunRefused("the record here has runs already, and the one that was imported does not continue them")


def _mark_arrived(arrived: Record, own: Optional[RunState], request: ImportRequest, now: float) -> None:
    current = arrived.current()
    for run_id in arrived.runs():
        run = arrived.load(run_id)
        if run is not None:
            move.arrive(run, request.origin, request.keeps_train_dir)
            if current is not None and run_id == current.spec.id:
                move.stop_until_submitted(run, own, now)
                moved = Event(events.RUN_MOVED, now, origin=request.origin, place=request.place, count=request.step)
                arrived.add_events(run_id, [moved])
            arrived.save_other(run)
            with suppress(FileNotFoundError):  # the artifacts of the oldest runs are deleted first
                os.utime(str(arrived.run_folder(run_id) / MANIFEST), (run.submitted_at, run.submitted_at))


def _retain(record: Record, arrived: Record) -> None:
    """Take over what only the record here has: earlier runs, and artifacts. What has arrived may be a copy that is not complete, of a
    place that does not respond."""
    for run_id in record.runs():
        source, target = record.run_folder(run_id), arrived.run_folder(run_id)
        if target.exists():
            artifact_precedence.retain(source, target)
        else:
            shutil.copytree(str(source), str(target), copy_function=artifact_precedence.link_or_copy)
    for run_id in arrived.runs():
        folder = arrived.run_folder(run_id)
        manifest = load_manifest(folder)
        complete = [item for item in manifest.artifacts if is_complete(folder, item)]
        lost = [item for item in (*manifest.artifacts, *manifest.pending) if item not in complete]
        if lost:
            left_out = [LeftOut(item.name, item.size, NOT_COPIED, item.machine) for item in lost]
            save_manifest(folder, ArtifactList(complete, [*manifest.left_out, *left_out]))


def _install(arrived: Path, record: Path) -> None:
    """Replace the runs. Without the file `current`, which is written last, a record has no run: a crash before leaves that."""
    former = record / _FOLDER / "former"
    if (record / "current").exists():
        (record / "current").unlink()
    if (record / "runs").exists():
        (record / "runs").rename(former)
    (arrived / "runs").rename(record / "runs")
    for name in _SINGLE_FILES:
        write_whole(record / name, (arrived / name).read_bytes(), sync=True)
