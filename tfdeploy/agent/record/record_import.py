"""The import of another controller's record: a run that has moved continues with its states, events, logs and artifacts.
So does the run of a controller whose disk was lost: its successor gets what was copied of the record.

The list of its files arrives first, then the ranges that are missing here. Once all hashes and names were checked, the record that
replaces the one here is made beside what has arrived, with links to its large files. So an import that was cut off continues, and one
that failed is repeated.

| folder in `import` | content |
|---|---|
| `record` | what has arrived |
| `whole` | the same as it is to be here, with what only the record here has |
| `former` | the runs that `whole` replaces, until that is done |
"""

import hashlib
import json
import os
import shutil
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence

from .. import events
from ..control import move
from ..events import Event
from ..files import sha256_of, write_whole
from ..json_data import JsonData
from ..launch.workdir import RunRefused
from ..run_state import RunState
from . import artifact_manifest
from .artifact_manifest import (
    MANIFEST,
    ArtifactList,
    ManifestArtifact,
    is_complete,
    load_manifest,
    save_manifest,
    size_of,
)
from .artifact_store import remove_files
from .record import Record
from .record_files import (
    PART,
    STATE_FILES,
    Range,
    RecordFile,
    RecordList,
    check_run_state,
    is_record_file,
    list_files,
    read_ranges,
)
from .replica import divide, pack, unpack
from .stored_artifact import NOT_COPIED, LeftOut

_FOLDER, _LIST = "import", "list.json"
"""The folder in the record with what has arrived so far."""

_SINGLE_FILES = ("format", "record_id", "current")

_LOCK = threading.Lock()
"""A user who did not wait for the end of an import may begin it again meanwhile."""


@dataclass(frozen=True)
class ImportRequest(JsonData):
    """What has arrived, once all has. `origin` and `place` are backends, for the event."""

    sha256: str
    """The hash of the list of files."""
    origin: str
    place: str
    step: int = 0
    """The last step that the run has logged; 0 for none."""
    lost_at: float = 0.0
    """Set where the controller has lost this record with its disk: the time at which the copy ends. The run is not stopped: its
    launchers may still run."""


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
    """With the hash of what is in the file. The list of artifacts may have another one, as after a crash of what copied them."""
    return file if file.text is not None else file._replace(sha256=sha256_of(folder / file.name, file.size))


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
    arrived = record / _FOLDER / "record"
    with _LOCK:
        recover(record)
        write_whole(record / _FOLDER / _LIST, listed)
        listed_files = {file.name: file for file in files}
        _remove(arrived, lambda name, path: name not in listed_files or _is_other(path, listed_files[name]))
        ends = [(file, max(0, size_of(arrived / file.name))) for file in files if file.text is None]
    return [Range(file.name, end, file.size - end) for file, end in ends if end < file.size]


def recover(record: Path) -> None:
    """Undo the replacement of the runs that was cut off, or finish it if the new ones are in their place. What has arrived stays."""
    folder, runs = record / _FOLDER, record / "runs"
    if (folder / "former").exists() and not (folder / "whole/runs").exists():
        _set_single_files(folder / "whole", record)
    for path in sorted((folder / "former").glob("*")):
        if not (runs / path.name).exists():
            runs.mkdir(exist_ok=True)
            path.rename(runs / path.name)
    for name in ("former", "whole"):
        shutil.rmtree(str(folder / name), ignore_errors=True)


def _is_other(path: Path, file: RecordFile) -> bool:
    """Whether what has arrived earlier is not of this file, or is part of the record here by now. What is large is compared later."""
    size = size_of(path)
    is_whole = size == file.size and size <= PART
    return size > file.size or path.stat().st_nlink > 1 or (is_whole and sha256_of(path) != file.sha256)


def _remove(arrived: Path, condition: Callable[[str, Path], bool]) -> None:
    """Delete what has arrived earlier, where this condition holds."""
    files = {path.relative_to(arrived).as_posix(): path for path in arrived.rglob("*") if path.is_file()}
    remove_files(arrived, [name for name, path in files.items() if condition(name, path)])


