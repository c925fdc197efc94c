"""The artifacts in a controller's record. A launcher lists the files that it has, appends parts of them, and ends the upload.

A file arrives in `runs/ID/artifacts.draft`, where an interrupted upload continues. Once all files of an artifact are whole and have
their hashes, they get their names below `runs/ID/artifacts`, and then the list has the artifact.
"""

import hashlib
import json
import os
import shutil
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Collection, Dict, List, Optional, Sequence, Set, Tuple

from ..files import append, sha256_of
from .artifact_manifest import (
    MANIFEST,
    ArtifactList,
    ManifestArtifact,
    ManifestFile,
    excess,
    load_manifest,
    refuse_names,
    remaining,
    save_manifest,
    size_of,
    without_later,
)
from .stored_artifact import CLUSTER_LIMIT, FILES, MAX_BYTES, MAX_FILES, OTHER_MACHINE, RUN_LIMIT, LeftOut

DRAFT_FOLDER = "artifacts.draft"

CLUSTER_BYTES = 20 << 30
"""The artifacts of all runs of a cluster have at most so many bytes: those of the oldest runs are deleted first."""

STORED, BUSY = -1, -2
"""In place of the number of bytes that have arrived of a file: it is whole; another machine sends the same file now."""


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
        self.is_complete = self.is_stored = self.is_busy = False

    @property
    def end(self) -> int:
        """How many bytes have arrived, `STORED` or `BUSY`."""
        return STORED if self.is_complete else BUSY if self.is_busy else max(0, size_of(self.draft))

    def sha256(self) -> str:
        """The hash of what has arrived, which is on the disk then."""
        append(self.draft, b"")
        with self.draft.open("rb") as file:
            os.fsync(file.fileno())
        return sha256_of(self.draft)


class UploadUnknown(Exception):
    """The upload was not listed since the controller started."""


