"""The artifacts in the user's copy of a record: fetched in parts from the controller, and checked by their hashes.

What the copy has is deleted only when something complete replaces it, or by a limit that the manifest states.
"""

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..agent.files import sha256_of
from ..agent.record.artifact_manifest import (
    ArtifactList,
    ManifestArtifact,
    ManifestFile,
    is_complete,
    load_manifest,
    save_manifest,
)
from ..agent.record.artifact_precedence import remaining
from ..agent.record.artifact_store import CLUSTER_BYTES, DRAFT_FOLDER, remove_files, store_draft
from ..agent.record.artifacts import CLUSTER_LIMIT, RUN_LIMIT
from ..agent.transport.rpc import CallError
from .controller_calls import ControllerApi

OBSERVATION_SECONDS = 3.0
"""How long one observation fetches artifacts. What is left is fetched by the next one, and before a cluster is deleted."""

_PART = 8 << 20

_TRIES = 3
"""How often a file is fetched if its content does not have the hash of the manifest."""

_MAX_FILES = 100_000
"""A copy has at most so many files of one run, of at most `CLUSTER_BYTES`, whatever the cluster lists."""


def copy_artifacts(
    controller: ControllerApi, run_folder: Path, manifest: dict[str, Any] | None, seconds: float = float("inf")
) -> bool:
    """Fetch what the copy of a run does not have yet, for so many seconds; whether it has everything.

    Raises:
        ConnectionError, CallError: the controller does not respond, or refuses the call.
        OSError: the copy cannot be read or written.
    """
    wanted = _parsed(manifest)
    if wanted is None or not run_folder.exists():
        return True
    copy = _Copy(run_folder, wanted)
    deadline = time.monotonic() + seconds
    for artifact in _within_limits(wanted):
        if artifact in copy.pending and not all(
            copy.has(file) or _fetch(controller, run_folder, file, lambda: time.monotonic() >= deadline)
            for file in artifact.files
        ):
            return False
        copy.store(artifact)
    if not copy.pending:
        shutil.rmtree(run_folder / DRAFT_FOLDER, ignore_errors=True)
    return not copy.pending


def _within_limits(wanted: ArtifactList) -> Iterator[ManifestArtifact]:
    size = count = 0
    for artifact in wanted.artifacts:
        size, count = size + artifact.size, count + len(artifact.files)
        if size <= CLUSTER_BYTES and count <= _MAX_FILES:
            yield artifact


class _Copy:
    """What the copy of one run has, and what is to come."""

    def __init__(self, run_folder: Path, wanted: ArtifactList) -> None:
        self._folder, self._wanted = run_folder, wanted
        before = load_manifest(run_folder)
        removed = {(item.name, item.machine) for item in wanted.left_out if item.reason in (CLUSTER_LIMIT, RUN_LIMIT)}
        stored = [item for item in before.artifacts if is_complete(run_folder, item)]
        self._save(
            before, [item for item in stored if item in wanted.artifacts or (item.name, item.machine) not in removed]
        )

    @property
    def pending(self) -> list[ManifestArtifact]:
        """What is to be fetched."""
        return self._manifest.pending

    def has(self, file: ManifestFile) -> bool:
        """Whether this version of the file is stored."""
        return file in self._manifest.files

    def store(self, artifact: ManifestArtifact) -> None:
        """Store an artifact that has arrived, in place of what it replaces."""
        if artifact not in self.pending:
            return
        for file in artifact.files:
            if not self.has(file):
                store_draft(_draft(self._folder, file), self._folder / "artifacts", file.name)
        self._save(self._manifest, [*remaining(self._manifest.artifacts, artifact), artifact])

    def _save(self, before: ArtifactList, artifacts: list[ManifestArtifact]) -> None:
        listed = self._wanted.artifacts
        ordered = [*(it for it in artifacts if it not in listed), *(it for it in listed if it in artifacts)]
        pending = [artifact for artifact in listed if artifact not in artifacts]
        self._manifest = replace(self._wanted, artifacts=ordered, pending=pending)
        if self._manifest != before:
            save_manifest(self._folder, self._manifest)
        names = {file.name for file in self._manifest.files}
        remove_files(self._folder / "artifacts", [file.name for file in before.files if file.name not in names])


def _parsed(manifest: dict[str, Any] | None) -> ArtifactList | None:
    """The manifest; None where the controller has none, or one that names files outside of the record."""
    try:
        return ArtifactList.from_dict(manifest) if manifest else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _draft(run_folder: Path, file: ManifestFile) -> Path:
    """Where a version of a file arrives."""
    identity = f"{file.name} {file.size} {file.version} {file.sha256}"
    return run_folder / DRAFT_FOLDER / f"{hashlib.sha256(identity.encode()).hexdigest()[:40]}.draft"


def _fetch(controller: ControllerApi, run_folder: Path, file: ManifestFile, is_over: Callable[[], bool]) -> bool:
    """Fetch a file, and continue what an earlier call has begun; whether it is complete."""
    draft = _draft(run_folder, file)
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
            if len(data) > min(_PART, file.size - end):
                raise CallError(f"the controller returned {len(data)} bytes of {file.name}, more than it lists")
            with draft.open("ab") as content:
                content.write(data)
        if draft.stat().st_size == file.size and file.sha256 in ("", sha256_of(draft)):
            return True
        draft.unlink()
    return False