def put(record: Path, content: bytes) -> None:
    """Store ranges of files.

    Raises:
        ValueError: they were damaged on their way, or what is before them is missing.
        OSError: the disk is full.
    """
    with _LOCK:
        for part, data in unpack(content):
            path = record / _FOLDER / "record" / part.name
            size = max(0, size_of(path))
            if not is_record_file(part.name) or part.offset > size:
                raise ValueError(f"{part.name} has {size} bytes, and this part begins at {part.offset}")
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and path.stat().st_nlink > 1:  # it is a file of the record here, too
                draft = record / _FOLDER / "draft"
                shutil.copyfile(str(path), str(draft))
                draft.replace(path)
            with path.open("r+b" if size else "wb") as file:
                file.truncate(part.offset)
                file.seek(part.offset)
                file.write(data)


def finish(record: Record, run: Optional[RunState], request: ImportRequest, now: float) -> None:
    """Replace the record by the one that has arrived. `run` is the current run here.

    Raises:
        RunRefused: the record here has runs that the one which has arrived does not continue.
        ValueError: the archive is not whole, or has names that a record does not have.
        OSError: the disk is full. The record here is as it was.
    """
    folder = record.folder / _FOLDER
    arrived, whole = folder / "record", folder / "whole"
    with _LOCK:
        recover(record.folder)
        files = _complete(folder, request)
        _refuse_other(record, run, Record(arrived), request)
        _make_whole(arrived, whole)
        _correct_artifacts(Record(whole), files)
        if request.lost_at:
            _mark_restored(Record(whole), request, now)
        else:
            _mark_arrived(Record(whole), run or record.current(), request, now)
        _retain(record, Record(whole))
        _install(whole, record.folder)
        shutil.rmtree(str(folder), ignore_errors=True)


def _complete(folder: Path, request: ImportRequest) -> List[RecordFile]:
    """Check what has arrived, and add the files whose content is in the list; the list."""
    content = (folder / _LIST).read_bytes()
    if hashlib.sha256(content).hexdigest() != request.sha256:
        raise ValueError("the import is that of another record")
    files = RecordList.from_dict(json.loads(content)).files
    lacking = []
    for file in files:
        path = folder / "record" / file.name
        if file.text is not None or not file.size:
            write_whole(path, file.text or "")
        elif size_of(path) != file.size or sha256_of(path) != file.sha256:
            path.unlink(missing_ok=True)
            lacking.append(file.name)
    if lacking:
        raise ValueError(f"{lacking[0]} has not arrived, or has another hash")
    names = {file.name for file in files}
    _remove(folder / "record", lambda name, _: name not in names)
    for path in (folder / "record").glob(f"runs/*/{STATE_FILES[0]}"):
        check_run_state(path.parent.name, _parsed(path))
    return files


def _parsed(path: Path) -> object:
    with suppress(ValueError, RecursionError):
        return json.loads(path.read_bytes())
    return None


def _make_whole(arrived: Path, whole: Path) -> None:
    """Copy what has arrived: what is changed before it is part of the record. What is large is linked."""

    def copy(source: str, target: str) -> None:
        is_large = Path(source).relative_to(arrived).parts[2:3] in (("artifacts",), ("logs",))
        (artifact_manifest.link_or_copy if is_large else shutil.copy2)(source, target)

    shutil.copytree(str(arrived), str(whole), copy_function=copy)


def _refuse_other(record: Record, run: Optional[RunState], arrived: Record, request: ImportRequest) -> None:
    current = arrived.current()
    if current is None:
        raise ValueError("the record that was imported has no current run")
    if run is None and record.current() is None:
        return
    own = run or record.current()
    if request.lost_at:
        raise RunRefused("the record here has runs already, so it was not lost")
    is_newer = own is not None and own.result is not None and current.moves > own.moves
    is_again = run is None and own is not None and bool(own.arrived_from) and current.moves >= own.moves
    if record.record_id() != arrived.record_id() or not (is_newer or is_again):
        raise RunRefused("the record here has runs already, and the one that was imported does not continue them")


