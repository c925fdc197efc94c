"""Sends a file or a folder of a task as a tar archive, for `tfdeploy cp`.

The first member, `begin`, describes the path. After it come the files and folders, below `content`, each folder before what is in it.
The last member, `end`, names what was not copied, and what has changed meanwhile.
"""

import io
import json
import os
import stat
import sys
import tarfile
import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Dict, List, Optional, Tuple, Union

from ..model.json_data import JsonData
from .exec import program_context

BEGIN, CONTENT, END = "begin", Path("content"), "end"
"""The names of members; those of files and folders begin with `content`."""

WORK, TRAIN_DIR, ABSOLUTE = "work", "train_dir", "absolute"
"""Where a path begins: the working directory of the program, the run's `train_dir`, or `/`."""

FILE, FOLDER = "file", "folder"
MISSING, NO_PROGRAM, URL, REFUSED = "missing", "no-program", "url", "refused"
"""What the path is; the last four where there is nothing to copy."""

_BUFFER_BYTES = 1 << 20
_SUGGESTIONS = 20

_NO_TRAIN_DIR = (
    "the environment of the program has no TFDEPLOY_TRAIN_DIR: a program that changes its title may overwrite it"
)
_GENERATED = "it has no size, as in /proc; `tfdeploy exec` with `cat` prints it"


@dataclass(frozen=True)
class Begin(JsonData):
    """The path that is copied."""

    kind: str
    root: str = ""
    """Its real path; for one that does not exist, the nearest folder that does; for `URL`, the URL."""
    size: int = 0
    """The sum of the sizes of its files."""
    names: List[str] = field(default_factory=list)
    """What the nearest folder has, of a path that does not exist."""
    reason: str = ""


@dataclass(frozen=True)
class End(JsonData):
    """What did not arrive as it is."""

    grown: List[str] = field(default_factory=list)
    """Files that were sent up to the size that they had before."""
    changed: List[str] = field(default_factory=list)
    skipped: Dict[str, str] = field(default_factory=dict)
    """Name to the reason."""
    failed: Dict[str, str] = field(default_factory=dict)
    """Name to the reason."""


class _Padded:
    """A file that is read up to a size that was announced: with zeros where it has become shorter."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.error = ""

    def read(self, size: int) -> bytes:
        """So many bytes."""
        try:
            data = self._file.read(size)
        except OSError as error:
            self.error, data = error.strerror or str(error), b""
        return data.ljust(size, b"\0")


def archive_to_stdout(folder: Path, base: str, path: str) -> int:
    """Send the archive to this process's output as long as its input is open; the exit code. `folder` is the launcher's."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    with suppress(BrokenPipeError):
        send_archive(folder, base, path, sys.stdout.buffer)
        sys.stdout.flush()
    return 0


def _end_with_input() -> None:
    """End with the client: what an engine discards, because nobody reads it, could be written without end."""
    while os.read(0, 1 << 10):
        pass
    os._exit(1)


def send_archive(folder: Path, base: str, path: str, stream: BinaryIO) -> None:
    """Write the archive of a path. `folder` is that of the task's launcher; an absolute path needs none."""
    end = End()
    options: Any = {"format": tarfile.PAX_FORMAT, "bufsize": _BUFFER_BYTES, "copybufsize": _BUFFER_BYTES}
    with tarfile.open(mode="w|", fileobj=stream, **options) as archive:
        start = _start(folder, base)
        if isinstance(start, Begin):
            _send_json(archive, BEGIN, start)
            return
        root = Path(os.path.realpath(str(start / path)))
        begin = _begin(root)
        items = _items(root, end) if begin.kind in (FILE, FOLDER) else []
        size = sum(status.st_size for _, status in items if stat.S_ISREG(status.st_mode))
        _send_json(archive, BEGIN, replace(begin, size=size))
        for item, status in items:
            member = tarfile.TarInfo(str(CONTENT / item.relative_to(root)))
            member.mode = status.st_mode & 0o777
            if stat.S_ISDIR(status.st_mode):
                member.type = tarfile.DIRTYPE
                archive.addfile(member)
            else:
                _send_file(archive, member, item, _name(item, root), end)
        _send_json(archive, END, end)


