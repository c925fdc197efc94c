"""The code of the runs that were submitted from this computer: for `tfdeploy diff`, and for the submission itself.

The archives are in the user's state folder. An update stores the code of its run when the run is planned, and the submission reads it,
because the folder may change meanwhile.
"""

import io
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

from .agent.files import write_whole
from .errors import BackendError
from .paths import make_private, remove_oldest, state_folder

_MAX_ARCHIVES, _MAX_BYTES = 200, 200 * 1024 * 1024
"""How many archives are stored, and how many bytes of them; the oldest are deleted first. A larger one is not stored."""

UNREADABLE = (OSError, zipfile.BadZipFile, ValueError, NotImplementedError, EOFError, zlib.error)
"""What reading a damaged archive raises."""


def store(name: str, archive: bytes) -> None:
    """Store a code archive under its content hash. A disk that is full or cannot be written is ignored."""
    path = _path(name)
    with suppress(OSError, BackendError):
        if len(archive) <= _MAX_BYTES:
            make_private(path.parent)
            write_whole(path, archive, mode=0o600)
            remove_oldest(path.parent, "*.zip", _MAX_ARCHIVES, _MAX_BYTES)


def find(name: str) -> Path | None:
    """The path of the stored archive of this name; None if there is none."""
    path = _path(name)
    return path if path.exists() else None


def load(name: str) -> bytes | None:
    """The stored archive of this name; None if there is none that is whole."""
    try:
        archive = _path(name).read_bytes()
        with zipfile.ZipFile(io.BytesIO(archive)) as files:
            return archive if files.testzip() is None else None
    except UNREADABLE:
        return None


def size(name: str) -> tuple[int, int]:
    """The number of files in a stored archive, and their size in bytes; 0 where there is none that can be read."""
    try:
        with zipfile.ZipFile(_path(name)) as archive:
            sizes = [item.file_size for item in archive.infolist()]
    except UNREADABLE:
        return 0, 0
    return len(sizes), sum(sizes)


def _path(name: str) -> Path:
    return state_folder() / "code" / f"{name}.zip"
