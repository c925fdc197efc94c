"""Uploads the controller's record to the bucket: what has grown since, and after each slice of time the list of what is whole,
`record/current.json`.

Files only grow, but artifacts are replaced. A file is uploaded in parts of `PART` bytes, each an object, so that a log that grows is
not uploaded again as a whole. The folders of the record take turns: however much is written, each is uploaded in the end.

A checkpoint may be replaced at any time, also while it is uploaded. So the artifacts of a run are uploaded from links to them, as they
are at one moment. Their objects have places, which are used again when the list names them no longer, and the list has the former
artifacts of a run until the new ones are whole. The list is on the disk as well, for the next watchdog.
"""

import hashlib
import json
import os
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

LIST = "record/current.json"
EVERY = 300.0
"""Seconds between two uploads while the record changes."""

AT_ONCE = 30.0
"""The most seconds of one upload; the next one continues it."""

PART = 4 << 20
"""The bytes of a part, as everywhere in tfdeploy. The last part of a file is uploaded again when it has grown."""

_STATE_FILES = ("run_state.json", "run_state.copy")
"""The state of a run, twice: a crash of the machine damages one of them at most."""

_TEXT = re.compile(r"record_id|format|current|runs/[^/]+/(run_state|search)\.json")
"""Files that are replaced. Their content is in the list itself, so that they agree when an upload is cut short."""

_DATA = re.compile(r"runs/[^/]+/(events\.jsonl|logs/[^/]+/[^/]+\.log)|uploading/[^/]+/artifacts(\.json|/.+)", re.DOTALL)
"""Files that only grow, and links to artifacts. The rest of the controller's folder is not the record."""

_ARTIFACTS = re.compile(r"runs/([^/]+)/artifacts[./]")

_LINKS, _MANIFEST, _LISTED = "uploading", "artifacts.json", "uploaded.json"
"""The folder of the links, the list of a run's artifacts, and the list of the record as it was uploaded last."""

_PROBLEM = "upload_problem"
"""The file by which the controller learns why uploads fail."""

_LONGEST_NAME = 700
"""Bytes. S3 has 1024, with the folder of the cluster."""


Entry = List[object]
"""A file in the list: its size, its SHA-256, and its content if it is a `_TEXT` or a list of artifacts; for an artifact an empty
content and its place, which are not listed there."""


class _OutOfTime(Exception):
    """The upload has taken `AT_ONCE`."""


class _Sent(NamedTuple):
    """What is uploaded of a file."""

    changed: int
    """When the file had changed last, in nanoseconds."""
    size: int
    hash: Any
    """The SHA-256 of its first `size` bytes."""
    tail: str
    """That of those of them that are in its last part."""
    place: str = ""
    """Of an artifact: the name of its objects."""