class _Upload:
    """What a machine has listed."""

    def __init__(self, run_folder: Path, artifacts: List[ManifestArtifact], replaces: bool) -> None:
        self.artifacts, self.replaces = artifacts, replaces
        self.refused: List[ManifestArtifact] = []
        self.incoming = [
            _Incoming(file, number, draft_of(run_folder, file))
            for number, artifact in enumerate(artifacts)
            for file in artifact.files
        ]

    def note_stored(self, run_folder: Path) -> None:
        """Note what the record has already."""
        stored = {file.name: file for file in load_manifest(run_folder).files}
        for item in self.incoming:
            file = stored.get(item.file.name)
            if file is None or (file.size, file.version) != (item.file.size, item.file.version):
                continue
            if size_of(run_folder / "artifacts" / file.name) == file.size:
                item.is_complete = item.is_stored = True
                item.file = file

    def store_complete(self, run_folder: Path, number: int) -> None:
        """Store an artifact if all of its files are complete."""
        items = [item for item in self.incoming if item.artifact == number]
        if not items or not all(item.is_complete for item in items):
            return
        manifest = load_manifest(run_folder)
        listed = replace(self.artifacts[number], files=[item.file for item in items])
        artifact = self._accepted(manifest, listed)
        if not artifact.files and not all(item.is_stored for item in items):
            self.refused.append(listed)
        accepted = {file.name for file in artifact.files}
        for item in items:
            if item.file.name in accepted and not item.is_stored:
                store_draft(item.draft, run_folder / "artifacts", item.file.name)
                item.is_stored = True
        if artifact.files and artifact not in manifest.artifacts:
            artifacts = [*remaining(manifest.artifacts, artifact), artifact]
            save_artifacts(run_folder, manifest, replace(manifest, artifacts=artifacts))

    def _accepted(self, manifest: ArtifactList, listed: ManifestArtifact) -> ManifestArtifact:
        """The artifact with those of its files that are to be stored."""
        artifact = without_later(manifest.artifacts, listed)
        if not self.replaces:
            stored = {file.name for item in manifest.artifacts if item.machine != listed.machine for file in item.files}
            files = [file for file in artifact.files if file.name not in stored]
            is_whole = len(files) == len(artifact.files)
            return replace(artifact, files=files if is_whole or artifact.kind == FILES else [])
        return artifact


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
        attempt: int,
        listed: List[Dict[str, Any]],
        is_alone: bool = True,
        replaces: bool = True,
    ) -> List[int]:
        """List what is about to be uploaded; how many bytes of each file are there already, `STORED` or `BUSY`. `is_alone`: no other
        machine continues what has arrived. Without `replaces` nothing of other machines is replaced.

        Raises:
            ValueError, KeyError, TypeError: it is not valid, or beyond the limits.
        """
        artifacts = [_listed_artifact(item, machine, attempt) for item in listed]
        files = [file for artifact in artifacts for file in artifact.files]
        refuse_names([file.name for file in files])
        if len(files) > MAX_FILES or any(file.size < 0 for file in files) or sum(it.size for it in files) > MAX_BYTES:
            raise ValueError(f"a run has at most {MAX_FILES} files with {MAX_BYTES} bytes")
        with self._lock:
            folder = self._runs / run_id
            upload = self._uploads[run_id, machine] = _Upload(folder, artifacts, replaces)
            upload.note_stored(folder)
            if is_alone:
                self._remove_drafts(run_id)
            sent = self._sent_by_others(run_id, machine)
            for item in upload.incoming:
                item.is_busy = item.draft in sent
                if item.end > item.file.size:
                    item.draft.unlink()
            for number in range(len(artifacts)):
                upload.store_complete(folder, number)
            return [item.end for item in upload.incoming]

    def _sent_by_others(self, run_id: str, machine: str) -> Set[Path]:
        others = [upload for key, upload in self._uploads.items() if key[0] == run_id and key[1] != machine]
        incoming = (item for upload in others for item in upload.incoming)
        return {item.draft for item in incoming if not (item.is_stored or item.is_busy)}

    def _remove_drafts(self, run_id: str) -> None:
        """Delete what has arrived of files that no machine of the run lists any more."""
        uploads = [upload for (run, _), upload in self._uploads.items() if run == run_id]
        remove_drafts(self._runs / run_id, {item.draft for upload in uploads for item in upload.incoming})

    def put(self, run_id: str, machine: str, index: int, offset: int, sha256: str, whole: str, data: bytes) -> int:
        """Append a part to a file; its end, `STORED` when it is whole. `sha256` is the hash of the part; `whole` that of the file,
        after its last part. A part that does not begin at the end is ignored, as is one with another hash; a file with another
        hash arrives again."""
        with self._lock:
            item = self._incoming(run_id, machine, index)
            is_next = item.end == offset and offset + len(data) <= item.file.size
            if is_next and hashlib.sha256(data).hexdigest() == sha256:
                append(item.draft, data)
            if not whole or item.end < item.file.size:
                return item.end
        actual = item.sha256()  # takes long for a large file
        with self._lock:
            if item.end >= 0 and actual != whole:
                item.draft.unlink(missing_ok=True)
            elif item.end >= 0:
                item.is_complete, item.file = True, replace(item.file, sha256=actual)
                self._upload(run_id, machine).store_complete(self._runs / run_id, item.artifact)
            return item.end

    def _upload(self, run_id: str, machine: str) -> _Upload:
        upload: Optional[_Upload] = self._uploads.get((run_id, machine))
        if upload is None:
            raise UploadUnknown
        return upload

    def _incoming(self, run_id: str, machine: str, index: int) -> _Incoming:
        incoming = self._upload(run_id, machine).incoming
        if index >= len(incoming):
            raise UploadUnknown
        return incoming[index]

    def end(
        self, run_id: str, machine: str, left_out: List[LeftOut], is_alone: bool = True
    ) -> Tuple[List[ManifestArtifact], List[LeftOut]]:
        """The upload has ended: what it has stored, and what of the machine is left out. What the machine has no more stays, within
        the limits of a run: its disk may be another one, and the record may have the only copy."""
        with self._lock:
            folder = self._runs / run_id
            upload = self._uploads.pop((run_id, machine), None)
            manifest = load_manifest(folder)
            names = {item.name for item in upload.artifacts} if upload else set()
            own = [item for item in manifest.artifacts if item.machine == machine and item.name in names]
            artifacts = [*(item for item in manifest.artifacts if item not in own), *own]
            removed = excess(artifacts, machine)
            artifacts = [item for item in artifacts if item not in removed]
            left_out = [replace(item, machine=machine) for item in left_out]
            for reason, items in ((OTHER_MACHINE, upload.refused if upload else []), (RUN_LIMIT, removed)):
                left_out += [LeftOut(item.name, item.size, reason, machine) for item in items]
            others = [item for item in manifest.left_out if item.machine != machine]
            save_artifacts(folder, manifest, replace(manifest, artifacts=artifacts, left_out=[*others, *left_out]))
            if is_alone:
                self._remove_drafts(run_id)
            return [item for item in own if item not in removed], left_out

    def drop(self, run_id: str, machine: str) -> None:
        """The machine is silent, or took too long: another one may send the same files."""
        with self._lock:
            self._uploads.pop((run_id, machine), None)

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


def _listed_artifact(item: Dict[str, Any], machine: str, attempt: int) -> ManifestArtifact:
    files = [ManifestFile(file["name"], int(file["size"]), str(file["version"])) for file in item["files"]]
    return ManifestArtifact(str(item["kind"]), str(item["name"]), machine, attempt, files)


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
