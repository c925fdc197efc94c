"""The archive of the code of a planned run, on this computer until the run is submitted.

The program stores it in an update that has a new run, because the code folder may change before the process of the dynamic resources
submits the run: by an editor, or by the output of `pulumi up` itself.
"""

import time
from contextlib import suppress
from pathlib import Path

from ..agent.files import write_whole
from ..paths import cache_folder, make_private

_LONGEST_SECONDS = 24 * 3600.0
"""An archive of an update that never submitted its run is deleted by a later update."""


def store(cluster_id: str, code: str, archive: bytes) -> None:
    """Store the archive named `code`, for the next submission of that cluster."""
    folder = _folder()
    make_private(folder)
    for path in folder.iterdir():
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _LONGEST_SECONDS:
                path.unlink()
    write_whole(_path(cluster_id, code), archive, mode=0o600)


def load(cluster_id: str, code: str) -> bytes | None:
    """The stored archive; None where there is none."""
    try:
        return _path(cluster_id, code).read_bytes()
    except OSError:
        return None


def discard(cluster_id: str, code: str) -> None:
    """Delete the archive: the controller has it."""
    with suppress(OSError):
        _path(cluster_id, code).unlink()


def _folder() -> Path:
    return cache_folder() / "code"


def _path(cluster_id: str, code: str) -> Path:
    return _folder() / f"{cluster_id}-{code}.zip"
