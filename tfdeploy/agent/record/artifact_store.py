"""The artifacts in a controller's record. A launcher lists the files that it has, appends parts of them, stores each artifact that has
arrived, and ends the upload.

A file arrives in `runs/ID/artifacts.draft`, where an interrupted upload of its machine continues. Once all files of an artifact are
whole and have their hashes, the list has the artifact as pending; they get their names below `runs/ID/artifacts`, and then it is listed
as stored. All that is known of an upload is in these files.
"""

import hashlib
import json
import os
import shutil
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Collection, Dict, List, Sequence, Tuple

from ..system.files import append, sha256_of
from .artifact_manifest import (
    MANIFEST,
    ArtifactList,
    ManifestArtifact,
    ManifestFile,
    accepted,
    excess,
    is_complete,
    load_manifest,
    read_artifact,
    refuse_names,
    remaining,
    save_manifest,
    size_of,
)
from .stored_artifact import CLUSTER_LIMIT, MAX_BYTES, MAX_FILES, RUN_LIMIT, LeftOut

DRAFT_FOLDER = "artifacts.draft"

CLUSTER_BYTES = 20 << 30
"""The artifacts of all runs of a cluster have at most so many bytes: those of the oldest runs are deleted first."""

Drafts = Dict[str, Tuple[str, int]]
"""The files that are wanted from a machine: the name of each to that of its draft, and how many bytes of it have arrived."""


def store_draft(draft: Path, folder: Path, name: str) -> None:
    """Give a file that has arrived its name in `folder`, in one step; what is in its place is removed."""
    target = folder / name
    for parent in list(target.relative_to(folder).parents)[-2::-1]:
        if (folder / parent).is_file():
            (folder / parent).unlink()
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_dir():
        shutil.rmtree(str(target))
    draft.replace(target)


def remove_files(folder: Path, names: Sequence[str]) -> None:
    """Remove these files, and the folders that are empty then."""
    for name in names:
        path = folder / name
        with suppress(OSError):
            path.unlink()
        for parent in path.relative_to(folder).parents:
            if parent.name:
                with suppress(OSError):
                    (folder / parent).rmdir()


def draft_of(run_folder: Path, file: ManifestFile, machine: str = "") -> Path:
    """Where a version of a file arrives from a machine. The name has its size, beyond which nothing is appended."""
    identity = _short_hash(json.dumps(file.identity))
    return run_folder / DRAFT_FOLDER / f"{_short_hash(machine)}-{identity}-{file.size}.draft"


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def remove_drafts(run_folder: Path, kept: Collection[Path] = (), machine: str = "") -> None:
    """Delete what has arrived of other files than these: a checkpoint may be replaced before all of it is here."""
    for path in (run_folder / DRAFT_FOLDER).glob(f"{_short_hash(machine)}-*.draft"):
        if path not in kept:
            path.unlink()
    with suppress(OSError):
        (run_folder / DRAFT_FOLDER).rmdir()


def save_artifacts(run_folder: Path, before: ArtifactList, after: ArtifactList) -> None:
    """Save a manifest, and delete the files that it does not list any more."""
    if after != before:
        save_manifest(run_folder, after)
    names = {file.name for file in after.files}
    remove_files(run_folder / "artifacts", [file.name for file in before.files if file.name not in names])


