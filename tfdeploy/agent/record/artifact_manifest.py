"""The list of the artifacts that a record has of a run: the file `artifacts.json` in the folder of the run."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from ..files import write_whole
from .artifacts import DEFAULT_PATTERNS, FileInfo, choose
from .record_files import is_valid_name
from .stored_artifact import CHECKPOINT, FILES, LeftOut, StoredArtifact

MANIFEST = "artifacts.json"

_LAST = 1 << 30
"""A rank behind those of all machines."""


@dataclass(frozen=True)
class ManifestFile:
    """A file of an artifact."""

    name: str
    size: int
    version: str
    sha256: str = ""
    """Empty until it is stored."""


@dataclass(frozen=True)
class ManifestArtifact:
    """An artifact that is stored."""

    kind: str
    name: str
    machine: str
    rank: int
    files: List[ManifestFile] = field(default_factory=list)
    storage: str = ""
    """The identity of the storage that it is from (`artifact_sender.storage_of`); empty where it is not known."""

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
    left_out: List[LeftOut] = field(default_factory=list)
    pending: List[ManifestArtifact] = field(default_factory=list)
    """In a copy: what it does not have yet. Until it has, it stores what that replaces."""

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
        artifacts, pending = ([_artifact(item) for item in data.get(key, [])] for key in ("artifacts", "pending"))
        manifest = cls(artifacts, [LeftOut.from_dict(item) for item in data["left_out"]], pending)
        refuse_names([file.name for file in manifest.files])
        refuse_names([file.name for artifact in pending for file in artifact.files])
        return manifest


def _artifact(item: Dict[str, Any]) -> ManifestArtifact:
    files = [
        ManifestFile(file["name"], int(file["size"]), str(file["version"]), str(file["sha256"]))
        for file in item["files"]
    ]
    kind, name, machine = (str(item[key]) for key in ("kind", "name", "machine"))
    return ManifestArtifact(kind, name, machine, int(item["rank"]), files, str(item.get("storage", "")))


def refuse_names(names: Sequence[str]) -> None:
    """Raise ValueError unless these are names of different files below one folder."""
    for name in names:
        if not is_valid_name(name):
            raise ValueError(f"{name!r} is not a path below train_dir")
    folders = {folder for name in names for folder in folders_of(name)}
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
    """A list of the files in the folder. Every upload has precedence over these."""
    paths = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    infos = {path.relative_to(folder).as_posix(): path.stat() for path in paths}
    files = {name: FileInfo(info.st_size, info.st_mtime_ns) for name, info in infos.items()}
    artifacts, _ = choose(files, [*DEFAULT_PATTERNS, "**"], lambda name: (folder / name).read_text(errors="replace"))
    return ArtifactList(
        [
            ManifestArtifact(
                item.kind, item.name, "", _LAST, [ManifestFile(it.name, files[it.name].size, "") for it in item.files]
            )
            for item in artifacts
        ]
    )


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


def folders_of(name: str) -> Iterator[str]:
    """The folders that this path is in."""
    return (name[:position] for position, sign in enumerate(name) if sign == "/")