class RecordUpload:
    """Uploads the record in `folder` with `put`."""

    def __init__(self, folder: Path, put: Callable[[str, bytes], None]) -> None:
        self._folder, self._put = folder, put
        self._next = 0.0
        self._start("")

    def _start(self, record_id: str) -> None:
        self._record_id = record_id
        self._sent: Dict[str, _Sent] = {}
        self._turns: List[str] = []
        self._listed = self._listed_before()
        self._whole: Dict[str, Dict[str, Entry]] = {}
        for name, entry in self._listed.items():
            match = _ARTIFACTS.match(name)
            if match:
                self._whole.setdefault(f"{_LINKS}/{match[1]}", {})[name] = entry
        self._born = int(time.time())  # a watchdog on another machine has listed places, too
        self._result: Tuple[str, str] = ("", "")

    def due(self) -> bool:
        """True when the interval is over, or the run has a new result."""
        return time.monotonic() >= self._next or self.run_result() != self._result

    def upload(self) -> bool:
        """Upload what has changed; True when all files are uploaded as they are now.

        Raises:
            OSError: a file could not be uploaded. What was uploaded is not sent again.
        """
        end = self._next = time.monotonic() + AT_ONCE
        record_id = (self._folder / "record_id").read_text()
        if record_id != self._record_id:
            self._start(record_id)
        is_new_round = not self._turns
        if is_new_round:
            self._link_artifacts()
        result, names = self.run_result(), self._names()
        self._sent = {name: self._sent[name] for name in names if name in self._sent}
        folders: Dict[str, List[str]] = {}
        for name in filter(_DATA.fullmatch, names):
            folders.setdefault(_folder_of(name), []).append(name)
        self._turns = self._turns or list(folders)
        are_whole, error = False, None
        try:
            are_whole = self._upload_folders(folders, end)
        except OSError as failed:
            self._turns.append(self._turns.pop(0))
            error = failed
        self._whole = {
            folder: whole for folder, whole in self._whole.items() if folder in folders or self._has_run(folder)
        }
        self._put_list({name: _text(self._folder / name) for name in filter(_TEXT.fullmatch, names)}, result)
        if error:
            raise error
        self._next = 0.0 if self._turns else time.monotonic() + (EVERY if are_whole else AT_ONCE)
        return is_new_round and are_whole and not self._turns

    def note_problem(self, problem: str) -> None:
        """Note why the upload failed; empty if it succeeded."""
        path = self._folder / _PROBLEM
        with suppress(OSError):
            if problem:
                path.write_text(problem)
            else:
                path.unlink()

    def _listed_before(self) -> Dict[str, Entry]:
        """What the watchdog before this one has listed."""
        with suppress(OSError, ValueError, KeyError):
            data = json.loads((self._folder / _LISTED).read_text())
            if data["record_id"] == self._record_id:
                places = data["places"]
                listed = data["files"].items()
                return {name: [*entry, "", places[name]] if name in places else entry for name, entry in listed}
        return {}

    def _link_artifacts(self) -> None:
        """Link the artifacts of each run as they are now."""
        manifests = {path.parent.name: path for path in self._folder.glob(f"runs/*/{_MANIFEST}") if _is_file(path)}
        for links in self._folder.glob(f"{_LINKS}/*"):
            if links.name not in manifests:
                shutil.rmtree(str(links))
        for run, manifest in manifests.items():
            links = self._folder / _LINKS / run
            linked = links / _MANIFEST
            if linked.exists() and linked.samefile(manifest):
                continue
            shutil.rmtree(str(links), ignore_errors=True)
            for path in [*filter(_is_file, manifest.with_name("artifacts").rglob("*")), manifest]:
                link = links / path.relative_to(manifest.parent)
                with suppress(OSError):  # it was replaced, or the disk is full: what is linked is not whole then
                    link.parent.mkdir(parents=True, exist_ok=True)
                    os.link(str(path), str(link))

    def _has_run(self, folder: str) -> bool:
        """Whether these are links to artifacts of a run that exists."""
        return _is_link(folder) and (self._folder / _listed_name(folder) / _MANIFEST).exists()

    def _names(self) -> List[str]:
        """The files of the folder."""
        files = sorted(filter(_is_file, self._folder.rglob("*")))
        return [path.relative_to(self._folder).as_posix() for path in files]

    def _upload_folders(self, folders: Dict[str, List[str]], end: float) -> bool:
        """Whether no artifacts were replaced while they were linked."""
        are_whole = True
        while self._turns and time.monotonic() < end:
            folder = self._turns[0]
            try:
                entries = {_listed_name(name): self._upload_file(name, end) for name in folders.get(folder, [])}
            except _OutOfTime:
                break
            self._turns.pop(0)
            whole = {name: entry for name, entry in entries.items() if entry}
            is_whole = _has_all(whole, folder)
            if is_whole or folder not in self._whole:
                self._whole[folder] = whole
            if not is_whole:
                are_whole = False
                with suppress(OSError):
                    (self._folder / folder / _MANIFEST).unlink()
        return are_whole

    def _upload_file(self, name: str, end: float) -> Entry:
        """The entry of the file; empty where it has been deleted: the oldest part of a log is, while the log grows."""
        path = self._folder / name
        if path.name == _MANIFEST and name.count("/") == 2:
            return _text(path)
        try:
            stat = path.stat()
            sent = self._sent.get(name)
            if sent is None or (sent.changed, sent.size) != (stat.st_mtime_ns, stat.st_size):
                if sent is not None and _is_link(name) and sent.changed != stat.st_mtime_ns:
                    del self._sent[name]  # it was replaced: nothing that was sent is a part of the new one for certain
                sent = self._upload_growth(path, name, stat, end)
                self._sent[name] = sent._replace(changed=stat.st_mtime_ns)
        except FileNotFoundError:
            return []
        entry = [sent.size, sent.hash.hexdigest()]
        return [*entry, "", sent.place] if sent.place else entry

    def _upload_growth(self, path: Path, name: str, stat: os.stat_result, end: float) -> _Sent:
        """Upload the parts of a file from the first that has grown. A file that has not only grown is uploaded from its start."""
        size = stat.st_size
        sent = self._sent.get(name) or _nothing()
        with path.open("rb") as file:
            begin = sent.size // PART * PART
            file.seek(begin)
            before = file.read(sent.size - begin)
            if size < sent.size or hashlib.sha256(before).hexdigest() != sent.tail:
                sent, begin, before = _nothing(), 0, b""
                file.seek(0)
            if not sent.size and _is_link(name):
                sent = sent._replace(place=self._free_place(name))
            while sent.size < size:
                if time.monotonic() >= end:
                    raise _OutOfTime
                growth = file.read(min(begin + PART, size) - sent.size)
                if not growth:
                    break
                content = before + growth
                key = part_name(name, begin // PART, sent.place)
                self._put(f"record/{self._record_id}/{key}", content)
                is_full = len(content) == PART
                hash_ = sent.hash.copy()
                hash_.update(growth)
                tail = hashlib.sha256(b"" if is_full else content).hexdigest()
                sent = self._sent[name] = _Sent(stat.st_mtime_ns, begin + len(content), hash_, tail, sent.place)
                begin, before = (begin + PART, b"") if is_full else (begin, content)
        return sent

    def _free_place(self, name: str) -> str:
        """Where an artifact is uploaded to: nothing that is listed, and no other artifact, is there."""
        used = [sent.place for sent in self._sent.values()] + [entry[-1] for entry in self._listed.values()]
        run = name.split("/")[1]
        places = (f"runs/{run}/artifacts@{self._born}.{number}" for number in range(len(used) + 1))
        return next(place for place in places if place not in used)

    def _put_list(self, texts: Dict[str, Entry], result: Tuple[str, str]) -> None:
        """List what is whole, and the files whose content is in the list."""
        files = {name: entry for name, entry in texts.items() if entry}
        for whole in self._whole.values():
            files.update(whole)
        if files == self._listed and result == self._result:
            return
        run, state = result
        data = {"record_id": self._record_id, "run": run, "result": state or None, "at": time.time(), "part": PART}
        places = {name: entry[3] for name, entry in files.items() if len(entry) > 3}
        listed = {name: entry[: 2 if name in places else 3] for name, entry in files.items()}
        text = json.dumps({**data, "files": listed, "places": places})
        self._put(LIST, text.encode())
        self._listed, self._result = files, result
        with suppress(OSError):
            (self._folder / _LISTED).write_text(text)

    def run_result(self) -> Tuple[str, str]:
        """The current run and its result; each may be empty."""
        try:
            run = (self._folder / "current").read_text()
        except (OSError, ValueError):
            return "", ""
        for name in _STATE_FILES:
            with suppress(OSError, ValueError, KeyError, TypeError):
                state = json.loads((self._folder / "runs" / run / name).read_text())
                return run, state["result"]["state"] if state["result"] else ""
        return "", ""


def part_name(name: str, number: int, place: str = "") -> str:
    """The name of a part of a file in the bucket. A file without a place has its own name there, without the signs that name parts. A
    name that is too long for S3 is replaced by its hash."""
    if place:
        return f"{place}@{number}"
    escaped = name.replace("%", "%25").replace("@", "%40")
    if len(escaped.encode()) > _LONGEST_NAME:
        folder = "/".join(name.split("/")[:2])
        escaped = f"{folder}/long/{hashlib.sha256(name.encode()).hexdigest()}"
    return f"{escaped}@{number}" if number else escaped


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _is_link(name: str) -> bool:
    return name.startswith(f"{_LINKS}/")


def _folder_of(name: str) -> str:
    """The folder of files that are uploaded in one turn. The artifacts of a run have one turn together."""
    return "/".join(name.split("/")[:2]) if _is_link(name) else name.rpartition("/")[0]


def _listed_name(name: str) -> str:
    """The name in the list of a file of the folder."""
    return f"runs{name[len(_LINKS) :]}" if _is_link(name) else name


def _has_all(files: Dict[str, Entry], folder: str) -> bool:
    """Whether the artifacts of a run are among these files as their manifest has them."""
    prefix = f"{_listed_name(folder)}/artifacts"
    if _is_link(folder) and f"{prefix}.json" not in files:
        return False
    with suppress(ValueError, KeyError, TypeError):
        artifacts = json.loads(str(files[f"{prefix}.json"][2]))["artifacts"]
        listed = [file for artifact in artifacts for file in artifact["files"]]
        return all(file["sha256"] in ("", *files.get(f"{prefix}/{file['name']}", ())[1:2]) for file in listed)
    return True


def _text(path: Path) -> Entry:
    """The entry of a file with its content; empty where it is damaged or was deleted. For the state of a run its second file counts."""
    for each in [path.with_name(name) for name in _STATE_FILES] if path.name in _STATE_FILES else [path]:
        with suppress(OSError, ValueError):
            content = each.read_bytes()
            if path.suffix == ".json":
                json.loads(content)
            return [len(content), hashlib.sha256(content).hexdigest(), content.decode()]
    return []


def _nothing() -> _Sent:
    return _Sent(0, 0, hashlib.sha256(), hashlib.sha256().hexdigest())
