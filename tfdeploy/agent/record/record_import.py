"""The record that a controller is given: of a run that has moved here, or its own, which was lost with its disk. The run continues with
its states, events, logs and artifacts.

The list of its files arrives first, then the ranges that are missing here. Once all hashes and names were checked, it becomes the
record. So an import that was cut off continues, and one that failed is repeated. A controller with runs takes none: what a run that
has moved away has left is emptied first.

| folder in `import` | content |
|---|---|
| `record` | what has arrived |
| `whole` | the same once it was checked, until it is in its place |
"""

import hashlib
import json
import os
import shutil
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, List, Sequence

from .. import events
from ..control import move
from ..events import Event
from ..files import sha256_of, write_whole
from ..json_data import JsonData
from .artifact_manifest import (
    MANIFEST,
    ArtifactList,
    ManifestArtifact,
    load_manifest,
    remaining,
    save_manifest,
    size_of,
)
from .artifact_store import remove_files
from .record import Record
from .record_files import (
    PART,
    SINGLE_FILES,
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
from .run_folders import RunRefused
from .stored_artifact import NOT_COPIED, LeftOut

_FOLDER, _LIST = "import", "list.json"
"""The folder in the record with what has arrived so far."""

_LOCK = threading.Lock()
"""A user who did not wait for the end of an import may begin it again meanwhile."""


@dataclass(frozen=True)
class ImportRequest(JsonData):
    """What has arrived, once all has."""

    sha256: str
    """The hash of the list of files."""
    copied_at: float
    """The time at which the copy ends."""
    is_moved: bool = False
    """Whether it is the record of another place. Else this controller has lost it with its disk, and its launchers may still run."""
    returns: bool = False
    """Whether the run was here before: then it continues here also where it has failed at the other place."""


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
    """Finish an import that was cut off after all was checked. The file that names the current run is the last one."""
    whole, runs = record / _FOLDER / "whole", record / "runs"
    if whole.exists() and not (record / "current").exists():
        if (whole / "runs").exists():
            shutil.rmtree(str(runs), ignore_errors=True)  # what an emptying has left that was cut off
            (whole / "runs").rename(runs)
        for path in (whole / name for name in SINGLE_FILES):
            if path.exists():
                write_whole(record / path.name, path.read_bytes(), sync=True)
    shutil.rmtree(str(whole), ignore_errors=True)


def empty(record: Record, record_id: str, moves: int) -> None:
    """Delete the runs of a record whose run has moved away. `moves` is that of its continuation.

    Raises:
        RunRefused: it is another record, or its run has not moved away.
    """
    run = record.current()
    if run is None:
        return
    if record.record_id() != record_id:
        raise RunRefused("the record here is another one, so it is not emptied")
    if run.result is None or run.moves >= moves:
        raise RunRefused("the run has not moved away from here, so its record is not emptied")
    with _LOCK:
        (record.folder / "current").unlink()
        shutil.rmtree(str(record.folder / "runs"), ignore_errors=True)


def _is_other(path: Path, file: RecordFile) -> bool:
    """Whether what has arrived earlier is not of this file. What is large is compared later."""
    size = size_of(path)
    is_whole = size == file.size and size <= PART
    return size > file.size or (is_whole and sha256_of(path) != file.sha256)


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
            with path.open("r+b" if size else "wb") as file:
                file.truncate(part.offset)
                file.seek(part.offset)
                file.write(data)


def finish(record: Record, request: ImportRequest, now: float) -> None:
    """Make what has arrived the record.

    Raises:
        RunRefused: the record here has runs.
        ValueError: what has arrived is not whole, or has names that a record does not have.
        OSError: the disk is full. The next `begin`, or the next controller, does the rest.
    """
    folder = record.folder / _FOLDER
    with _LOCK:
        recover(record.folder)
        if record.current() is not None:
            raise RunRefused("the record here has runs already")
        arrived, files = Record(folder / "record"), _complete(folder, request)
        run = arrived.current()
        if run is None:
            raise ValueError("the record that was imported has no current run")
        _correct_artifacts(arrived, files)
        if request.is_moved:
            _mark_moved(arrived, run.spec.id, request.returns, now)
        restored = Event(events.RECORD_RESTORED, now, delay=max(0.0, now - request.copied_at))
        arrived.add_events(run.spec.id, [restored])
        arrived.folder.rename(folder / "whole")
        recover(record.folder)
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


def _correct_artifacts(arrived: Record, files: Sequence[RecordFile]) -> None:
    """List as stored what has the hashes of its files, and the rest as left out: what has copied them may have crashed between them and
    the list of them, or its source does not respond."""
    for run_id in arrived.runs():
        folder, prefix = arrived.run_folder(run_id), f"runs/{run_id}/artifacts/"
        found = {file.name[len(prefix) :]: file for file in files if file.name.startswith(prefix)}
        manifest = load_manifest(folder)
        stored = [item for item in manifest.artifacts if _is_stored(item, found, is_listed=True)]
        newer = [item for item in manifest.pending if item.files and _is_stored(item, found, is_listed=False)]
        lost = [item for item in manifest.artifacts if item not in stored]
        for item in newer:
            stored = [*remaining(stored, item), item]
        for item in manifest.pending:
            lost = list(remaining(lost, item))
        lacking = [*lost, *(item for item in manifest.pending if item not in newer)]
        left_out = [LeftOut(item.name, item.size, NOT_COPIED, item.machine) for item in lacking]
        corrected = ArtifactList(stored, [*manifest.left_out, *left_out])
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


def _mark_moved(arrived: Record, current: str, returns: bool, now: float) -> None:
    for run_id in arrived.runs():
        run = arrived.load(run_id)
        if run is not None:
            move.arrive(run)
            if run_id == current:
                run.moves += 1
                move.stop_until_submitted(run, returns, now)
            arrived.save_other(run)
            with suppress(FileNotFoundError):  # the artifacts of the oldest runs are deleted first
                os.utime(str(arrived.run_folder(run_id) / MANIFEST), (run.submitted_at, run.submitted_at))
