"""The launcher's side of an upload: it lists the artifacts below `train_dir`, appends parts of their files, and ends the upload.

A call that fails ends the attempt. The next attempt, also of another launcher, continues where the controller has the beginning.
"""

import hashlib
import io
import os
import stat
import time
from pathlib import Path
from typing import (
    IO,
    TYPE_CHECKING,
    Any,
    Callable,
    Collection,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)
from urllib.parse import quote

from ..model.sync import UploadRequest
from ..record.artifact_selection import OWN_FILES, Artifact, ArtifactFile, FileInfo, choose, limited, whole_checkpoints
from ..record.record_files import PART
from ..record.stored_artifact import (
    CHANGED,
    LIMIT,
    MAX_BYTES,
    MAX_FILES,
    OTHER_MACHINE,
    UNREADABLE,
    WRONG_HASH,
    LeftOut,
)
from ..wire.rpc import Client
from .artifact_restore import without_restored

if TYPE_CHECKING:
    from ..record.artifact_store import Drafts  # of the controller

_TRIES = 3
"""How often files that change meanwhile are searched again, and a file is sent again that arrives with another hash."""

_MAX_SCANNED = 200_000
"""So many files below `train_dir` are searched."""

_MAX_CHECKPOINT_FILE = 1 << 20

_REST, _LONGEST_REST = 3.0, 2.0
"""While the program runs, each part is followed by a pause of so many times its own seconds, and of at most so many seconds: network
and disks are the program's."""

_MAX_OPEN = 200
"""The files of an artifact are opened before the first is sent, if they are not more: TensorFlow deletes old checkpoints meanwhile."""

LOOK_SECONDS = 2.0
"""The shortest time between two looks at `train_dir`, unless uploads may follow each other faster."""

_LOOK_RATIO = 100.0
"""A look takes at most one part in so many of the time."""


class Interrupted(Exception):
    """The launcher has to end."""


class _LeaveOut(Exception):
    """An artifact cannot be uploaded, for the reason in the argument."""


