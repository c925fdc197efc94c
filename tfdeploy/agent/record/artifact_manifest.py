"""The list of the artifacts that a record has of a run: the file `artifacts.json` in the folder of the run.

Only a complete artifact replaces another: that a machine has no file of it any more is not a reason, because the record may have the
only copy.
"""

import json
import re
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from ..system.files import write_whole
from .artifact_selection import RESUMABLE
from .record_files import is_valid_name
from .stored_artifact import CHECKPOINT, FILES, MAX_BYTES, MAX_FILES, LeftOut, StoredArtifact

MANIFEST = "artifacts.json"

_STEP = re.compile(r"(.*?)([0-9]{1,18})([^0-9/]*)", re.DOTALL)
"""The last number in the name of a checkpoint is its step, or its epoch: `model.ckpt-4200`, `cp-0012.ckpt`."""


@dataclass(frozen=True)
class ManifestFile:
    """A file of an artifact."""

    name: str
    size: int
    version: str
    sha256: str = ""
    """Empty until it is stored."""

    @property
    def identity(self) -> Tuple[str, int, str]:
        """What no other version of the file has."""
        return self.name, self.size, self.version


@dataclass(frozen=True)
class ManifestArtifact:
    """An artifact that is stored."""

    kind: str
    name: str
    machine: str
    attempt: int
    """That of the task that decides the result; of the uploading task where none does."""
    files: List[ManifestFile] = field(default_factory=list)

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(file.size for file in self.files)

    @property
    def path(self) -> str:
        """Where it is: a folder, a file, or the file `checkpoint`, which is the last one."""
        single = self.files[-1].name if self.files else ""
        return self.name if self.kind not in (FILES, CHECKPOINT) else single


@dataclass(frozen=True)
class ArtifactList:
    """What a run has below `artifacts`, and what was left out."""

    artifacts: List[ManifestArtifact] = field(default_factory=list)
    """Those that were uploaded last are the last ones."""
    left_out: List[LeftOut] = field(default_factory=list)
    pending: List[ManifestArtifact] = field(default_factory=list)
    """In a copy: what it does not have yet. Until it has, it stores what that replaces. At the controller: what is being stored."""

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(artifact.size for artifact in self.artifacts)

    @property
    def files(self) -> List[ManifestFile]:
        """The files of all artifacts."""
        return [file for artifact in self.artifacts for file in artifact.files]

    def to_dict(self) -> Dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> "ArtifactList":
        """From JSON, which may be of a cluster that is not trusted.

        Raises:
            ValueError, KeyError, TypeError, AttributeError: it is not a manifest.
        """
        artifacts, pending = ([read_artifact(item) for item in data.get(key, [])] for key in ("artifacts", "pending"))
        manifest = cls(artifacts, [LeftOut.from_dict(item) for item in data["left_out"]], pending)
        refuse_names([file.name for file in manifest.files])
        refuse_names([file.name for artifact in pending for file in artifact.files])
        return manifest


def read_artifact(item: Dict[str, Any]) -> ManifestArtifact:
    """From JSON: of a manifest, or of a launcher's list, which has no hashes."""
    files = [
        ManifestFile(file["name"], int(file["size"]), str(file["version"]), str(file.get("sha256", "")))
        for file in item["files"]
    ]
    kind, name, machine = (str(item[key]) for key in ("kind", "name", "machine"))
    return ManifestArtifact(kind, name, machine, int(item["attempt"]), files)


def refuse_names(names: Sequence[str]) -> None:
    """Raise ValueError unless these are names of different files below one folder."""
    for name in names:
        if not is_valid_name(name):
            raise ValueError(f"{name!r} is not a path below train_dir")
    folders = {folder for name in names for folder in _folders_of(name)}
    if len(set(names)) < len(names) or folders.intersection(names):
        raise ValueError("two files have the same path")


def load_manifest(run_folder: Path) -> ArtifactList:
    """The manifest of a run; an empty one where there is none. One that is damaged is replaced by what is in the folder.

    Raises:
        OSError: it cannot be read. That is never taken for "no artifacts".
    """
    try:
        return ArtifactList.from_dict(json.loads((run_folder / MANIFEST).read_bytes()))
    except (FileNotFoundError, NotADirectoryError):
        return ArtifactList()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return _rebuilt(run_folder / "artifacts")


