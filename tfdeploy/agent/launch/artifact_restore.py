"""The artifacts of a run fill an empty `train_dir`: the newest checkpoint, from which the program continues on another machine.

The launchers of one machine share `train_dir`: the first of them does it, and the others wait. Everything arrives in another folder
first; the file `checkpoint`, by which TensorFlow finds the newest one, gets its name last. A folder with other files is left alone.

What a machine has restored of its own run is not uploaded again while it is unchanged: the record has it, or a newer one of another
machine. Such files have the time of `.tfdeploy-restored`.
"""

import fcntl
import os
import shutil
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Iterator, List, Sequence
from urllib.parse import quote

from ..record.artifact_selection import OWN_FILES, Artifact
from ..record.restorable import RestorableFile, restored_path
from ..record.stored_artifact import FILES
from ..system.files import sha256_of
from ..wire.rpc import Client

_DRAFTS = f"{OWN_FILES}restore"
_RESTORED = f"{OWN_FILES}restored"

_PAST = 60
"""Restored files have a time in the past, so that none is written by a program in the same second."""

_CHECKPOINT = "checkpoint"
_SECONDS = 120.0
"""So long one call may take."""


def restore(controller: str, token: str, run_id: str, train_dir: str) -> None:
    """Fill `train_dir` from the record's artifacts of this run, where it is an empty folder of this machine.

    Raises:
        OSError, CallError: the controller does not respond, or the folder cannot be written. The next call begins again.
        ValueError: a file arrived damaged.
    """
    if "://" in train_dir:
        return
    folder = Path(train_dir)
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        is_empty = all(path.name.startswith(OWN_FILES) for path in folder.iterdir())
        if not is_empty and not (folder / _DRAFTS).exists():
            return
        with Client(controller, token, _SECONDS) as client:
            listing = client.json("GET", f"/restore/{run_id}")
            files = [RestorableFile(**item) for item in listing["files"]]
            if files:
                _fill(client, f"/restore/{run_id}", files, folder)
                if listing["is_own"]:
                    _note_restored(folder, files)
                shutil.rmtree(str(folder / _DRAFTS), ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a lock on the folder itself, which needs no file in it."""
    descriptor = os.open(str(folder), os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _fill(client: Client, route: str, files: List[RestorableFile], folder: Path) -> None:
    drafts = folder / _DRAFTS
    shutil.rmtree(str(drafts), ignore_errors=True)
    drafts.mkdir()
    for file in files:
        draft = restored_path(drafts, file.path)
        draft.parent.mkdir(parents=True, exist_ok=True)
        client.download(f"{route}/{quote(file.path)}", draft)
        if draft.stat().st_size != file.size or sha256_of(draft) != file.sha256:
            raise ValueError(f"{file.path} arrived damaged")
    for file in sorted(files, key=lambda file: Path(file.path).name == _CHECKPOINT):
        target = restored_path(folder, file.path)
        target.parent.mkdir(parents=True, exist_ok=True)
        restored_path(drafts, file.path).replace(target)


def _note_restored(folder: Path, files: Sequence[RestorableFile]) -> None:
    (folder / _RESTORED).touch()
    restored_at = int(time.time()) - _PAST
    for name in (_RESTORED, *(file.path for file in files)):
        os.utime(folder / name, (restored_at, restored_at))


def without_restored(folder: Path, artifacts: Sequence[Artifact]) -> Iterator[Artifact]:
    """These artifacts of a `train_dir`, without those that were restored there and are unchanged."""
    marker = folder / _RESTORED
    restored = str(marker.stat().st_mtime_ns) if marker.exists() else ""
    for artifact in artifacts:
        changed = [file for file in artifact.files if file.text is None and file.version != restored]
        if changed:
            yield replace(artifact, files=changed) if artifact.kind == FILES else artifact