class CheckpointWatch:
    """Which checkpoints were found at the last look while the program runs, and which were uploaded last. A program that writes each
    under the same name replaces one file after another: it is waited for until nothing changes."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._seen: Dict[str, Union[Artifact, LeftOut]] = {}
        self._sent: Sequence[Union[Artifact, LeftOut]] = []
        self._due = 0.0

    def is_due(self, found: Sequence[Union[Artifact, LeftOut]], now: float) -> bool:
        """Whether this is uploaded now: it is not what was uploaded last, that was long enough ago, and nothing of it has changed
        under the same name since the last look."""
        is_written = any(self._seen.get(item.name, item) != item for item in found)
        self._seen = {item.name: item for item in found}
        return found != self._sent and not is_written and now >= self._due

    def note_sent(self, found: Sequence[Union[Artifact, LeftOut]], begin: float) -> None:
        """This was uploaded, from `begin` on."""
        self._sent, self._due = found, begin + self._interval

    def pause(self, seconds: float) -> float:
        """The seconds until the next look, after one that took so long."""
        return min(max(LOOK_SECONDS, _LOOK_RATIO * seconds), self._interval)


class ArtifactSender:
    """Uploads what a run has in `train_dir`: at its end all artifacts, before that the newest checkpoints, if they are due."""

    def __init__(self, client: Client, hostname: str, request: UploadRequest, wait: Callable[[float], bool]) -> None:
        """`wait` waits for so many seconds, and returns whether the upload has to end."""
        self._client = client
        self._path = f"/artifacts/{quote(request.run_id)}/{quote(hostname)}"
        self._root = Path(request.train_dir)
        self._patterns = request.patterns
        self._interval = request.interval
        self._watch = CheckpointWatch(request.interval)
        self._wait = wait
        self.pause = 0.0
        """Seconds until the next look for a newer checkpoint."""

    def send(self) -> None:
        """Upload.

        Raises:
            Interrupted: the launcher must end; the next one continues.
            OSError, CallError: the controller does not respond, or returned an error.
        """
        if self._interval:
            self._send_newest()
        else:
            self._send_everything()

    def _send_newest(self) -> None:
        """Upload the newest checkpoints, if they are due. One that is deleted or changes meanwhile is left to the next look."""
        begin = time.monotonic()
        fitting, left_out = self._find()
        self.pause = self._watch.pause(time.monotonic() - begin)
        if self._watch.is_due([*fitting, *left_out], begin):
            failed = self._send_all(fitting)
            if all(item.reason != CHANGED for item in failed):
                self._end(fitting, [*left_out, *failed])
                self._watch.note_sent([*fitting, *left_out], begin)

    def _send_everything(self) -> None:
        """Upload all artifacts. What has changed meanwhile is searched again."""
        unreadable: Dict[str, LeftOut] = {}
        for _ in range(_TRIES):
            artifacts, left_out = self._find()
            failed = self._send_all([item for item in artifacts if item.name not in unreadable])
            unreadable.update({item.name: item for item in failed if item.reason != CHANGED})
            changed = [item for item in failed if item.reason == CHANGED]
            if not changed:
                break
        self._end(artifacts, [*left_out, *unreadable.values(), *changed])

    def give_up(self, reason: str) -> None:
        """Report that what is not stored cannot be uploaded."""
        artifacts, left_out = self._find()
        lacking = [item for item, drafts in zip(artifacts, self._wanted(artifacts)) if drafts]
        self._end(artifacts, [*left_out, *(LeftOut(item.name, item.size, reason) for item in lacking)])
        self._watch.note_sent([*artifacts, *left_out], time.monotonic())

    def _end(self, sent: Sequence[Artifact], left_out: List[LeftOut]) -> None:
        missing = {item.name for item in left_out}
        names = [artifact.name for artifact in sent if artifact.name not in missing]
        body = {"names": names, "left_out": [item.to_dict() for item in left_out], "at_end": not self._interval}
        self._client.json("POST", self._path, body)

    def _find(self) -> Tuple[List[Artifact], List[LeftOut]]:
        files, is_complete = scan(self._root)
        chosen, left_out = choose(files, self._patterns, self._read_text)
        artifacts = list(without_restored(self._root, chosen))
        excess = [] if is_complete else [LeftOut(self._root.name, 0, LIMIT)]
        if self._interval:
            artifacts, left_out, excess = whole_checkpoints(artifacts), [], []
        fitting, too_large = limited(artifacts, MAX_BYTES, MAX_FILES)
        return fitting, [*left_out, *too_large, *excess]

    def _read_text(self, name: str) -> str:
        try:
            with (self._root / name).open("rb") as file:
                return file.read(_MAX_CHECKPOINT_FILE).decode("utf-8", "replace")
        except OSError:
            return ""

    def _send_all(self, artifacts: List[Artifact]) -> List[LeftOut]:
        """Send all files that are wanted; the artifacts that cannot be sent."""
        return list(filter(None, map(self._failure, artifacts, self._wanted(artifacts))))

    def _wanted(self, artifacts: List[Artifact]) -> "List[Drafts]":
        """Which files of each artifact the record does not have."""
        if not artifacts:
            return []
        body = {"artifacts": [_listed(artifact, {}) for artifact in artifacts], "at_end": not self._interval}
        wanted: List[Drafts] = self._client.json("PUT", self._path, body)["drafts"]
        return wanted

    def _failure(self, artifact: Artifact, drafts: "Drafts") -> Optional[LeftOut]:
        """Send an artifact; None if that has not failed."""
        try:
            self._send(artifact, drafts)
        except _LeaveOut as error:
            return LeftOut(artifact.name, artifact.size, str(error))
        return None

    def _send(self, artifact: Artifact, drafts: "Drafts") -> None:
        """Send what is wanted of an artifact, until it is stored. What arrives with another hash is sent again."""
        hashes: Dict[str, str] = {}
        for _ in range(_TRIES):
            wanted = [file for file in artifact.files if file.name in drafts]
            if not wanted:
                return
            for file, content in zip(wanted, self._opened(wanted)):
                with content:
                    hashes[file.name] = self._send_file(file, content, *drafts[file.name])
            response = self._client.json("POST", f"{self._path}/whole", _listed(artifact, hashes))
            if response["is_refused"]:
                raise _LeaveOut(OTHER_MACHINE)
            drafts = response["drafts"]
        if drafts:
            raise _LeaveOut(WRONG_HASH)

    def _opened(self, files: Collection[ArtifactFile]) -> "Iterable[IO[bytes]]":
        """The files of an artifact: if they are not too many, all are opened before the first is sent."""
        opened = (_open(self._root, file) for file in files)
        return list(opened) if len(files) <= _MAX_OPEN else opened

    def _send_file(self, file: ArtifactFile, content: "IO[bytes]", draft: str, end: int) -> str:
        """Read a file, and send what is beyond `end`, which the controller has already; its hash."""
        hash_, position, rest = hashlib.sha256(), 0, 0.0
        while position < file.size:
            if self._wait(rest):
                raise Interrupted
            begin = time.monotonic()
            is_known = position < end
            data = _read(content, min(PART, (end if is_known else file.size) - position))
            hash_.update(data)
            if not is_known:
                self._client.json_bytes("PUT", f"{self._path}/{draft}/{position}", data)
            position += len(data)
            if self._interval and not is_known:
                rest = min(_REST * (time.monotonic() - begin), _LONGEST_REST)
        _refuse_changed(content, self._root, file, bool(self._interval))
        return hash_.hexdigest()


def _listed(artifact: Artifact, hashes: Mapping[str, str]) -> Dict[str, Any]:
    files = [
        {"name": file.name, "size": file.size, "version": file.version, "sha256": hashes.get(file.name, "")}
        for file in artifact.files
    ]
    return {"kind": artifact.kind, "name": artifact.name, "files": files}


def scan(root: Path) -> Tuple[Dict[str, FileInfo], bool]:
    """The files below a folder by their paths, without tfdeploy's own, and whether these are all. Folders that are links are not
    searched."""
    files: Dict[str, FileInfo] = {}
    real_root = os.path.realpath(str(root))
    for folder, folders, names in os.walk(str(root)):
        folders[:] = _without_own(folders)
        for name in _without_own(names):
            path = Path(folder) / name
            try:
                info = path.stat()
            except OSError:
                continue
            if not stat.S_ISREG(info.st_mode):
                continue
            if len(files) >= _MAX_SCANNED:
                return files, False
            is_outside = path.is_symlink() and not _is_below(os.path.realpath(str(path)), real_root)
            files[path.relative_to(root).as_posix()] = FileInfo(info.st_size, info.st_mtime_ns, is_outside)
    return files, True


def _without_own(names: Sequence[str]) -> List[str]:
    return sorted(name for name in names if not name.startswith(OWN_FILES))


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def _open(root: Path, file: ArtifactFile) -> "IO[bytes]":
    if file.text is not None:
        return io.BytesIO(file.text.encode())
    path = os.path.realpath(str(root / file.name))
    if not _is_below(path, os.path.realpath(str(root))):
        raise _LeaveOut(CHANGED)
    try:
        content = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    except FileNotFoundError:
        raise _LeaveOut(CHANGED) from None
    except OSError:
        raise _LeaveOut(UNREADABLE) from None
    return content


def _read(content: "IO[bytes]", size: int) -> bytes:
    try:
        data = content.read(size)
    except OSError:
        raise _LeaveOut(UNREADABLE) from None
    if size and not data:
        raise _LeaveOut(CHANGED)
    return data


def _refuse_changed(content: "IO[bytes]", root: Path, file: ArtifactFile, may_be_deleted: bool) -> None:
    """The file that was read must be the one that was listed, and no other may have its name."""
    if file.text is not None:
        return
    named = read = os.fstat(content.fileno())
    try:
        named = (root / file.name).stat()
    except OSError:
        if not may_be_deleted:
            raise _LeaveOut(CHANGED) from None
    is_same = (named.st_dev, named.st_ino) == (read.st_dev, read.st_ino)
    if not is_same or (read.st_size, str(read.st_mtime_ns)) != (file.size, file.version):
        raise _LeaveOut(CHANGED)