def _rebuilt(folder: Path) -> ArtifactList:
    """A list of the files in the folder: what belongs together is not known."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    files = [ManifestFile(path.relative_to(folder).as_posix(), path.stat().st_size, "") for path in paths]
    return ArtifactList([ManifestArtifact(FILES, "**", "", 0, files)] if files else [])


def save_manifest(run_folder: Path, manifest: ArtifactList) -> None:
    """Store the manifest of a run."""
    write_whole(run_folder / MANIFEST, json.dumps(manifest.to_dict()), sync=True)


def stored_artifacts(run_folder: Path) -> Tuple[List[StoredArtifact], List[LeftOut]]:
    """What a view shows of the artifacts in a record, which may be a copy that is not complete.

    Raises:
        OSError: the manifest cannot be read.
    """
    manifest = load_manifest(run_folder)
    rows = [_row(item, is_complete(run_folder, item)) for item in manifest.artifacts]
    return [*rows, *(_row(item, False) for item in manifest.pending)], manifest.left_out


def _row(item: ManifestArtifact, is_stored: bool) -> StoredArtifact:
    return StoredArtifact(item.kind, item.name, item.size, item.machine, item.path, is_stored)


def is_complete(run_folder: Path, artifact: ManifestArtifact) -> bool:
    """Whether all files of an artifact are there."""
    return all(size_of(run_folder / "artifacts" / file.name) == file.size for file in artifact.files)


def size_of(path: Path) -> int:
    """The size of a file; -1 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _folders_of(name: str) -> Iterator[str]:
    """The folders that this path is in."""
    return (name[:position] for position, sign in enumerate(name) if sign == "/")


def accepted(artifacts: Sequence[ManifestArtifact], new: ManifestArtifact) -> ManifestArtifact:
    """What is stored of an artifact: without the files that another machine has stored with a later attempt, or with a later step of
    the same attempt. What is not usable without them is not stored at all."""
    later = [artifact for artifact in artifacts if artifact.machine != new.machine and _is_later(artifact, new)]
    rest = _without(new, [file for artifact in later for file in artifact.files])
    return rest if rest == new or new.kind in (FILES, CHECKPOINT) else replace(new, files=[])


def remaining(artifacts: Sequence[ManifestArtifact], new: ManifestArtifact) -> Iterator[ManifestArtifact]:
    """What remains of the artifacts once `new` is stored: what has none of its files, the other files of `FILES`, and the data of a
    checkpoint with a later attempt or step, or with shards of the same one from another machine."""
    for artifact in artifacts:
        steps, is_same = _steps_between(artifact, new), artifact.machine == new.machine
        is_replaced = steps is not None and artifact.attempt <= new.attempt and steps >= (0 if is_same else 1)
        rest = _without(artifact, new.files)
        if not is_replaced and (rest == artifact or (rest.files and (artifact.kind == FILES or steps is not None))):
            yield rest


def _without(artifact: ManifestArtifact, others: Sequence[ManifestFile]) -> ManifestArtifact:
    """An artifact without the files that have names of others. Where one is a file, another cannot be in a folder."""
    names = {file.name for file in others}
    folders = {folder for name in names for folder in _folders_of(name)}
    files = [
        it
        for it in artifact.files
        if it.name not in names and it.name not in folders and names.isdisjoint(_folders_of(it.name))
    ]
    return replace(artifact, files=files)


def _is_later(artifact: ManifestArtifact, new: ManifestArtifact) -> bool:
    return (artifact.attempt, _steps_between(new, artifact) or 0) > (new.attempt, 0)


def _steps_between(artifact: ManifestArtifact, other: ManifestArtifact) -> Optional[int]:
    """By how many steps another checkpoint of its series is later; None where it is not one."""
    if (artifact.kind, other.kind) != (CHECKPOINT, CHECKPOINT):
        return None
    (series, step), (other_series, other_step) = _series(artifact.name), _series(other.name)
    return other_step - step if series == other_series else None


def _series(name: str) -> Tuple[Tuple[str, str], int]:
    match = _STEP.fullmatch(name)
    return ((match[1], match[3]), int(match[2])) if match else ((name, ""), 0)


def excess(artifacts: Sequence[ManifestArtifact], machine: str) -> List[ManifestArtifact]:
    """What of a machine is beyond the limits of a run: the oldest first, and never the newest that a program can resume from."""
    own = [artifact for artifact in artifacts if artifact.machine == machine]
    resumable = [artifact for artifact in own if artifact.kind in RESUMABLE]
    newest = max(reversed(resumable), key=lambda artifact: artifact.kind == CHECKPOINT, default=None)
    size, count = sum(artifact.size for artifact in own), sum(len(artifact.files) for artifact in own)
    removed = []
    for artifact in own:
        if artifact is not newest and (size > MAX_BYTES or count > MAX_FILES):
            removed.append(artifact)
            size, count = size - artifact.size, count - len(artifact.files)
    return removed
