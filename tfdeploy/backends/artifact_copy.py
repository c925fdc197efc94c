"""The artifacts in the user's copy of a record: fetched in parts from the controller, and checked by their hashes."""

import hashlib
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..agent.artifact_manifest import ArtifactList, ManifestFile, load_manifest, save_manifest
from ..agent.artifact_store import DRAFT_FOLDER, remove_files, store_draft
from ..agent.files import sha256_of
from .controller_calls import ControllerApi

OBSERVATION_SECONDS = 3.0
"""How long one observation fetches artifacts. What is left is fetched by the next one, and before a cluster is deleted."""

_PART = 8 << 20

_TRIES = 3
"""How often a file is fetched if its content does not have the hash of the manifest."""


def copy_artifacts(
    controller: ControllerApi, run_folder: Path, manifest: dict[str, Any] | None, seconds: float = float("inf")
) -> bool:
    """Fetch what the copy of a run does not have yet, for so many seconds; whether it has everything.

    Raises:
        ConnectionError, CallError: the controller does not respond, or refuses the call.
        OSError: the copy cannot be written.
    """
    wanted = _parsed(manifest)
    present = load_manifest(run_folder)
    if wanted is None or not run_folder.exists():
        return True
    if wanted != present:
        names = {file.name for file in wanted.files}
        remove_files(run_folder / "artifacts", [file.name for file in present.files if file.name not in names])
        _remove_changed(run_folder, present, wanted)
        save_manifest(run_folder, wanted)
    deadline = time.monotonic() + seconds
    for file in wanted.files:
        if _is_present(run_folder, file):
            continue
        if not _fetch(controller, run_folder, file, lambda: time.monotonic() >= deadline):
            return False
    shutil.rmtree(run_folder / DRAFT_FOLDER, ignore_errors=True)
    return True


def _parsed(manifest: dict[str, Any] | None) -> ArtifactList | None:
    """The manifest; None where the controller has none, or one that names files outside of the record."""
    try:
        return ArtifactList.from_dict(manifest) if manifest else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _is_present(run_folder: Path, file: ManifestFile) -> bool:
    path = run_folder / "artifacts" / file.name
    return path.is_file() and path.stat().st_size == file.size


def _remove_changed(run_folder: Path, present: ArtifactList, wanted: ArtifactList) -> None:
    """Files that have another content now are fetched again, also where their size is the same."""
    before = {file.name: file for file in present.files}
    changed = [file.name for file in wanted.files if before.get(file.name) != file]
    remove_files(run_folder / "artifacts", changed)


def _fetch(controller: ControllerApi, run_folder: Path, file: ManifestFile, is_over: Callable[[], bool]) -> bool:
    """Fetch a file, and continue what an earlier call has begun; whether it is complete."""
    draft = (
        run_folder / DRAFT_FOLDER / f"{hashlib.sha256(f'{file.name} {file.sha256}'.encode()).hexdigest()[:40]}.draft"
    )
    draft.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(_TRIES):
        draft.touch()
        while (end := draft.stat().st_size) < file.size:
            if is_over():
                return False
            request = {"run_id": run_folder.name, "name": file.name, "offset": end, "size": _PART}
            data = controller.call("POST", "/artifact", json.dumps(request).encode())
            if not data:
                return False
            with draft.open("ab") as content:
                content.write(data)
        if draft.stat().st_size == file.size and file.sha256 in ("", sha256_of(draft)):
            store_draft(draft, run_folder / "artifacts", file.name)
            return True
        draft.unlink()
    return False
