"""The artifacts in a record: parts become files below `runs/ID/artifacts` once all files of an artifact have arrived and their hashes
match. What has arrived of others is in `runs/ID/artifacts.draft`, where an upload continues.

An artifact replaces what the record has under the names of its files: that of an earlier upload, of a machine with a higher rank, or
of one that shares the storage.
What no artifact replaces stays (`artifact_precedence`).
"""

import hashlib
import json
import os
import shutil
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Collection, Dict, Iterator, List, Sequence, Tuple

from ..files import append, sha256_of
from .artifact_manifest import (
    MANIFEST,
    ArtifactList,
    ManifestArtifact,
    ManifestFile,
    load_manifest,
    refuse_names,
    save_manifest,
    size_of,
)
from .artifact_precedence import excess, has_precedence, remaining
from .stored_artifact import CLUSTER_LIMIT, FILES, MAX_BYTES, MAX_FILES, OTHER_MACHINE, RUN_LIMIT, LeftOut

DRAFT_FOLDER = "artifacts.draft"

CLUSTER_BYTES = 20 << 30
"""The artifacts of all runs of a cluster have at most so many bytes: those of the oldest runs are deleted first."""


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


def draft_of(run_folder: Path, file: ManifestFile) -> Path:
    """Where a version of a file arrives."""
    identity = json.dumps([file.name, file.size, file.version, file.sha256])
    return run_folder / DRAFT_FOLDER / f"{hashlib.sha256(identity.encode()).hexdigest()[:40]}.draft"


def remove_drafts(run_folder: Path, kept: Collection[Path] = ()) -> None:
    """Delete what has arrived of other files than these: a checkpoint may be replaced before all of it is here."""
    for path in (run_folder / DRAFT_FOLDER).glob("*.draft"):
        if path not in kept:
            path.unlink()
    if not kept:
        shutil.rmtree(str(run_folder / DRAFT_FOLDER), ignore_errors=True)


def save_artifacts(run_folder: Path, before: ArtifactList, after: ArtifactList) -> None:
    """Save a manifest, and delete the files that it does not list any more."""
    if after != before:
        save_manifest(run_folder, after)
    names = {file.name for file in after.files}
    remove_files(run_folder / "artifacts", [file.name for file in before.files if file.name not in names])


class _Incoming:
    """A file that is arriving."""

    def __init__(self, file: ManifestFile, artifact: int, draft: Path) -> None:
        self.file, self.artifact, self.draft = file, artifact, draft
        self.is_stored = self.is_complete = self.is_refused = False

    @property
    def end(self) -> int:
        """How many bytes have arrived; -1 where none is to be sent."""
        return -1 if self.is_refused or self.is_complete else max(0, size_of(self.draft))

    def sha256(self) -> str:
        """The hash of what has arrived, which is on the disk then."""
        append(self.draft, b"")
        with self.draft.open("rb") as file:
            os.fsync(file.fileno())
        return sha256_of(self.draft)


class UploadUnknown(Exception):
    """The upload was not declared since the controller started."""


class _Upload:
    """What a launcher has declared."""

    def __init__(self, machine: str, artifacts: List[ManifestArtifact], incoming: List[_Incoming]) -> None:
        self.machine, self.artifacts, self.incoming = machine, artifacts, incoming

    def of(self, artifact: int) -> Iterator[_Incoming]:
        return (item for item in self.incoming if item.artifact == artifact)


