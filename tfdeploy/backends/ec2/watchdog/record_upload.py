"""Uploads the controller's record to the bucket: what has changed since, and after each slice of time the list of what is whole,
`record/current.json`. It is the list of every copy, and a range is an object: a part of `PART` bytes.

A round goes over all files, a part at a time. A part that is as it was is not sent again, so a log that grows is not uploaded as a
whole; and however much is written, each file is uploaded in the end.

A checkpoint may be replaced at any time, also while it is uploaded. So the artifacts of a run are opened together, by its list of them.
Their objects have places, which are used again when the list in the bucket names them no longer, and that has the former artifacts of a
run until the new ones are whole. It is on the disk as well, for the next watchdog.
"""

import hashlib
import json
import os
import time
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import IO, Any, Callable, Dict, Generator, List, NamedTuple, Optional, Tuple

LIST = "record/current.json"
EVERY = 300.0
"""Seconds between two uploads while the record changes."""

AT_ONCE = 30.0
"""The most seconds of one upload; the next one continues it."""

PART = 4 << 20
"""The bytes of a part, as everywhere in tfdeploy. The last part of a file is uploaded again when it has grown."""

_STATE_FILES = ("run_state.json", "run_state.copy")
"""The state of a run, twice: a crash of the machine damages one of them at most."""

_TEXTS = ("record_id", "format", "current", "runs/*/run_state.json", "runs/*/search.json")
"""Files that are replaced. Their content is in the list itself, so that they agree when an upload is cut short."""

_GROWING = ("runs/*/events.jsonl", "runs/*/logs/*/*.log")
_MANIFEST, _LISTED = "artifacts.json", "uploaded.json"
"""The list of a run's artifacts, and the list of the record as it was uploaded last."""

_PROBLEM = "upload_problem"
"""The file by which the controller learns why uploads fail."""

_LONGEST_NAME = 700
"""Bytes. S3 has 1024, with the folder of the cluster."""


Entry = List[Any]
"""A file in the list: its size, its SHA-256, and its content if it is one of `_TEXTS` or a list of artifacts; for an artifact an empty
content and its place, which are not listed there."""

Upload = Generator[None, None, Entry]
"""Yields between parts; the entry of the file."""


class _Sent(NamedTuple):
    """What is uploaded of a file."""

    parts: List[str]
    """The hashes of its parts."""
    seen: Tuple[int, ...] = ()
    """Size and time of its last change, once it was uploaded."""


class _Artifact(NamedTuple):
    """What is uploaded of one version of an artifact's file."""

    place: str
    """The name of its objects."""
    parts: List[str]
    entry: Entry
    """Empty until it is whole."""


