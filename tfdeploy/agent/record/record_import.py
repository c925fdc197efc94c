"""The import of another controller's record: a run that has moved continues with its states, events, logs and artifacts.

The record travels as one tar archive in parts. It replaces the record here in one step, after its hash and its names were checked; an
import that was cut off begins again.
"""

import os
import shutil
import tarfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

from .. import events
from ..control import move
from ..events import Event
from ..files import sha256_of, write_whole
from ..launch.workdir import RunRefused
from ..run_state import RunState
from . import artifact_precedence
from .artifact_manifest import ArtifactList, is_complete, load_manifest, save_manifest
from .artifacts import NOT_COPIED, LeftOut, is_valid_name
from .record import NAME, Record

PART_BYTES = 16 * 1024 * 1024
_PIECE = 1024 * 1024

_FOLDER = "import"
"""The folder in the record with what has arrived so far."""

_SINGLE_FILES = ("format", "record_id", "current")
_PARTS_OF_A_RUN = 3
"""`runs`, the id of the run, and a name in its folder."""
_LEFT_OUT = ("metrics.json", "progress.json", "artifacts.draft")
"""In the folder of a run: what observers write again, and what has arrived of unfinished uploads."""


@dataclass(frozen=True)
class ImportRequest:
    """What the parts of an archive are, once all have arrived. `origin` and `place` are for the event: backends, or what has replaced
    what."""

    size: int
    sha256: str
    origin: str
    place: str
    step: int = 0
    """The last step that the run has logged; 0 for none."""
    is_same_place: bool = False
    """The record was copied away before machines of this place were replaced, and returns."""
    keeps_train_dir: bool = False
    """The new machines see the former `train_dir` too."""

    def to_dict(self) -> Dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> "ImportRequest":
        """From JSON. Fields of a newer version are ignored."""
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})


def archive_parts(folder: Path) -> Iterator[bytes]:
    """The archive of a record, in parts of about `PART_BYTES`.

    Raises:
        OSError: a file cannot be read.
    """
    part = bytearray()
    Record(folder).record_id()  # it is created when it is read first
    for block in _blocks(folder):
        part += block
        if len(part) >= PART_BYTES:
            yield bytes(part)
            part.clear()
    yield bytes(part)


def _blocks(folder: Path) -> Iterator[bytes]:
    """The archive in pieces that fit into memory: `tarfile` itself would write a file at once."""
    for path in _files(folder):
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            item = tarfile.TarInfo(path.relative_to(folder).as_posix())
            item.size, item.mtime = status.st_size, int(status.st_mtime)
            yield item.tobuf(tarfile.PAX_FORMAT)
            for position in range(0, item.size, _PIECE):
                wanted = min(_PIECE, item.size - position)
                data = file.read(wanted)
                if len(data) < wanted:
                    raise OSError(f"{path} became shorter while it was read")
                yield data
            yield b"\0" * (-item.size % tarfile.BLOCKSIZE)
    yield b"\0" * (2 * tarfile.BLOCKSIZE)


def _files(folder: Path) -> List[Path]:
    """The files of a record that travel: no links, no drafts, and nothing that an import refuses."""
    single = [folder / name for name in _SINGLE_FILES]
    below = sorted((folder / "runs").rglob("*"))
    return [path for path in (*single, *below) if path.is_file() and not path.is_symlink() and _travels(path, folder)]


def _travels(path: Path, folder: Path) -> bool:
    parts = path.relative_to(folder).parts
    if len(parts) < _PARTS_OF_A_RUN:
        return True
    is_artifact = parts[2] == "artifacts"
    is_draft = path.name.startswith(".") and path.name.endswith(".draft")
    is_left_out = parts[2] in _LEFT_OUT or (is_draft and not is_artifact)
    return not is_left_out and _is_name(path.relative_to(folder).as_posix())


def put(record: Path, position: int, data: bytes) -> int:
    """Store a part of the archive; the archive's size so far. Position 0 begins again.

    Raises:
        ValueError: parts before this one are missing.
        OSError: the disk is full.
    """
    folder = record / _FOLDER
    if position == 0:
        shutil.rmtree(str(folder), ignore_errors=True)
        folder.mkdir(parents=True)
    archive = folder / "record.tar"
    size = archive.stat().st_size if archive.exists() else 0
    if position > size:
        raise ValueError(f"the import has {size} bytes, and this part begins at {position}")
    with archive.open("r+b" if archive.exists() else "wb") as file:
        file.truncate(position)
        file.seek(position)
        file.write(data)
    return position + len(data)


def finish(record: Record, run: Optional[RunState], request: ImportRequest, now: float) -> None:
    """Replace the record by the one that has arrived. `run` is the current run here.

    Raises:
        RunRefused: the record here has runs that the one which has arrived does not continue.
        ValueError: the archive is not whole, or has names that a record does not have.
        OSError: the disk is full.
    """
    folder = record.folder / _FOLDER
    archive = folder / "record.tar"
    _check(archive, request)
    arrived = folder / "record"
    shutil.rmtree(str(arrived), ignore_errors=True)
    _extract(archive, arrived)
    _refuse_other(record, run, Record(arrived), request)
    _mark_arrived(Record(arrived), run or record.current(), request, now)
    _retain(record, Record(arrived))
    _install(arrived, record.folder)
    shutil.rmtree(str(folder), ignore_errors=True)


def _check(archive: Path, request: ImportRequest) -> None:
    size = archive.stat().st_size
    if (size, sha256_of(archive)) != (request.size, request.sha256):
        raise ValueError(f"the import has {size} bytes with another hash than the record of {request.size} bytes")


def _extract(archive: Path, folder: Path) -> None:
    folder.mkdir()
    try:
        with tarfile.open(str(archive), mode="r:") as items:
            for item in items:
                source = items.extractfile(item) if item.type in (tarfile.REGTYPE, tarfile.AREGTYPE) else None
                if source is None or not _is_name(item.name):
                    raise ValueError(f"{item.name!r} is not a file of a record")
                path = folder / item.name
                path.parent.mkdir(parents=True, exist_ok=True)
                if path.exists():
                    raise ValueError(f"{item.name!r} is twice in the import")
                with path.open("wb") as target:
                    shutil.copyfileobj(source, target)
                os.utime(str(path), (item.mtime, item.mtime))
    except tarfile.TarError as error:
        raise ValueError(f"the import is damaged: {error}") from None


def _is_name(name: str) -> bool:
    """Whether a record may have a file of this name: relative, without `..`, and below `runs/ID/` unless it is a single file."""
    parts = name.split("/")
    if name in _SINGLE_FILES:
        return True
    is_in_run = len(parts) >= _PARTS_OF_A_RUN and parts[0] == "runs" and bool(NAME.fullmatch(parts[1]))
    below = parts[3:] if parts[2:3] == ["artifacts"] else parts[2:]
    return is_in_run and is_valid_name("/".join(below))


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