class ArtifactStore:
    """The artifacts in a controller's record."""

    def __init__(self, runs: Path) -> None:
        """`runs` is the folder of the runs."""
        self._runs = runs
        self._uploads: Dict[Tuple[str, str], _Upload] = {}
        self._lock = threading.Lock()

    def begin(
        self,
        run_id: str,
        machine: str,
        rank: int,
        declared: List[Dict[str, Any]],
        is_last: bool = True,
        storage: str = "",
    ) -> List[int]:
        """Declare what is about to be uploaded; how many bytes of each file are there already. -1 for a file that is not to be sent:
        the record has it, or another one of its name that has precedence. `is_last`: no machine that has declared nothing yet
        continues what has arrived.

        Raises:
            ValueError, KeyError, TypeError: it is not valid, or beyond the limits.
        """
        artifacts = [_declared(item, machine, rank, storage) for item in declared]
        files = [file for artifact in artifacts for file in artifact.files]
        refuse_names([file.name for file in files])
        if len(files) > MAX_FILES or any(file.size < 0 for file in files) or sum(it.size for it in files) > MAX_BYTES:
            raise ValueError(f"a run has at most {MAX_FILES} files with {MAX_BYTES} bytes")
        with self._lock:
            folder = self._runs / run_id
            incoming = [
                _Incoming(file, number, draft_of(folder, file))
                for number, artifact in enumerate(artifacts)
                for file in artifact.files
            ]
            upload = self._uploads[run_id, machine] = _Upload(machine, artifacts, incoming)
            if is_last:
                self._remove_drafts(run_id)
            self._compare(folder, upload)
            for item in incoming:
                if item.end > item.file.size:
                    item.draft.unlink()
            for number in range(len(artifacts)):
                self._store_complete(folder, upload, number)
            return [item.end for item in incoming]

    def _remove_drafts(self, run_id: str) -> None:
        """Delete what has arrived of files that no machine of the run declares any more."""
        uploads = [upload for (run, _), upload in self._uploads.items() if run == run_id]
        remove_drafts(self._runs / run_id, {item.draft for upload in uploads for item in upload.incoming})

    def _compare(self, folder: Path, upload: _Upload) -> None:
        """Note what the record has already, and what has precedence there."""
        owners = {
            file.name: (artifact, file) for artifact in load_manifest(folder).artifacts for file in artifact.files
        }
        for number, artifact in enumerate(upload.artifacts):
            refused = []
            for item in upload.of(number):
                owner, stored = owners.get(item.file.name, (None, None))
                if owner is None or stored is None:
                    continue
                is_same = (stored.size, stored.version) == (item.file.size, item.file.version)
                if is_same and size_of(folder / "artifacts" / stored.name) == stored.size:
                    item.is_complete = item.is_stored = True
                    item.file = stored
                elif has_precedence(owner, artifact):
                    refused.append(item)
            for item in refused if artifact.kind == FILES else list(upload.of(number)) if refused else []:
                item.is_refused, item.is_complete, item.is_stored = True, False, False

    def declared(self, run_id: str, machine: str) -> List[str]:
        """The names of the artifacts of an upload that has not ended."""
        with self._lock:
            upload = self._uploads.get((run_id, machine))
            return [artifact.name for artifact in upload.artifacts] if upload else []

    def put(self, run_id: str, machine: str, index: int, offset: int, sha256: str, data: bytes) -> int:
        """Store a part; the end of the file. A part that does not begin there is ignored, as is one with another hash."""
        with self._lock:
            item = self._incoming(run_id, machine, index)
            if (
                item.end == offset
                and offset + len(data) <= item.file.size
                and hashlib.sha256(data).hexdigest() == sha256
            ):
                append(item.draft, data)
            return item.end

    def finish_file(self, run_id: str, machine: str, index: int, sha256: str) -> int:
        """All parts of a file were sent, and this is its hash; -1 when it is complete, else how many bytes are there."""
        with self._lock:
            item = self._incoming(run_id, machine, index)
            if item.end < item.file.size:
                return item.end
        actual = item.sha256()  # takes long for a large file
        with self._lock:
            if item.end < 0:
                return item.end
            if actual != sha256:
                item.draft.unlink(missing_ok=True)
                return 0
            item.is_complete, item.file = True, replace(item.file, sha256=actual)
            self._store_complete(self._runs / run_id, self._uploads[run_id, machine], item.artifact)
            return item.end

    def _incoming(self, run_id: str, machine: str, index: int) -> _Incoming:
        upload = self._uploads.get((run_id, machine))
        if upload is None or index >= len(upload.incoming):
            raise UploadUnknown
        return upload.incoming[index]

    def _store_complete(self, folder: Path, upload: _Upload, number: int) -> None:
        """Store an artifact if all of its files are complete."""
        items = [item for item in upload.of(number) if not item.is_refused]
        if not items or not all(item.is_complete for item in items):
            return
        artifact = replace(upload.artifacts[number], files=[item.file for item in items])
        manifest = load_manifest(folder)
        for item in items:
            if not item.is_stored:
                store_draft(item.draft, folder / "artifacts", item.file.name)
                item.is_stored = True
        if artifact not in manifest.artifacts:
            artifacts = [*remaining(manifest.artifacts, artifact), artifact]
            save_artifacts(folder, manifest, replace(manifest, artifacts=artifacts))

    def end(self, run_id: str, machine: str, left_out: List[LeftOut], is_last: bool = True) -> ArtifactList:
        """The upload has ended; the manifest of the run. What this machine has no more stays, within the limits of a run: its disk may
        be another one, and the record may have the only copy."""
        with self._lock:
            folder = self._runs / run_id
            upload = self._uploads.pop((run_id, machine), None)
            manifest = load_manifest(folder)
            declared = upload.artifacts if upload else []
            refused = [
                LeftOut(item.name, item.size, OTHER_MACHINE, machine)
                for number, item in enumerate(declared)
                if upload and any(file.is_refused for file in upload.of(number))
            ]
            names = {name for item in declared for name in (item.name, *(file.name for file in item.files))}
            removed = excess(manifest.artifacts, machine, names.union(item.name for item in left_out))
            left_out = [*(replace(item, machine=machine) for item in left_out), *refused]
            left_out += [LeftOut(item.name, item.size, RUN_LIMIT, machine) for item in removed]
            others = [item for item in manifest.left_out if item.machine != machine]
            artifacts = [item for item in manifest.artifacts if item not in removed]
            changed = replace(manifest, artifacts=artifacts, left_out=[*others, *left_out])
            save_artifacts(folder, manifest, changed)
            if is_last:
                self._remove_drafts(run_id)
            return changed

    def discard(self, run_id: str) -> None:
        """Delete what has arrived of uploads of a run that no launcher continues."""
        with self._lock:
            self._uploads = {key: upload for key, upload in self._uploads.items() if key[0] != run_id}
            remove_drafts(self._runs / run_id)

    def remove_excess(self, *keep: str) -> List[str]:
        """Delete the artifacts of the oldest runs beyond `CLUSTER_BYTES`, except those of the runs to keep; the runs that had them."""
        with self._lock:
            folders = [path for path in self._runs.iterdir() if (path / MANIFEST).exists()]
            sizes = {path: _size(path) for path in folders}
            removed = []
            for folder in sorted(folders, key=lambda path: (path / MANIFEST).stat().st_mtime):
                if sum(sizes.values()) > CLUSTER_BYTES and folder.name not in keep and sizes[folder]:
                    remove_artifacts(folder)
                    sizes[folder] = 0
                    removed.append(folder.name)
            return removed


def _declared(item: Dict[str, Any], machine: str, rank: int, storage: str) -> ManifestArtifact:
    files = [ManifestFile(file["name"], int(file["size"]), str(file["version"])) for file in item["files"]]
    return ManifestArtifact(str(item["kind"]), str(item["name"]), machine, rank, files, storage)


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