def _correct_artifacts(whole: Record, files: Sequence[RecordFile]) -> None:
    """List as stored what has the hashes of its files: what has copied them may have crashed between them and the list of them."""
    for run_id in whole.runs():
        folder, prefix = whole.run_folder(run_id), f"runs/{run_id}/artifacts/"
        found = {file.name[len(prefix) :]: file for file in files if file.name.startswith(prefix)}
        manifest = load_manifest(folder)
        stored = [item for item in manifest.artifacts if _is_stored(item, found, is_listed=True)]
        newer = [item for item in manifest.pending if item.files and _is_stored(item, found, is_listed=False)]
        lost = [item for item in manifest.artifacts if item not in stored]
        for item in newer:
            stored = [*artifact_manifest.remaining(stored, item), item]
        for item in manifest.pending:
            lost = list(artifact_manifest.remaining(lost, item))
        pending = [*lost, *(item for item in manifest.pending if item not in newer)]
        corrected = ArtifactList(stored, manifest.left_out, pending)
        if corrected != manifest:
            save_manifest(folder, corrected)


def _is_stored(artifact: ManifestArtifact, found: Dict[str, RecordFile], is_listed: bool) -> bool:
    """Whether all files of an artifact are those that were found. Where it is listed as stored, its files may have no hash."""
    for file in artifact.files:
        own = found.get(file.name)
        is_unknown = is_listed and not file.sha256
        if own is None or own.size != file.size or not (is_unknown or own.sha256 == file.sha256):
            return False
    return True


def _mark_arrived(arrived: Record, own: Optional[RunState], request: ImportRequest, now: float) -> None:
    current = arrived.current()
    for run_id in arrived.runs():
        run = arrived.load(run_id)
        if run is not None:
            move.arrive(run, request.origin)
            if current is not None and run_id == current.spec.id:
                move.stop_until_submitted(run, own, now)
                moved = Event(events.RUN_MOVED, now, origin=request.origin, place=request.place, count=request.step)
                arrived.add_events(run_id, [moved])
            arrived.save_other(run)
            with suppress(FileNotFoundError):  # the artifacts of the oldest runs are deleted first
                os.utime(str(arrived.run_folder(run_id) / MANIFEST), (run.submitted_at, run.submitted_at))


def _mark_restored(arrived: Record, request: ImportRequest, now: float) -> None:
    """The run continues as after a restart of its controller."""
    run = arrived.current()
    if run is not None:
        arrived.add_events(run.spec.id, [Event(events.RECORD_RESTORED, now, delay=max(0.0, now - request.lost_at))])


def _retain(record: Record, arrived: Record) -> None:
    """Take over what only the record here has: earlier runs, and artifacts. What has arrived may be a copy that is not complete, of a
    place that does not respond."""
    for run_id in record.runs():
        source, target = record.run_folder(run_id), arrived.run_folder(run_id)
        if target.exists():
            artifact_manifest.retain(source, target)
        else:
            shutil.copytree(str(source), str(target), copy_function=artifact_manifest.link_or_copy)
    for run_id in arrived.runs():
        folder = arrived.run_folder(run_id)
        manifest = load_manifest(folder)
        complete = [item for item in manifest.artifacts if is_complete(folder, item)]
        lost = [item for item in (*manifest.artifacts, *manifest.pending) if item not in complete]
        if lost:
            left_out = [LeftOut(item.name, item.size, NOT_COPIED, item.machine) for item in lost]
            save_manifest(folder, ArtifactList(complete, [*manifest.left_out, *left_out]))


def _install(whole: Path, record: Path) -> None:
    """Replace the runs, all or none. After a crash in between, the next controller does the rest (`recover`)."""
    runs, former = record / "runs", record / _FOLDER / "former"
    runs.mkdir(exist_ok=True)
    runs.rename(former)
    try:
        (whole / "runs").rename(runs)
        _set_single_files(whole, record)
    except OSError:
        if not (whole / "runs").exists():
            runs.rename(whole / "runs")
        recover(record)
        raise
    former.rename(whole / "runs")


def _set_single_files(whole: Path, record: Path) -> None:
    """That which names the current run is the last one."""
    for path in (whole / name for name in _SINGLE_FILES):
        if path.exists():
            write_whole(record / path.name, path.read_bytes(), sync=True)
