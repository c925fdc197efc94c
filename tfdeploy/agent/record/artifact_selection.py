"""What of a run's `train_dir` are artifacts: models, the newest checkpoint, and files that the user names. Pure."""

import posixpath
import re
from bisect import bisect_left
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Callable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..model.run_spec import ANY_INDEX, DEFAULT_PATTERNS
from .record_files import MAX_NAME_BYTES, is_valid_name
from .stored_artifact import BAD_NAME, CHECKPOINT, FILES, KERAS, LIMIT, MODEL, NO_MATCH, OUTSIDE, WEIGHTS, LeftOut

RESUMABLE = (CHECKPOINT, KERAS, WEIGHTS)
"""What a program can continue from."""

OWN_FILES = ".tfdeploy-"
"""So begin the names of tfdeploy's own files in `train_dir`: none of them is an artifact."""

_SAVED_MODEL, _CHECKPOINT, _KERAS, _INDEX = "saved_model.pb", "checkpoint", ".keras", ".index"

_HDF5, _SHARDED = (".h5", ".hdf5", ".weights.json"), ".weights.json"
"""Weights, and the list of their shards; Keras 2 has written models with such names too."""

_BACKUP = "latest.weights.h5"
_PARTS_OF_BACKUP = ("training_metadata.json", f"{_BACKUP}.bkp", "training_metadata.json.bkp")
"""The files of Keras' `BackupAndRestore`: it reads the weights first, then the epoch."""

_OF_OTHER_WORKERS = re.compile(r"(?:^|/)workertemp_\d+/")
"""Where all workers but the chief save a model in TensorFlow's guide to MultiWorkerMirroredStrategy: nobody reads that."""

_MODEL_PARTS = ("saved_model.pb", "fingerprint.pb", "keras_metadata.pb", "variables/", "assets/", "assets.extra/")
"""What belongs to a SavedModel in `train_dir` itself, where other files are too."""

_SHARD = re.compile(r"\.data-[0-9]+-of-([0-9]+)")

_FIELD = re.compile(r'[ \t\r]*model_checkpoint_path[ \t]*:[ \t]*"((?:[^"\\]|\\.)*)"[ \t\r]*')
_ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


class FileInfo(NamedTuple):
    """A file below `train_dir`."""

    size: int
    changed: int
    """When it was changed last, in nanoseconds."""
    is_outside: bool = False
    """It is a link to something outside of `train_dir`."""


@dataclass(frozen=True)
class ArtifactFile:
    """One file of an artifact."""

    name: str
    """Its path below `train_dir`."""
    size: int
    version: str
    """Another version of the file has another one."""
    text: Optional[str] = None
    """The content of a file that is not uploaded as it is."""


@dataclass(frozen=True)
class Artifact:
    """A model, a checkpoint, or the files that one pattern names."""

    kind: str
    name: str
    """Its path below `train_dir`, or the pattern."""
    files: List[ArtifactFile] = field(default_factory=list)

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(file.size for file in self.files)


def choose(
    files: Mapping[str, FileInfo], patterns: Sequence[str], read: Callable[[str], str]
) -> Tuple[List[Artifact], List[LeftOut]]:
    """The artifacts among these files, each file in one of them, and what cannot be uploaded. `read` is the content of a file.

    A pattern names files. `saved_model.pb` means the model in its folder, `checkpoint` for the newest checkpoint in its folder, and
    `NAME.index` for the newest checkpoint where no file `checkpoint` names one.
    """
    taken: Set[str] = set()
    chosen: List[Artifact] = []
    left_out: List[LeftOut] = []
    matches = {pattern: _matching(files, pattern) for pattern in patterns}
    named, ordered = sorted({name for names in matches.values() for name in names}), sorted(files)
    single = [*_models(files, named), *_keras(files, named), *_checkpoints(files, named, read), *_weights(files, named)]
    for artifact in single:
        members = [file for file in artifact.files if file.name not in taken]
        taken.update(file.name for file in members)
        _sort_out(Artifact(artifact.kind, artifact.name, members), files, chosen, left_out)
    for pattern, names in matches.items():
        rest = [
            _file(files, name) for name in names if name not in taken and not _is_of_checkpoint(name, pattern, ordered)
        ]
        taken.update(file.name for file in rest)
        if not names and pattern not in DEFAULT_PATTERNS:
            left_out.append(LeftOut(pattern, 0, NO_MATCH))
        for file in rest:
            if files[file.name].is_outside or not is_valid_name(file.name):
                _sort_out(Artifact(FILES, file.name, [file]), files, chosen, left_out)
        inside = [file for file in rest if not files[file.name].is_outside and is_valid_name(file.name)]
        if inside:
            chosen.append(Artifact(FILES, pattern, inside))
    return chosen, left_out