class ArtifactStore:
    """The artifacts in a controller's record."""

    def __init__(self, runs: Path) -> None:
        """`runs` is the folder of the runs."""
        self._runs = runs
        self._lock = threading.Lock()
        for manifest in runs.glob(f"*/{MANIFEST}"):
            with suppress(OSError):  # a manifest that cannot be read; a full disk
                _finish(manifest.parent)

    def begin(
        self, run_id: str, machine: str, listed: List[Dict[str, Any]], others: Collection[str] = ()
    ) -> List[Drafts]:
        """List what is about to be uploaded; what is wanted of each artifact. What others of the run's machines upload now of a storage
        that they share is not wanted a second time.

        Raises:
            ValueError, KeyError, TypeError: it is not valid, or beyond the limits.
        """
        artifacts = [read_artifact({**item, "machine": machine, "attempt": 0}) for item in listed]
        files = [file for artifact in artifacts for file in artifact.files]
        refuse_names([file.name for file in files])
        if (
            len(files) > MAX_FILES
            or any(file.size < 0 for file in files)
            or sum(file.size for file in files) > MAX_BYTES
        ):
            raise ValueError(f"a run has at most {MAX_FILES} files with {MAX_BYTES} bytes")
        with self._lock:
            folder, wanted = self._runs / run_id, []
            lacking = set(_lacking(folder, load_manifest(folder), files))
            for artifact in artifacts:
                sent = [file for file in artifact.files if file in lacking]
                if all(any(draft_of(folder, file, other).exists() for other in others) for file in sent):
                    sent = []
                wanted.append(sent)
            drafts = [draft_of(folder, file, machine) for sent in wanted for file in sent]
            remove_drafts(folder, drafts, machine)
            for draft in drafts:
                append(draft, b"")
            return [_drafts(folder, machine, sent) for sent in wanted]

    def put(self, run_id: str, machine: str, name: str, offset: int, data: bytes) -> int:
        """Append a part to a draft; its end. A part that does not begin at the end is ignored.

        Raises:
            ValueError: the machine has not listed it.
        """
        draft = self._runs / run_id / DRAFT_FOLDER / f"{name}.draft"
        with self._lock:
            if not (name.startswith(_short_hash(machine)) and draft.exists()):
                raise ValueError(f"{name} is not listed")
            if draft.stat().st_size == offset and offset + len(data) <= int(name.rpartition("-")[2]):
                append(draft, data)
            return draft.stat().st_size

    def store(self, run_id: str, machine: str, attempt: int, item: Dict[str, Any]) -> Tuple[Drafts, bool]:
        """Store an artifact if all of its files have arrived: what is wanted of it else, and whether it is refused because another
        machine has stored these files. A file with another hash than in `item` arrives again.

        Raises:
            ValueError, KeyError, TypeError: it is not valid.
        """
        folder, artifact = self._runs / run_id, read_artifact({**item, "machine": machine, "attempt": attempt})
        refuse_names([file.name for file in artifact.files])
        whole = {file for file in artifact.files if _is_whole(draft_of(folder, file, machine), file)}
        with self._lock:
            manifest = load_manifest(folder)
            stored, lacking = _stored(manifest), _lacking(folder, manifest, artifact.files)
            arrived = {it for it in lacking if it in whole and size_of(draft_of(folder, it, machine)) == it.size}
            if len(arrived) < len(lacking):
                return _drafts(folder, machine, [file for file in lacking if file not in arrived]), False
            files = [file if file in arrived else stored[file.identity] for file in artifact.files]
            artifact = accepted(manifest.artifacts, replace(artifact, files=files))
            if artifact.files:
                save_manifest(folder, replace(manifest, pending=[artifact]))
                _store_files(folder, artifact)
                artifacts = [*remaining(manifest.artifacts, artifact), artifact]
                save_artifacts(folder, manifest, replace(manifest, artifacts=artifacts))
            return {}, not artifact.files

    def end(
        self, run_id: str, machine: str, names: Collection[str], left_out: List[LeftOut]
    ) -> Tuple[List[ManifestArtifact], List[LeftOut]]:
        """The upload of artifacts with these names has ended: which of them are stored, and what of the machine is left out. What the
        machine has no more stays, within the limits of a run: its disk may be another one, and the record may have the only copy."""
        with self._lock:
            folder = self._runs / run_id
            manifest = load_manifest(folder)
            own = [item for item in manifest.artifacts if item.machine == machine and item.name in names]
            artifacts = [*(item for item in manifest.artifacts if item not in own), *own]
            removed = excess(artifacts, machine)
            artifacts = [item for item in artifacts if item not in removed]
            left_out = [replace(item, machine=machine) for item in left_out]
            left_out += [LeftOut(item.name, item.size, RUN_LIMIT, machine) for item in removed]
            others = [item for item in manifest.left_out if item.machine != machine]
            save_artifacts(folder, manifest, replace(manifest, artifacts=artifacts, left_out=[*others, *left_out]))
            remove_drafts(folder, machine=machine)
            return [item for item in own if item not in removed], left_out

    def discard(self, run_id: str, machine: str) -> None:
        """Delete what has arrived of an upload that no launcher continues."""
        with self._lock:
            remove_drafts(self._runs / run_id, machine=machine)

    def remove_excess(self, *keep: str) -> List[str]:
        """Delete the artifacts of the oldest runs beyond `CLUSTER_BYTES`, except those of the runs to keep; the runs that had them."""
        with self._lock:
            manifests = sorted(self._runs.glob(f"*/{MANIFEST}"), key=lambda path: path.stat().st_mtime)
            sizes = {path.parent: _size(path.parent) for path in manifests}
            excess_bytes, removed = sum(sizes.values()) - CLUSTER_BYTES, []
            for folder, size in sizes.items():
                if excess_bytes > 0 and folder.name not in keep and size:
                    remove_artifacts(folder)
                    excess_bytes -= size
                    removed.append(folder.name)
            return removed


