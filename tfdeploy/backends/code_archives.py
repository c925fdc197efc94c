"""The code of the present run of each cluster that is updated from this computer: what its submission reads.

An update stores the code of its run when the run is planned, because the folder may change meanwhile. A controller that was lost gets
it again. The archives are in the user's state folder.
"""

import io
import shutil
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ..agent.system.files import write_whole
from ..errors import BackendError
from ..paths import cluster_folder, make_private, state_folder

_UNREADABLE = (OSError, zipfile.BadZipFile, ValueError, NotImplementedError, EOFError, zlib.error)
"""What reading a damaged archive raises."""


def store(cluster: Mapping[str, object], name: str, archive: bytes, present: str = "") -> None:
    """Store a code archive under its content hash. Of the others of this cluster, only that of the `present` run stays. A disk that is
    full or cannot be written is ignored."""
    folder = _folder(cluster)
    with suppress(OSError, BackendError):
        make_private(folder.parent)
        make_private(folder)
        write_whole(folder / f"{name}.zip", archive, mode=0o600)
        for path in folder.glob("*.zip"):
            if path.stem not in (name, present):
                path.unlink(missing_ok=True)


def load(cluster: Mapping[str, object], name: str) -> bytes | None:
    """The stored archive of this name; None if there is none that is whole."""
    try:
        archive = (_folder(cluster) / f"{name}.zip").read_bytes()
        with zipfile.ZipFile(io.BytesIO(archive)) as files:
            return archive if files.testzip() is None else None
    except _UNREADABLE:
        return None


def delete(cluster: Mapping[str, object]) -> None:
    """Delete the archives of a cluster that was destroyed."""
    shutil.rmtree(_folder(cluster), ignore_errors=True)


def _folder(cluster: Mapping[str, object]) -> Path:
    return state_folder() / "code" / cluster_folder(cluster)