def _is_of_checkpoint(name: str, pattern: str, ordered: Sequence[str]) -> bool:
    """Whether a pattern for checkpoints matches this file, and not as a file: it names none, or is of an older one."""
    if posixpath.basename(pattern) == _CHECKPOINT or pattern == ANY_INDEX:
        return True
    is_index = pattern.endswith(_INDEX) and name.endswith(_INDEX)
    return is_index and any(_beginning_with(ordered, f"{name[: -len(_INDEX)]}.data-"))


def limited(artifacts: Sequence[Artifact], max_bytes: int, max_files: int) -> Tuple[List[Artifact], List[LeftOut]]:
    """The artifacts that are within the limits of a run, in their order, and the others."""
    fitting: List[Artifact] = []
    left_out: List[LeftOut] = []
    for artifact in artifacts:
        if artifact.size <= max_bytes and len(artifact.files) <= max_files:
            fitting.append(artifact)
            max_bytes, max_files = max_bytes - artifact.size, max_files - len(artifact.files)
        else:
            left_out.append(LeftOut(artifact.name, artifact.size, LIMIT))
    return fitting, left_out


def _sort_out(
    artifact: Artifact, files: Mapping[str, FileInfo], chosen: List[Artifact], left_out: List[LeftOut]
) -> None:
    """Without one of its files, a model or a checkpoint is not usable."""
    if not artifact.files:
        return
    if any(file.text is None and files[file.name].is_outside for file in artifact.files):
        left_out.append(LeftOut(_printable(artifact.name), artifact.size, OUTSIDE))
    elif not all(is_valid_name(file.name) for file in artifact.files):
        left_out.append(LeftOut(_printable(artifact.name), artifact.size, BAD_NAME))
    else:
        chosen.append(artifact)


def _printable(name: str) -> str:
    return name.encode("utf-8", "replace").decode()


def _file(files: Mapping[str, FileInfo], name: str) -> ArtifactFile:
    return ArtifactFile(name, files[name].size, str(files[name].changed))


def _newest_first(files: Mapping[str, FileInfo], names: Sequence[str]) -> List[str]:
    return sorted(names, key=lambda name: (-files[name].changed, name))


def _models(files: Mapping[str, FileInfo], named: Sequence[str]) -> Iterator[Artifact]:
    ordered = sorted(files)
    for name in _newest_first(files, [name for name in named if posixpath.basename(name) == _SAVED_MODEL]):
        folder = posixpath.dirname(name)
        parts = [f"{folder}/"] if folder else _MODEL_PARTS
        members = sorted({other for part in parts for other in _beginning_with(ordered, part)})
        yield Artifact(MODEL, folder or ".", [_file(files, member) for member in members])


def _beginning_with(ordered: Sequence[str], prefix: str) -> Iterator[str]:
    """The names that begin so, in a time that does not grow with the others."""
    for place in range(bisect_left(ordered, prefix), len(ordered)):
        if not ordered[place].startswith(prefix):
            return
        yield ordered[place]


def _keras(files: Mapping[str, FileInfo], named: Sequence[str]) -> Iterator[Artifact]:
    for name in _newest_first(files, [name for name in named if name.endswith(_KERAS)]):
        yield Artifact(KERAS, name, [_file(files, name)])


def _weights(files: Mapping[str, FileInfo], named: Sequence[str]) -> Iterator[Artifact]:
    """Files in HDF5, each with what belongs to it: the shards of a list, or the epoch that `BackupAndRestore` continues with."""
    ordered = sorted(files)
    lists = [name for name in named if name.endswith(_SHARDED)]
    for name in [*_newest_first(files, lists), *_newest_first(files, [it for it in named if it.endswith(_HDF5)])]:
        folder, base = posixpath.split(name)
        parts = [posixpath.join(folder, part) for part in _PARTS_OF_BACKUP] if base == _BACKUP else []
        shards = _beginning_with(ordered, f"{name[: -len(_SHARDED)]}_") if name.endswith(_SHARDED) else ()
        members = [*(part for part in parts if part in files), *(it for it in shards if it.endswith(_HDF5)), name]
        yield Artifact(WEIGHTS, name, [_file(files, member) for member in members])


