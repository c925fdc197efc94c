"""Which artifacts of a record are replaced by others. Only a complete one replaces another: that a machine has no file of it any more
is not a reason, because the record may have the only copy. Pure but for `retain`.
"""

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Collection, Iterator, List, Optional, Sequence, Tuple

from .artifact_manifest import ArtifactList, ManifestArtifact, folders_of, is_complete, load_manifest, save_manifest
from .artifacts import RESUMABLE
from .stored_artifact import CHECKPOINT, FILES, MAX_BYTES, MAX_FILES

_STEP = re.compile(r"(.*?)([0-9]{1,18})([^0-9/]*)", re.DOTALL)
"""The last number in the name of a checkpoint is its step, or its epoch: `model.ckpt-4200`, `cp-0012.ckpt`."""

_CHANGED = re.compile(r"([0-9]{1,30})$")


def has_precedence(stored: ManifestArtifact, new: ManifestArtifact) -> bool:
    """Whether a stored artifact is not replaced by another version of its files: they are of two machines, and of two storages. On one
    storage, either machine may have stored the file of the other, and what is there later is newer."""
    is_one_storage = bool(new.storage) and new.storage == stored.storage
    return stored.machine != new.machine and stored.rank < new.rank and not is_one_storage


def remaining(artifacts: Sequence[ManifestArtifact], new: ManifestArtifact) -> Iterator[ManifestArtifact]:
    """What remains of the artifacts once `new` is stored: what has none of its files, of `FILES` the other files, and of a checkpoint
    with a later step its data: a program that began again with an empty disk is behind it. Where one is a file, another cannot be in a
    folder."""
    names = {file.name for file in new.files}
    folders = {folder for name in names for folder in folders_of(name)}
    for artifact in artifacts:
        order = _compared(new, artifact)
        rest = [
            file
            for file in artifact.files
            if file.name not in names and file.name not in folders and not names.intersection(folders_of(file.name))
        ]
        if order is not None and order >= 0:
            continue
        if len(rest) == len(artifact.files):
            yield artifact
        elif rest and (artifact.kind == FILES or order is not None):
            yield replace(artifact, files=rest)


def _compared(new: ManifestArtifact, other: ManifestArtifact) -> Optional[int]:
    """By how many steps a checkpoint is later than another one of its series; None for others."""
    if (new.kind, other.kind) != (CHECKPOINT, CHECKPOINT):
        return None
    (series, step), (other_series, other_step) = _series(new.name), _series(other.name)
    return step - other_step if series == other_series else None


def _series(name: str) -> Tuple[Tuple[str, str], int]:
    match = _STEP.fullmatch(name)
    return ((match[1], match[3]), int(match[2])) if match else ((name, ""), 0)


def excess(artifacts: Sequence[ManifestArtifact], machine: str, declared: Collection[str]) -> List[ManifestArtifact]:
    """What a machine has stored earlier, has not declared now, and is beyond the limits of a run: the oldest first, and never the
    newest that a program can resume from. `declared` are names of files and of artifacts."""
    own = [artifact for artifact in artifacts if artifact.machine == machine]
    resumable = [artifact for artifact in own if artifact.kind in RESUMABLE]
    newest = max(resumable, key=lambda artifact: (artifact.kind == CHECKPOINT, changed(artifact)), default=None)
    size, count = sum(artifact.size for artifact in own), sum(len(artifact.files) for artifact in own)
    removed = []
    for artifact in own:
        is_declared = artifact.name in declared or any(file.name in declared for file in artifact.files)
        if not is_declared and artifact is not newest and (size > MAX_BYTES or count > MAX_FILES):
            removed.append(artifact)
            size, count = size - artifact.size, count - len(artifact.files)
    return removed


def changed(artifact: ManifestArtifact) -> int:
    """When the program has changed its files last, in nanoseconds; 0 where that is not known."""
    matches = [_CHANGED.search(file.version) for file in artifact.files]
    return max((int(match[1]) for match in matches if match), default=0)


def retain(source: Path, target: Path) -> None:
    """Take over into the run's folder `target` what the one in `source` has complete, and nothing that is complete in `target`
    replaces. What `target` lists and does not have is pending then.

    Raises:
        OSError: a manifest cannot be read, or the disk is full.
    """
    manifest = load_manifest(target)
    complete = [artifact for artifact in manifest.artifacts if is_complete(target, artifact)]
    retained = [artifact for artifact in load_manifest(source).artifacts if is_complete(source, artifact)]
    retained = [artifact for artifact in retained if artifact not in complete]
    for artifact in complete:
        retained = list(remaining(retained, artifact))
    if retained:
        for file in (file for artifact in retained for file in artifact.files):
            link_or_copy(str(source / "artifacts" / file.name), str(target / "artifacts" / file.name))
        missing = [artifact for artifact in manifest.artifacts if artifact not in (*complete, *retained)]
        save_manifest(target, ArtifactList([*retained, *complete], manifest.left_out, [*missing, *manifest.pending]))


def link_or_copy(source: str, target: str) -> None:
    """Link a file from one record to another, where the file system can do that. The files of artifacts are never written again."""
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    if Path(target).exists():
        Path(target).unlink()
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target)
