"""The artifacts in a controller's record. A launcher lists the files that it has, appends parts of them, and ends the upload.

A file arrives in `runs/ID/artifacts.draft`, where an interrupted upload of its machine continues. Once all files of an artifact are
whole and have their hashes, they get their names below `runs/ID/artifacts`, and then the list has the artifact.
"""

import hashlib
import json
import os
import shutil
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Collection, Dict, List, Sequence, Set, Tuple

from ..files import append, sha256_of
from .artifact_manifest import (
    MANIFEST,
    ArtifactList,
    ManifestArtifact,
    ManifestFile,
    accepted,
    excess,
    load_manifest,
    read_artifact,
    refuse_names,
    remaining,
    save_manifest,
    size_of,
)
from .stored_artifact import CLUSTER_LIMIT, MAX_BYTES, MAX_FILES, OTHER_MACHINE, RUN_LIMIT, LeftOut

DRAFT_FOLDER = "artifacts.draft"

CLUSTER_BYTES = 20 << 30
"""The artifacts of all runs of a cluster have at most so many bytes: those of the oldest runs are deleted first."""

STORED = -1
"""In place of the number of bytes that have arrived of a file: it is whole, or not wanted from this machine."""


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
    """Where a version of a file arrives from a machine."""
    identity = json.dumps([file.name, file.size, file.version, file.sha256])
    return run_folder / DRAFT_FOLDER / f"{_short_hash(machine)}-{_short_hash(identity)}.draft"


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


@dataclass
class _Incoming:
    """A file that is arriving."""

    file: ManifestFile
    artifact: int
    draft: Path
    is_complete: bool = False
    is_stored: bool = False

    @property
    def end(self) -> int:
        """How many bytes have arrived, or `STORED`."""
        return STORED if self.is_complete else max(0, size_of(self.draft))

    def sha256(self) -> str:
        """The hash of what has arrived, which is on the disk then."""
        append(self.draft, b"")
        with self.draft.open("rb") as file:
            os.fsync(file.fileno())
        return sha256_of(self.draft)


class UploadUnknown(Exception):
    """The upload was not listed since the controller started."""


class _Upload:
    """What a machine has listed, and what has arrived of it."""

    def __init__(self, run_folder: Path, machine: str, artifacts: List[ManifestArtifact]) -> None:
        self.artifacts, self._folder = artifacts, run_folder
        self._items = [
            [_Incoming(file, number, draft_of(run_folder, file, machine)) for file in artifact.files]
            for number, artifact in enumerate(artifacts)
        ]
        self.incoming = [item for items in self._items for item in items]

    def note_stored(self) -> None:
        """Note what the record has already, and delete what has arrived of other files."""
        stored = {file.name: file for file in load_manifest(self._folder).files}
        for item in self.incoming:
            file = stored.get(item.file.name, item.file)
            is_same = (file.size, file.version) == (item.file.size, item.file.version)
            if is_same and file.sha256 and size_of(self._folder / "artifacts" / file.name) == file.size:
                item.file, item.is_complete, item.is_stored = file, True, True
            elif item.end > item.file.size:
                item.draft.unlink()

    def whole(self) -> List[ManifestArtifact]:
        """The artifacts whose files are all complete."""
        listed = zip(self.artifacts, self._items)
        return [artifact for artifact, items in listed if items and all(item.is_complete for item in items)]

    def store(self, number: int) -> None:
        """Store an artifact if all of its files are complete."""
        items = self._items[number]
        if not items or not all(item.is_complete for item in items):
            return
        manifest = load_manifest(self._folder)
        artifact = accepted(manifest.artifacts, replace(self.artifacts[number], files=[item.file for item in items]))
        names = {file.name for file in artifact.files}
        for item in items:
            if item.file.name in names and not item.is_stored:
                store_draft(item.draft, self._folder / "artifacts", item.file.name)
                item.is_stored = True
        if artifact.files and artifact not in manifest.artifacts:
            artifacts = [*remaining(manifest.artifacts, artifact), artifact]
            save_artifacts(self._folder, manifest, replace(manifest, artifacts=artifacts))


