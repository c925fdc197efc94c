"""The list of the artifacts that a record has of a run: the file `artifacts.json` in the folder of the run."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from .artifacts import CHECKPOINT, FILES, LeftOut, StoredArtifact, is_valid_name
from .files import write_whole

MANIFEST = "artifacts.json"


@dataclass(frozen=True)
class ManifestFile:
    """A file of an artifact."""

    name: str
    size: int
    version: str
    sha256: str = ""
    """Empty for a file that was linked."""


@dataclass(frozen=True)
class ManifestArtifact:
    """An artifact that is stored."""

    kind: str
    name: str
    machine: str
    rank: int
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
    left_out: List[LeftOut] = field(default_factory=list)

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
        artifacts = [
            ManifestArtifact(
                str(item["kind"]),
                str(item["name"]),
                str(item["machine"]),
                int(item["rank"]),
                [
                    ManifestFile(file["name"], int(file["size"]), str(file["version"]), str(file["sha256"]))
                    for file in item["files"]
                ],
            )
            for item in data["artifacts"]
        ]
        manifest = cls(artifacts, [LeftOut.from_dict(item) for item in data["left_out"]])
        refuse_names([file.name for file in manifest.files])
        return manifest


def refuse_names(names: Sequence[str]) -> None:
    """Raise ValueError unless these are names of different files below one folder."""
    for name in names:
        if not is_valid_name(name):
            raise ValueError(f"{name!r} is not a path below train_dir")
    folders = {folder for name in names for folder in folders_of(name)}
    if len(set(names)) < len(names) or folders.intersection(names):
        raise ValueError("two files have the same path")


def load_manifest(run_folder: Path) -> ArtifactList:
    """The manifest of a run; an empty one where there is none that can be read."""
    try:
        return ArtifactList.from_dict(json.loads((run_folder / MANIFEST).read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ArtifactList()


def save_manifest(run_folder: Path, manifest: ArtifactList) -> None:
    """Store the manifest of a run."""
    write_whole(run_folder / MANIFEST, json.dumps(manifest.to_dict()), sync=True)


def stored_artifacts(run_folder: Path) -> Tuple[List[StoredArtifact], List[LeftOut]]:
    """What a view shows of the artifacts in a record, which may be a copy that is not complete."""
    manifest = load_manifest(run_folder)
    rows = [
        StoredArtifact(
            item.kind,
            item.name,
            item.size,
            item.machine,
            item.path,
            all(size_of(run_folder / "artifacts" / file.name) == file.size for file in item.files),
        )
        for item in manifest.artifacts
    ]
    return rows, manifest.left_out


def read_part(run_folder: Path, name: str, offset: int, size: int) -> bytes:
    """A part of a file that the manifest lists.

    Raises:
        ValueError: the manifest does not list it.
        OSError: it cannot be read.
    """
    if name not in {file.name for file in load_manifest(run_folder).files}:
        raise ValueError(f"{name!r} is not a file of the artifacts")
    with (run_folder / "artifacts" / name).open("rb") as file:
        file.seek(offset)
        return file.read(size)


def size_of(path: Path) -> int:
    """The size of a file; -1 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return -1


def folders_of(name: str) -> Iterator[str]:
    """The folders that this path is in."""
    return (name[:position] for position, sign in enumerate(name) if sign == "/")