def _start(folder: Path, base: str) -> Union[Path, Begin]:
    """Where a path begins, or what there is in place of that."""
    if base == ABSOLUTE:
        return Path("/")
    context = program_context(folder, {})
    if context is None:
        return Begin(NO_PROGRAM)
    train_dir = context.environment.get("TFDEPLOY_TRAIN_DIR", "")
    if base == TRAIN_DIR and "://" in train_dir:
        return Begin(URL, train_dir)
    if base == TRAIN_DIR and not train_dir:
        return Begin(REFUSED, reason=_NO_TRAIN_DIR)
    return Path(context.folder, train_dir if base == TRAIN_DIR else "")


def _begin(root: Path) -> Begin:
    """What a real path is."""
    try:
        status = root.stat()
        if stat.S_ISDIR(status.st_mode):
            next(root.iterdir(), None)  # raises an error where the folder cannot be read
            return Begin(FOLDER, str(root))
    except (FileNotFoundError, NotADirectoryError):
        parent = next(parent for parent in root.parents if parent.is_dir())
        return Begin(MISSING, str(parent), names=_suggestions(parent))
    except OSError as error:
        return Begin(REFUSED, str(root), reason=error.strerror or "")
    reason = _special(status)
    return Begin(REFUSED, str(root), reason=reason) if reason else Begin(FILE, str(root))


def _suggestions(folder: Path) -> List[str]:
    """What a folder has; nothing where it cannot be read."""
    with suppress(OSError):
        paths = islice(sorted(folder.iterdir()), _SUGGESTIONS)
        return [path.name + "/" * path.is_dir() for path in paths]
    return []


def _items(root: Path, end: End) -> List[Tuple[Path, os.stat_result]]:
    """A real path and all that is below it; each folder before what is in it. `end` gets what is left out."""

    def fail(error: OSError) -> None:
        end.failed[_name(Path(error.filename), root)] = error.strerror or str(error)

    paths = [root]
    for folder, folders, names in os.walk(str(root), onerror=fail) if root.is_dir() else ():
        paths += (Path(folder, name) for name in sorted(folders + names))
    return [(path, status) for path in paths if (status := _status(path, root, end)) is not None]


def _status(path: Path, root: Path, end: End) -> Optional[os.stat_result]:
    """The status of a file or folder that is copied; None for what is not, of which `end` gets the reason."""
    try:
        reason = _link_reason(path, root) if path.is_symlink() else _special(path.stat())
        if not reason:
            return path.stat()
        end.skipped[_name(path, root)] = reason
    except OSError as error:
        end.failed[_name(path, root)] = error.strerror or str(error)
    return None


def _name(path: Path, root: Path) -> str:
    """A path as messages name it."""
    return root.name if path == root else str(path.relative_to(root))


def _link_reason(path: Path, root: Path) -> str:
    """Why a link is not followed; empty where it is."""
    target = Path(os.path.realpath(str(path)))
    if root not in target.parents:
        return f"a link to {target}, outside of the folder"
    return "" if target.is_file() else f"a link to {target}, which is not a file"


def _special(status: os.stat_result) -> str:
    """What is neither a file nor a folder, in words; empty for these two."""
    if stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode):
        return ""
    kinds = ((stat.S_ISSOCK, "a socket"), (stat.S_ISFIFO, "a pipe"))
    return next((kind for is_kind, kind in kinds if is_kind(status.st_mode)), "a device")


def _send_file(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path, name: str, end: End) -> None:
    try:
        file: Any = path.open("rb")
    except OSError as error:
        end.failed[name] = error.strerror or str(error)
        return
    with file:
        before, padded = os.fstat(file.fileno()), _Padded(file)
        member.size = before.st_size
        archive.addfile(member, padded)  # type: ignore[arg-type]
        after = os.fstat(file.fileno())
        if padded.error:
            end.failed[name] = padded.error
        elif after.st_size > before.st_size:
            end.grown.append(name)
        elif (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            end.changed.append(name)
        elif not before.st_size and file.read(1):
            end.failed[name] = _GENERATED


def _send_json(archive: tarfile.TarFile, name: str, data: JsonData) -> None:
    content = json.dumps(data.to_dict()).encode()
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))