class ArtifactStore:
    """The artifacts in a controller's record."""

    def __init__(self, runs: Path) -> None:
        """`runs` is the folder of the runs."""
        self._runs = runs
        self._uploads: Dict[Tuple[str, str], _Upload] = {}
        self._lock = threading.Lock()

    def begin(
        self, run_id: str, machine: str, attempt: int, listed: List[Dict[str, Any]], others: Collection[str] = ()
    ) -> List[int]:
        """List what is about to be uploaded; how many bytes of each file are there already, or `STORED`. What others of the run's
        machines upload now of a storage that they share is not wanted a second time.

        Raises:
            ValueError, KeyError, TypeError: it is not valid, or beyond the limits.
        """
        artifacts = [read_artifact({**item, "machine": machine, "attempt": attempt}) for item in listed]
        files = [file for artifact in artifacts for file in artifact.files]
        refuse_names([file.name for file in files])
        if len(files) > MAX_FILES or any(file.size < 0 for file in files) or sum(it.size for it in files) > MAX_BYTES:
            raise ValueError(f"a run has at most {MAX_FILES} files with {MAX_BYTES} bytes")
        with self._lock:
            folder = self._runs / run_id
            unwanted = self._listed_by(run_id, others)
            upload = self._uploads[run_id, machine] = _Upload(folder, machine, artifacts)
            upload.note_stored()
            remove_drafts(folder, {item.draft for item in upload.incoming if not item.is_complete}, machine)
            for number in range(len(artifacts)):
                upload.store(number)
            is_wanted = [_identity(artifact) not in unwanted for artifact in artifacts]
            return [item.end if is_wanted[item.artifact] else STORED for item in upload.incoming]

    def _listed_by(self, run_id: str, machines: Collection[str]) -> Set[str]:
        uploads = [self._uploads[run_id, machine] for machine in machines if (run_id, machine) in self._uploads]
        return {_identity(artifact) for upload in uploads for artifact in upload.artifacts}

    def put(self, run_id: str, machine: str, index: int, offset: int, sha256: str, data: bytes) -> int:
        """Append a part to a file; its end, `STORED` when it is whole. `sha256` is the hash of the file, after its last part. A part
        that does not begin at the end is ignored; a file with another hash arrives again."""
        with self._lock:
            upload = self._uploads.get((run_id, machine))
            if upload is None or index >= len(upload.incoming):
                raise UploadUnknown
            item = upload.incoming[index]
            if item.end == offset and offset + len(data) <= item.file.size:
                append(item.draft, data)
            if not sha256 or item.end < item.file.size:
                return item.end
        actual = item.sha256()  # takes long for a large file
        with self._lock:
            if item.end >= 0 and actual != sha256:
                item.draft.unlink(missing_ok=True)
            elif item.end >= 0 and upload is self._uploads.get((run_id, machine)):
                item.is_complete, item.file = True, replace(item.file, sha256=actual)
                upload.store(item.artifact)
            return item.end

    def end(self, run_id: str, machine: str, left_out: List[LeftOut]) -> Tuple[List[ManifestArtifact], List[LeftOut]]:
        """The upload has ended: what it has stored, and what of the machine is left out. What the machine has no more stays, within
        the limits of a run: its disk may be another one, and the record may have the only copy."""
        with self._lock:
            folder = self._runs / run_id
            manifest = load_manifest(folder)
            upload = self._uploads.get((run_id, machine))
            whole = upload.whole() if upload else []
            names = {item.name for item in whole}
            own = [item for item in manifest.artifacts if item.machine == machine and item.name in names]
            artifacts = [*(item for item in manifest.artifacts if item not in own), *own]
            removed = excess(artifacts, machine)
            refused = [item for item in whole if item.name not in {stored.name for stored in own}]
            left_out = [replace(item, machine=machine) for item in left_out]
            for reason, items in ((OTHER_MACHINE, refused), (RUN_LIMIT, removed)):
                left_out += [LeftOut(item.name, item.size, reason, machine) for item in items]
            others = [item for item in manifest.left_out if item.machine != machine]
            artifacts = [item for item in artifacts if item not in removed]
            save_artifacts(folder, manifest, replace(manifest, artifacts=artifacts, left_out=[*others, *left_out]))
            remove_drafts(folder, machine=machine)
            self._uploads.pop((run_id, machine), None)
            return [item for item in own if item not in removed], left_out

    def discard(self, run_id: str, machine: str) -> None:
        """Delete what has arrived of an upload that no launcher continues."""
        with self._lock:
            self._uploads.pop((run_id, machine), None)
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


def _identity(artifact: ManifestArtifact) -> str:
    """The same on all machines that see the same versions of these files."""
    return json.dumps([artifact.kind, artifact.name, [(file.name, file.size, file.version) for file in artifact.files]])


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