def _checkpoints(files: Mapping[str, FileInfo], named: Sequence[str], read: Callable[[str], str]) -> Iterator[Artifact]:
    """The newest checkpoint of each folder. The file `checkpoint` is the last one: where it is, the others are."""
    ordered = sorted(files)
    folders: Set[str] = set()
    for name in _newest_first(files, [name for name in named if posixpath.basename(name) == _CHECKPOINT]):
        folder = posixpath.dirname(name)
        text = read(name)
        prefix = newest_checkpoint(text, folder, files)
        if prefix:
            folders.update((folder, posixpath.dirname(prefix)))
            relative = relative_checkpoint(posixpath.relpath(prefix, folder or "."))
            size, version = len(relative.encode()), f"text {files[name].changed}"
            yield _checkpoint(files, ordered, prefix, ArtifactFile(name, size, version, relative))
    for name in _newest_first(files, [name for name in named if name.endswith(_INDEX)]):
        artifact = _checkpoint(files, ordered, name[: -len(_INDEX)])
        if posixpath.dirname(name) not in folders and len(artifact.files) > 1:
            folders.add(posixpath.dirname(name))
            yield artifact


def _checkpoint(files: Mapping[str, FileInfo], ordered: Sequence[str], prefix: str, *last: ArtifactFile) -> Artifact:
    members = [*_beginning_with(ordered, f"{prefix}.data-"), f"{prefix}{_INDEX}"]
    return Artifact(CHECKPOINT, prefix, [*(_file(files, member) for member in members), *last])


def whole_checkpoints(artifacts: Sequence[Artifact]) -> List[Artifact]:
    """The checkpoints that a file `checkpoint` names, with all of their shards: other machines may have some. TensorFlow writes the
    shards, then the index, and the file `checkpoint` last: what that names is whole."""
    named = [it for it in artifacts if it.kind == CHECKPOINT and it.files[-1].text is not None]
    return [artifact for artifact in named if _has_all_shards(artifact)]


def _has_all_shards(checkpoint: Artifact) -> bool:
    matches = [_SHARD.fullmatch(file.name[len(checkpoint.name) :]) for file in checkpoint.files]
    counts = [int(match[1]) for match in matches if match]
    return bool(counts) and all(count == len(counts) for count in counts)


def newest_checkpoint(text: str, folder: str, files: Mapping[str, FileInfo]) -> str:
    """The path of the newest checkpoint below `train_dir`, without suffix, by the content of the file `checkpoint` in `folder`; empty
    where it is not there. TensorFlow writes absolute paths; a checkpoint that was moved is found by the end of its path."""
    matches = [match for match in map(_FIELD.fullmatch, text.split("\n")) if match]
    if not matches:
        return ""
    parts = _unescaped(matches[-1][1])[-MAX_NAME_BYTES:].strip("/").split("/")
    for count in range(len(parts), 0, -1):
        prefix = posixpath.normpath(posixpath.join(folder, *parts[-count:]))
        if f"{prefix}.index" in files:
            return prefix
    return ""


def relative_checkpoint(prefix: str) -> str:
    """The content of a file `checkpoint` that names one checkpoint by its path relative to the file."""
    path = _escaped(prefix)
    return f'model_checkpoint_path: "{path}"\nall_model_checkpoint_paths: "{path}"\n'


def _unescaped(text: str) -> str:
    """A string of protocol buffers' text format."""

    def replaced(match: "re.Match[bytes]") -> bytes:
        code = match[1].decode("latin-1")
        if code[0] in "01234567":
            return bytes([int(code, 8) & 255])
        if code[0] == "x" and len(code) > 1:
            return bytes([int(code[1:], 16)])
        return _ESCAPES.get(code, code).encode("latin-1")

    return re.sub(_ESCAPE.pattern.encode(), replaced, text.encode(), flags=re.DOTALL).decode("utf-8", "replace")


def _escaped(text: str) -> str:
    return "".join(
        f"\\{chr(byte)}" if byte in b'"\\' else chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"
        for byte in text.encode()
    )


def _matching(files: Mapping[str, FileInfo], pattern: str) -> List[str]:
    parts = pattern.strip("/").split("/")
    names = [name for name in sorted(files) if matches(name.split("/"), parts)]
    return [name for name in names if pattern not in DEFAULT_PATTERNS or not _OF_OTHER_WORKERS.search(name)]


def matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the parts of a path match those of a glob pattern. `**` stands for any number of folders, at the end for all below."""
    if not pattern or not parts:
        return not pattern and not parts
    if pattern[0] != "**":
        return _is_named(parts[0], pattern[0]) and matches(parts[1:], pattern[1:])
    return len(pattern) == 1 or any(matches(parts[begin:], pattern[1:]) for begin in range(len(parts)))


def _is_named(part: str, pattern: str) -> bool:
    try:
        return fnmatchcase(part, pattern)
    except re.error:  # of Python before 3.10.13, for a range whose ends are in reverse order
        return False
