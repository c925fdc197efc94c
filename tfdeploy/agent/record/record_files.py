"""The files of a record, in a list: what every copy of it is made from, on the user's computer, at another controller and in a bucket.

Output and events grow; states and artifacts are replaced. The list goes over what is in the folder, never over the tasks that a run
has today: what a removed task has printed is in every copy. The content of small files that are replaced is in the list itself, so that
they agree with each other. The watchdog on EC2 makes the same list for a bucket: it has no room for this module.
"""

import hashlib
import json
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, Collection, Dict, List, NamedTuple, Optional, Sequence

PART = 4 << 20
"""The most bytes of a record that one call moves, in any direction, and of an object in a bucket."""

MAX_NAME_BYTES, _MAX_PART_BYTES = 1024, 255
"""Of a path below a folder, and of each name in it."""

STATE_FILES = ("run_state.json", "run_state.copy")
"""The state of a run, twice: a crash of the machine damages one of them at most."""

SEARCH_FILE = "search.json"
"""In the folder of a run: what was found in its output, and how far that was searched."""

SINGLE_FILES = ("format", "record_id", "current")
_NOT_COPIED = ("artifacts.draft", STATE_FILES[1])
"""In the folder of a run: what has arrived of unfinished uploads, and what a copy makes itself."""

NAME = "[A-Za-z0-9][A-Za-z0-9_-]*"
"""Ids of runs and hostnames, which are names of folders."""

FOLDER_NAME = re.compile(NAME)

_GROWS = re.compile(rf"runs/{NAME}/(events\.jsonl|logs/{NAME}/[0-9]{{1,18}}\.log)")
_BY_HOSTNAME = ("tasks", "former")
"""In the state of a run: what has a member for each task, or for each one that it had."""

_RUN_DEPTH = 3
"""The number of the parts of `runs/ID/run_state.json`."""


class RecordFile(NamedTuple):
    """A file of a record, as it was when it was listed."""

    name: str
    """Its path in the record."""
    size: int
    sha256: str = ""
    """Of its first `size` bytes; empty where it is not known."""
    text: Optional[str] = None
    """The content of a small file that is replaced."""

    def to_list(self) -> List[Any]:
        """As JSON, without the name."""
        return [self.size, self.sha256] if self.text is None else [self.size, self.sha256, self.text]

    @classmethod
    def from_list(cls, name: str, item: List[Any]) -> "RecordFile":
        """From JSON, which may be of a cluster that is not trusted.

        Raises:
            ValueError, TypeError: it is none.
        """
        size, sha256, *text = item
        return cls(name, int(size), str(sha256), str(text[0]) if text else None)


class RecordList(NamedTuple):
    """The files of a record, or of some of its runs."""

    record_id: str
    at: float
    """When it was made, in seconds since 1970."""
    files: List[RecordFile]
    run: str = ""
    """The id of the current run."""
    runs: Sequence[str] = ()
    """The ids of all runs."""

    def text(self, name: str) -> str:
        """The content of a small file that is replaced; empty where the record does not have it."""
        return next((file.text or "" for file in self.files if file.name == name), "")

    def to_dict(self) -> Dict[str, Any]:
        """As JSON."""
        return {**self._asdict(), "files": {file.name: file.to_list() for file in self.files}}

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> "RecordList":
        """From JSON, which may be of a cluster that is not trusted.

        Raises:
            ValueError, KeyError, TypeError, AttributeError: it is none.
        """
        files = [RecordFile.from_list(str(name), item) for name, item in data["files"].items()]
        runs = [str(run) for run in data.get("runs", ())]
        return cls(str(data["record_id"]), float(data["at"]), files, str(data.get("run", "")), runs).checked()

    def checked(self) -> "RecordList":
        """This list, if the states of runs in it name no files outside of the record.

        Raises:
            ValueError: one does.
        """
        for file in self.files:
            if file.text is not None and is_state(file.name) and file.name != "current":
                check_run_state(file.name.split("/")[1], json.loads(file.text))
        return self


class Range(NamedTuple):
    """A part of a file."""

    name: str
    offset: int
    size: int


def is_valid_name(name: object) -> bool:
    """Whether it is a path below a folder, of a length that file systems accept."""
    if not isinstance(name, str) or not name or "\0" in name:
        return False
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        return False
    parts = name.split("/")
    is_short = len(encoded) <= MAX_NAME_BYTES and all(len(part.encode()) <= _MAX_PART_BYTES for part in parts)
    return is_short and all(part not in ("", ".", "..") for part in parts)


def check_run_state(run_id: str, state: Any) -> None:
    """Check the names in a run's state, which is JSON that comes from elsewhere: they become names of folders here.

    Raises:
        ValueError: it is no state, or that of another run, or a task has a name that no task has.
    """
    try:
        found = state["spec"]["id"]
        names = [task if isinstance(task, str) else task["hostname"] for task in state["spec"]["tasks"]]
        names += [task["hostname"] for task in state["tasks"].values()]
        names += [name for member in _BY_HOSTNAME for name in state.get(member, {})]
    except (KeyError, TypeError, AttributeError):
        raise ValueError(f"the state of the run {run_id!r} is damaged") from None
    if not FOLDER_NAME.fullmatch(run_id) or found != run_id:
        raise ValueError(f"the state of the run {run_id!r} is that of {found!r}")
    for name in names:
        if not isinstance(name, str) or not FOLDER_NAME.fullmatch(name):
            raise ValueError(f"the run {run_id!r} has a task {name!r}, which is not a name of a task")


