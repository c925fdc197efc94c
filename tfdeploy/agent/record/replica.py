"""A copy of a record in a folder, brought up to date from a list of the original's files and by ranges of them.

A file that grows continues at the end of what is there; one that is replaced arrives beside it, where the next call continues, and gets
its name when it is whole and has its hash. What the copy has is deleted only when something complete replaces it, or by a limit that
the original states. So a call that is cut short or repeated does no harm.

The copy says which ranges it lacks, and gets their bytes: it is a generator, so that its owner may read them, as the user's computer
does, or have them sent, as a controller that is given a record.
"""

import hashlib
import json
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Callable, Dict, Generator, Iterable, Iterator, List, Optional, Sequence, Set, Tuple, TypeVar

from ..system.files import append, sha256_of, write_whole
from .artifact_manifest import (
    MANIFEST,
    ArtifactList,
    ManifestArtifact,
    ManifestFile,
    is_complete,
    load_manifest,
    remaining,
    size_of,
)
from .artifact_store import CLUSTER_BYTES, draft_of, remove_drafts, save_artifacts, store_draft
from .output import MAX_PIECES, PIECE_BYTES
from .record_files import PART, STATE_FILES, Range, RecordFile, grows, is_record_file, is_search, is_state
from .stored_artifact import CLUSTER_LIMIT, RUN_LIMIT

T = TypeVar("T")

Read = Callable[[Sequence[Range]], Sequence[bytes]]
"""The bytes of these ranges, from the first on, as far as one call returns them. A range is shorter only where the file is."""

Steps = Generator[List[Range], Sequence[bytes], T]
"""Ranges that are wanted, for each time their bytes as of `Read`, and a result. No ranges: the last step has taken long enough."""

MAX_FILES = 100_000
"""A copy has at most so many files of the artifacts of one run, of at most `CLUSTER_BYTES`, whatever is listed."""

_LEAST_BYTES = 256 << 20
"""So much output is copied by one update before it asks whether its time is over, and compared in one step."""

_TRIES = 3
"""How often a file is fetched if its content does not have the hash of the list."""