def _store_files(run_folder: Path, artifact: ManifestArtifact) -> None:
    """Give the files of an artifact that have arrived their names."""
    for file in artifact.files:
        draft = draft_of(run_folder, file, artifact.machine)
        if size_of(draft) == file.size:
            store_draft(draft, run_folder / "artifacts", file.name)


def _finish(run_folder: Path) -> None:
    """Store what the controller was about to store when it was killed."""
    manifest = load_manifest(run_folder)
    artifacts, folder = manifest.artifacts, run_folder / "artifacts"
    for item in manifest.pending:
        _store_files(run_folder, item)
        if is_complete(run_folder, item) and all(sha256_of(folder / it.name) == it.sha256 for it in item.files):
            artifacts = [*remaining(artifacts, item), item]
    if manifest.pending:
        save_artifacts(run_folder, manifest, replace(manifest, artifacts=artifacts, pending=[]))


def _stored(manifest: ArtifactList) -> Dict[Tuple[str, int, str], ManifestFile]:
    return {file.identity: file for file in manifest.files if file.sha256}


def _lacking(folder: Path, manifest: ArtifactList, files: Sequence[ManifestFile]) -> List[ManifestFile]:
    """Those files that the record does not have in this version."""
    stored = _stored(manifest)
    return [it for it in files if it.identity not in stored or size_of(folder / "artifacts" / it.name) != it.size]


def _drafts(folder: Path, machine: str, files: Sequence[ManifestFile]) -> Drafts:
    drafts = {file.name: draft_of(folder, file, machine) for file in files}
    return {name: (draft.stem, max(0, size_of(draft))) for name, draft in drafts.items()}


def _is_whole(draft: Path, file: ManifestFile) -> bool:
    """Whether a file has arrived, and is on the disk. One with another hash arrives again."""
    if size_of(draft) != file.size:
        return False
    with draft.open("rb") as content:
        os.fsync(content.fileno())
    is_whole = sha256_of(draft) == file.sha256
    if not is_whole:
        os.truncate(draft, 0)
    return is_whole


def remove_artifacts(folder: Path) -> None:
    """Delete the artifacts of a run, and list them as left out."""
    manifest = load_manifest(folder)
    removed = [LeftOut(item.name, item.size, CLUSTER_LIMIT, item.machine) for item in manifest.artifacts]
    save_manifest(folder, ArtifactList([], [*manifest.left_out, *removed]))
    for name in ("artifacts", DRAFT_FOLDER):
        shutil.rmtree(str(folder / name), ignore_errors=True)


def _size(run_folder: Path) -> int:
    """The size of the artifacts of a run; 0 where that cannot be read."""
    try:
        return load_manifest(run_folder).size
    except OSError:
        return 0