def is_record_file(name: str) -> bool:
    """Whether a record may have a file of this name: nothing else is copied, wherever the list comes from."""
    parts = name.split("/")
    if name in SINGLE_FILES:
        return True
    if len(parts) < _RUN_DEPTH or parts[0] != "runs" or not FOLDER_NAME.fullmatch(parts[1]):
        return False
    if parts[2] == "artifacts":
        return is_valid_name("/".join(parts[3:]))
    if parts[2] == "logs":
        return grows(name)
    is_draft = parts[-1].startswith(".") or parts[-1].endswith(".draft")
    return is_valid_name("/".join(parts[2:])) and parts[2] not in _NOT_COPIED and not is_draft


def grows(name: str) -> bool:
    """Whether a file of a record only grows. The others are replaced."""
    return bool(_GROWS.fullmatch(name))


def is_state(name: str) -> bool:
    """Whether it says which run is the current one, or is the state of a run: what a list may have the content of, for a copy."""
    parts = name.split("/")
    return name == "current" or (is_record_file(name) and len(parts) == _RUN_DEPTH and parts[2] == STATE_FILES[0])


def is_search(name: str) -> bool:
    """Whether it has what was found in the output of a run: a list may have its content too."""
    return is_record_file(name) and name.split("/")[2:] == [SEARCH_FILE]


def is_artifact(name: str) -> bool:
    """Whether a file of a record is one of the user's program, which may have any name."""
    return name.split("/")[2:3] == ["artifacts"]


def list_files(folder: Path, runs: Optional[Collection[str]] = None) -> List[RecordFile]:
    """The files of a record, those of other runs than `runs` left out. A file that grows has no hash."""
    names = [name for name in SINGLE_FILES if _is_regular(folder / name)]
    for run in _names_in(folder / "runs"):
        for parent, folders, files in os.walk(str(folder / "runs" / run)) if runs is None or run in runs else ():
            folders.sort()
            names += [f"{parent[len(str(folder)) + 1 :]}/{file}" for file in files]
    hashes: Dict[str, str] = {}
    listed = []
    for name in sorted(filter(is_record_file, names)):
        file = _listed(folder, name)
        if file is not None and name.endswith("/artifacts.json"):
            hashes.update(_artifact_hashes(name.rpartition("/")[0], file.text or ""))
        if file is not None:
            listed.append(file)
    return [file._replace(sha256=hashes.get(file.name, "")) if is_artifact(file.name) else file for file in listed]


def _names_in(folder: Path) -> List[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def _is_regular(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _listed(folder: Path, name: str) -> Optional[RecordFile]:
    """A file of the list; None where it was deleted, or is damaged. For the state of a run its second file counts."""
    if grows(name) or is_artifact(name):
        with suppress(OSError):
            status = os.lstat(f"{folder}/{name}")
            return RecordFile(name, status.st_size) if stat.S_ISREG(status.st_mode) else None
        return None
    path = folder / name
    if not _is_regular(path):
        return None
    for each in [path.with_name(other) for other in STATE_FILES] if path.name in STATE_FILES else [path]:
        with suppress(OSError, ValueError, RecursionError):
            content = each.read_bytes()
            if path.suffix == ".json":
                json.loads(content)
            return small_file(name, content.decode())
    return None


def small_file(name: str, text: str) -> RecordFile:
    """A file of a list with its content."""
    return RecordFile(name, len(text.encode()), hashlib.sha256(text.encode()).hexdigest(), text)


def _artifact_hashes(run_folder: str, text: str) -> Dict[str, str]:
    """The hashes of a run's artifacts, from the list of them."""
    try:
        files = [file for artifact in json.loads(text)["artifacts"] for file in artifact["files"]]
        return {f"{run_folder}/artifacts/{file['name']}": str(file["sha256"]) for file in files}
    except (ValueError, KeyError, TypeError):
        return {}


def read_ranges(folder: Path, ranges: Sequence[Range]) -> List[bytes]:
    """The bytes of these ranges, from the first on, of `PART` bytes together; fewer of a file that is shorter, or was deleted.

    Raises:
        ValueError: one is not of a file of a record.
    """
    parts, left = [], PART
    for part in ranges:
        if not is_record_file(part.name):
            raise ValueError(f"{part.name!r} is not a file of a record")
        if left > 0:
            parts.append(b"")
            with suppress(FileNotFoundError), (folder / part.name).open("rb") as file:
                file.seek(max(0, part.offset))
                parts[-1] = file.read(max(0, min(part.size, left)))
            left -= len(parts[-1])
    return parts