class Replica:
    """The copy in this folder. `is_over` returns true when the rest is left for the next update.

    Neither the list nor what arrives is trusted: both may come from a cluster whose programs are not.
    """

    def __init__(self, folder: Path, is_over: Callable[[], bool] = lambda: False) -> None:
        self._folder, self._is_over = folder, is_over

    def store_states(self, files: Iterable[RecordFile]) -> None:
        """Store the states of runs, and which run is the current one, as a list has them."""
        for file in files:
            if file.text is not None and (is_state(file.name) or is_search(file.name)):
                self._write_text(self._folder / file.name, file.text)

    def grow(self, files: Sequence[RecordFile]) -> Steps[List[str]]:
        """Bring output and events up to date with a list of files; the names of those that the copy still lacks.

        Raises:
            OSError: the copy cannot be written. What has arrived stays.
        """
        growing = _newest(file for file in files if grows(file.name) and _is_possible(file))
        missing = yield from self._append(growing)
        compared = 0
        for file in growing:
            if self._differs(file) and not (yield from self._replace(file)):
                missing.append(file.name)
            compared += file.size if file.sha256 else 0
            if compared > _LEAST_BYTES:
                compared = 0
                yield []
        return missing

    def fetch_artifacts(self, files: Sequence[RecordFile]) -> Steps[List[str]]:
        """Fetch the artifacts in a list of files, as far as they are within the limits; the names of files that the original has, and
        the copy lacks.

        Raises:
            OSError: the copy cannot be read or written. What has arrived stays.
        """
        listed = {file.name: file for file in files}
        missing: List[str] = []
        for file in files:
            wanted = _parsed(file.text) if file.text and is_record_file(file.name) and _is_manifest(file.name) else None
            if wanted is not None:
                missing += yield from self._fetch_all(self._folder / file.name, wanted, listed)
        return missing

    @staticmethod
    def _write_text(path: Path, text: str) -> None:
        for target in [path.with_name(name) for name in STATE_FILES] if path.name in STATE_FILES else [path]:
            if size_of(target) != len(text.encode()) or target.read_bytes() != text.encode():
                write_whole(target, text, sync=True)

    def _append(self, files: List[RecordFile]) -> Steps[List[str]]:
        """Append what files have grown by, many in one step; the names of those that are not whole then."""
        gone: Set[str] = set()
        lacking, moved = self._lacking(files), 0
        before: List[Range] = []
        for _ in range(2 * (len(files) + sum(part.size for part in lacking) // PART + 1)):
            if not lacking or lacking == before or (moved >= _LEAST_BYTES and self._is_over()):
                break
            before, wanted = lacking, _first_of(lacking)
            for part, data in zip(wanted, (yield wanted)):
                if not data:  # the original has deleted the file meanwhile
                    gone.add(part.name)
                    break
                moved += len(data)
                append(self._folder / part.name, data[: part.size])
                if len(data) < part.size:
                    break
            lacking = [part for part in self._lacking(files) if part.name not in gone]
        return [*(part.name for part in lacking), *gone]

    def _lacking(self, files: Iterable[RecordFile]) -> List[Range]:
        ends = ((file, max(0, size_of(self._folder / file.name))) for file in files)
        return [Range(file.name, end, file.size - end) for file, end in ends if end < file.size]

    def _differs(self, file: RecordFile) -> bool:
        """Whether the copy of a file has grown to something else, as after a crash of the original's machine."""
        path = self._folder / file.name
        return size_of(path) >= file.size and not _has_hash(path, file.sha256, file.size)

    def _replace(self, file: RecordFile) -> Steps[bool]:
        """Fetch a file from its start; whether the copy has it."""
        draft = self._folder / f"{file.name}.draft"
        if (yield from self._fetch(file.name, file.size, file.sha256, draft)):
            draft.replace(self._folder / file.name)
            return True
        return False

    def _fetch_all(self, manifest: Path, listed: ArtifactList, files: Dict[str, RecordFile]) -> Steps[List[str]]:
        """Where the original is a copy, it may have what its list names as pending, as after a crash."""
        run_folder = manifest.parent
        wanted = listed.artifacts
        for item in listed.pending:
            if self._is_offered(run_folder, item, files):
                wanted = [*remaining(wanted, item), item]
        copy = _Artifacts(run_folder, replace(listed, artifacts=wanted, pending=[]))
        copy.remove_drafts()
        offered = [item for item in _within_limits(wanted) if self._is_offered(run_folder, item, files)]
        for artifact in offered:
            if artifact not in copy.pending:
                continue
            if (yield from self._fetch_artifact(copy, run_folder, artifact, files)):
                copy.store(artifact)
            elif self._is_over():
                break
        copy.remove_drafts()
        return [self._name(run_folder, file) for item in offered if item in copy.pending for file in item.files]

    def _name(self, run_folder: Path, file: ManifestFile) -> str:
        return f"{run_folder.relative_to(self._folder).as_posix()}/artifacts/{file.name}"

    def _is_offered(self, run_folder: Path, artifact: ManifestArtifact, files: Dict[str, RecordFile]) -> bool:
        """Whether the original has all files of an artifact, and no others in their place."""
        for file in artifact.files:
            original = files.get(self._name(run_folder, file))
            if original is None or original.size != file.size:
                return False
            if file.sha256 and original.sha256 not in ("", file.sha256):
                return False
        return True

    def _fetch_artifact(
        self, copy: "_Artifacts", run_folder: Path, artifact: ManifestArtifact, files: Dict[str, RecordFile]
    ) -> Steps[bool]:
        """Fetch the files of an artifact; whether it is complete."""
        for file in artifact.files:
            name, draft = self._name(run_folder, file), draft_of(run_folder, file)
            sha256 = file.sha256 or files[name].sha256
            if not copy.has(file) and not (yield from self._fetch(name, file.size, sha256, draft)):
                return False
        return True

    def _fetch(self, name: str, size: int, sha256: str, draft: Path) -> Steps[bool]:
        """Fetch a file, and continue what an earlier call has begun; whether it is complete."""
        for _ in range(_TRIES):
            append(draft, b"")
            while (end := draft.stat().st_size) < size:
                if self._is_over():
                    return False
                wanted = Range(name, end, min(PART, size - end))
                data = next(iter((yield [wanted])), b"")
                if not data:
                    return False
                append(draft, data[: wanted.size])
            if draft.stat().st_size == size and _has_hash(draft, sha256, size):
                return True
            draft.unlink()
        return False


def read_all(steps: Steps[T], read: Read) -> T:
    """The result of these steps, with the bytes that `read` reads."""
    try:
        wanted = next(steps)
        while True:
            wanted = steps.send(read(wanted) if wanted else [])
    except StopIteration as end:
        result: T = end.value
        return result


def pack(ranges: Sequence[Range], parts: Sequence[bytes]) -> bytes:
    """Ranges with their bytes as one message, with a hash. Those without bytes have the size 0."""
    data = b"".join(parts)
    listed = [part._replace(size=len(content)) for part, content in zip(ranges, parts)]
    header = {"ranges": listed, "sha256": hashlib.sha256(data).hexdigest()}
    return json.dumps(header).encode() + b"\n" + data


def unpack(message: bytes) -> List[Tuple[Range, bytes]]:
    """The ranges in a message.

    Raises:
        ValueError, KeyError, TypeError: it is none, or was damaged on its way.
    """
    text, _, data = message.partition(b"\n")
    header = json.loads(text)
    if hashlib.sha256(data).hexdigest() != header["sha256"]:
        raise ValueError("the bytes of a record arrived damaged")
    ranges = [Range(*part) for part in header["ranges"]]
    ends = accumulate(part.size for part in ranges)
    return [(part, data[end - part.size : end]) for part, end in zip(ranges, ends)]


def _first_of(ranges: Iterable[Range]) -> List[Range]:
    """The first `PART` bytes of these ranges, which one call moves."""
    wanted, left = [], PART
    for item in ranges:
        if not left:
            break
        wanted.append(item._replace(size=min(item.size, left)))
        left -= wanted[-1].size
    return wanted


def _is_possible(file: RecordFile) -> bool:
    """Whether a file may have so many bytes: a piece ends with the line with which it becomes full."""
    return 0 <= file.size <= (PIECE_BYTES + PART if file.name.endswith(".log") else CLUSTER_BYTES)


def _newest(files: Iterable[RecordFile]) -> List[RecordFile]:
    """These files in order, without the oldest pieces of a task that has too many, whatever is listed."""
    folders: Dict[str, List[RecordFile]] = {}
    for file in sorted(files, key=_order):
        folders.setdefault(file.name.rpartition("/")[0], []).append(file)
    return [file for found in folders.values() for file in found[-MAX_PIECES:]]


def _has_hash(path: Path, expected: str, size: int) -> bool:
    """Whether the first bytes of a file have this hash, or none is known."""
    return not expected or expected == sha256_of(path, size)


def _order(file: RecordFile) -> Tuple[str, int, str]:
    """The pieces of a task are copied from the first on: the names are numbers."""
    folder, _, last = file.name.rpartition("/")
    return folder, len(last), last


def _is_manifest(name: str) -> bool:
    """Whether it is the list of a run's artifacts. A copy has its own."""
    return name.split("/")[2:] == [MANIFEST]


def _parsed(text: str) -> Optional[ArtifactList]:
    """A list of artifacts; None where it is none, or names files outside of the record."""
    try:
        return ArtifactList.from_dict(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _within_limits(wanted: Iterable[ManifestArtifact]) -> Iterator[ManifestArtifact]:
    size = count = 0
    for artifact in wanted:
        size, count = size + artifact.size, count + len(artifact.files)
        if size <= CLUSTER_BYTES and count <= MAX_FILES:
            yield artifact


class _Artifacts:
    """What the copy has of the artifacts of one run, and what is to come."""

    def __init__(self, run_folder: Path, wanted: ArtifactList) -> None:
        self._folder, self._wanted = run_folder, wanted
        before = load_manifest(run_folder)
        removed = {(item.name, item.machine) for item in wanted.left_out if item.reason in (CLUSTER_LIMIT, RUN_LIMIT)}
        stored = [item for item in before.artifacts if is_complete(run_folder, item)]
        self._save(
            before, [item for item in stored if item in wanted.artifacts or (item.name, item.machine) not in removed]
        )

    @property
    def pending(self) -> List[ManifestArtifact]:
        """What is to be fetched."""
        return self._manifest.pending

    def remove_drafts(self) -> None:
        """Delete what has arrived of versions that are not to be fetched any more."""
        remove_drafts(self._folder, {draft_of(self._folder, file) for it in self.pending for file in it.files})

    def has(self, file: ManifestFile) -> bool:
        """Whether this version of the file is stored."""
        return file in self._manifest.files

    def store(self, artifact: ManifestArtifact) -> None:
        """Store an artifact that has arrived, in place of what it replaces."""
        if artifact not in self.pending:
            return
        for file in artifact.files:
            if not self.has(file):
                store_draft(draft_of(self._folder, file), self._folder / "artifacts", file.name)
        self._save(self._manifest, [*remaining(self._manifest.artifacts, artifact), artifact])

    def _save(self, before: ArtifactList, artifacts: List[ManifestArtifact]) -> None:
        listed = self._wanted.artifacts
        ordered = [*(it for it in artifacts if it not in listed), *(it for it in listed if it in artifacts)]
        pending = [artifact for artifact in listed if artifact not in artifacts]
        self._manifest = replace(self._wanted, artifacts=ordered, pending=pending)
        save_artifacts(self._folder, before, self._manifest)
