"""Which artifacts of a run fill an empty `train_dir`."""

from pathlib import Path
from typing import List, NamedTuple

from ..system.files import sha256_of
from .artifact_manifest import is_complete, load_manifest
from .record_files import is_valid_name


class RestorableFile(NamedTuple):
    """One artifact in the record."""

    path: str
    size: int
    sha256: str


def restorable(run_folder: Path) -> List[RestorableFile]:
    """The files of the artifacts that a run has complete in the record, with their hashes. A list that was made anew has none.

    Raises:
        OSError: the list of them cannot be read.
    """
    artifacts = [item for item in load_manifest(run_folder).artifacts if is_complete(run_folder, item)]
    files = [file for artifact in artifacts for file in artifact.files]
    folder = run_folder / "artifacts"
    return [RestorableFile(it.name, it.size, it.sha256 or sha256_of(folder / it.name)) for it in files]


def restored_path(folder: Path, path: str) -> Path:
    """The file in a folder of the record.

    Raises:
        ValueError: the path leads out of the folder.
    """
    if not is_valid_name(path):
        raise ValueError(f"{path!r} is not a path of an artifact")
    file = folder / path
    if folder.resolve() not in file.resolve().parents:
        raise ValueError(f"{path!r} leads out of the artifacts")
    return file