class RecordUpload:
    """Uploads the record in `folder` with `put`."""

    def __init__(self, folder: Path, put: Callable[[str, bytes], None]) -> None:
        self._folder, self._put = folder, put
        self._next = 0.0
        self._start("")

    def _start(self, record_id: str) -> None:
        self._record_id = record_id
        self._round: Optional[Generator[None, None, None]] = None
        self._error: Optional[OSError] = None
        self._sent: Dict[str, _Sent] = {}
        self._artifacts: Dict[str, _Artifact] = {}
        self._is_whole = True
        self._listed = self._listed_before()
        self._data: Dict[str, Entry] = {}
        self._stored: Dict[str, Dict[str, Entry]] = {}
        for name, entry in self._listed.items():
            if name.split("/")[2:3] in (["artifacts"], [_MANIFEST]):
                self._stored.setdefault(name.split("/")[1], {})[name] = entry
            elif not entry[2:]:
                self._data[name] = entry
            if entry[3:]:
                self._artifacts[entry[1]] = _Artifact(entry[3], [], entry)
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
        self._error = None
        record_id = (self._folder / "record_id").read_text()
        if record_id != self._record_id:
            self._start(record_id)
        is_new_round = self._round is None
        if self._round is None:
            self._round, self._is_whole = self._upload_all(), True
        result = self.run_result()
        while self._round is not None and time.monotonic() < end:
            if next(self._round, True):
                self._round = None
        self._put_list(result)
        if self._error:
            raise self._error
        if self._round is not None:
            self._next = 0.0
            return False
        self._next = time.monotonic() + (EVERY if self._is_whole else AT_ONCE)
        return is_new_round and self._is_whole

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

    def _upload_all(self) -> Generator[None, None, None]:
        """One round. A file that cannot be uploaded does not keep the others back."""
        names, manifests = self._names(*_GROWING), self._names(f"runs/*/{_MANIFEST}")
        self._sent = {name: self._sent[name] for name in names if name in self._sent}
        self._data = {name: self._data[name] for name in names if name in self._data}
        runs = {name.split("/")[1] for name in manifests}
        self._stored = {run: files for run, files in self._stored.items() if run in runs}
        for name in names:
            yield
            yield from self._tried(self._upload_growth(name))
        for name in manifests:
            yield
            yield from self._tried(self._upload_artifacts(name))

    def _tried(self, upload: Generator[None, None, None]) -> Generator[None, None, None]:
        try:
            yield from upload
        except OSError as error:
            self._error, self._is_whole = error, False

    def _names(self, *patterns: str) -> List[str]:
        """The files with names of these patterns."""
        paths = (path for pattern in patterns for path in self._folder.glob(pattern))
        return sorted(path.relative_to(self._folder).as_posix() for path in paths if _is_file(path))

    def _upload_growth(self, name: str) -> Generator[None, None, None]:
        """Upload what has changed of a file; none where it has been deleted: the oldest piece of a log is, while the log grows."""
        path, sent = self._folder / name, self._sent.setdefault(name, _Sent([]))
        try:
            stat = path.stat()
            seen = (stat.st_size, stat.st_mtime_ns)
            if sent.seen != seen:
                with path.open("rb") as file:
                    self._data[name] = yield from self._upload_parts(file, name, "", sent.parts)
                self._sent[name] = sent._replace(seen=seen)
        except FileNotFoundError:
            self._data.pop(name, None)

    def _upload_parts(self, file: IO[bytes], name: str, place: str, sent: List[str]) -> Upload:
        """Upload the parts of a file that are not as they were sent."""
        size, digest = 0, hashlib.sha256()
        for number in count():
            content = file.read(PART)
            part = hashlib.sha256(content).hexdigest()
            if content and sent[number : number + 1] != [part]:
                self._put(f"record/{self._record_id}/{part_name(name, number, place)}", content)
                sent[number:] = [part]
            size += len(content)
            digest.update(content)
            if len(content) < PART:
                break
            yield
        return [size, digest.hexdigest()]

    def _upload_artifacts(self, manifest: str) -> Generator[None, None, None]:
        """Upload the artifacts of a run as they are at one moment. Those that are listed stay until all of the new ones are whole."""
        run = manifest.split("/")[1]
        text = _text(self._folder / manifest)
        files = {f"runs/{run}/artifacts/{name}": sha256 for name, sha256 in _listed_files(text).items()}
        stored = {manifest: text} if text else {}
        with ExitStack() as stack:
            opened: Dict[str, IO[bytes]] = {}
            for name in files.keys() & {*self._names(f"runs/{run}/artifacts/**/*")}:
                with suppress(FileNotFoundError):
                    opened[name] = stack.enter_context((self._folder / name).open("rb"))
            for name, file in sorted(opened.items()):
                yield
                entry = yield from self._upload_artifact(name, files[name], file, stored)
                if entry:
                    stored[name] = entry
        is_whole = files.keys() < stored.keys()
        if is_whole or run not in self._stored:
            self._stored[run] = stored
        self._is_whole &= is_whole

    def _upload_artifact(self, name: str, sha256: str, file: IO[bytes], stored: Dict[str, Entry]) -> Upload:
        """The entry of a file with this hash; empty where it has another one. One that is uploaded already is the same file."""
        stat = os.fstat(file.fileno())
        version = sha256 or f"{name} {stat.st_size} {stat.st_mtime_ns}"
        artifact = self._artifacts.get(version) or _Artifact(self._free_place(name, stored), [], [])
        if artifact.entry:
            return artifact.entry
        self._artifacts = {key: item for key, item in self._artifacts.items() if item.place != artifact.place}
        self._artifacts[version] = artifact
        entry = yield from self._upload_parts(file, name, artifact.place, artifact.parts)
        if sha256 not in ("", entry[1]):
            return []
        self._artifacts[version] = artifact._replace(entry=[*entry, "", artifact.place])
        return self._artifacts[version].entry

    def _free_place(self, name: str, stored: Dict[str, Entry]) -> str:
        """Where a file is uploaded to: nothing that is listed, or about to be, is there."""
        used = {
            entry[3]
            for files in (self._listed, stored, *self._stored.values())
            for entry in files.values()
            if entry[3:]
        }
        places = (f"runs/{name.split('/')[1]}/artifacts@{self._born}.{number}" for number in count())
        return next(place for place in places if place not in used)

    def _put_list(self, result: Tuple[str, str]) -> None:
        """List what is whole, and the files whose content is in the list."""
        files = {name: entry for name in self._names(*_TEXTS) if (entry := _text(self._folder / name))}
        files.update(self._data)
        for stored in self._stored.values():
            files.update(stored)
        if files == self._listed and result == self._result:
            return
        run, state = result
        data = {"record_id": self._record_id, "run": run, "result": state or None, "at": time.time(), "part": PART}
        places = {name: entry[3] for name, entry in files.items() if entry[3:]}
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


def _listed_files(manifest: Entry) -> Dict[str, str]:
    """The files in a list of artifacts, and their hashes; empty where a hash is not known."""
    with suppress(ValueError, KeyError, TypeError, IndexError):
        artifacts = json.loads(manifest[2])["artifacts"]
        return {file["name"]: file["sha256"] for artifact in artifacts for file in artifact["files"]}
    return {}


def _text(path: Path) -> Entry:
    """The entry of a file with its content; empty where it is damaged or was deleted. For the state of a run its second file counts."""
    for each in [path.with_name(name) for name in _STATE_FILES] if path.name in _STATE_FILES else [path]:
        with suppress(OSError, ValueError):
            content = each.read_bytes()
            if path.suffix == ".json":
                json.loads(content)
            return [len(content), hashlib.sha256(content).hexdigest(), content.decode()]
    return []
