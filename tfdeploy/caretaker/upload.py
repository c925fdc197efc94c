"""Brings the keeper's record into the bucket: what has changed, and last the list of all, `record/current.json`."""

import hashlib
import json
import time
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple, Tuple

LIST = "record/current.json"
EVERY = 300.0
"""Seconds between two uploads while something changes."""

AT_ONCE = 30.0
"""Seconds that one upload takes at most; the next goes on where it ended."""

_REPLACED = ("life", "current", "job.json")
"""Files that are written anew each time stand in the list itself, so that it fits them whatever cuts an upload short."""

_ELSEWHERE = ("code", "lock")
"""What of the keeper's folder is no account of anything."""


class _Sent(NamedTuple):
    size: int
    changed: int
    md5: str


class Upload:
    """The record in `folder`, on its way through `put`."""

    def __init__(self, folder: Path, put: Callable[[str, bytes], None]) -> None:
        self._folder, self._put = folder, put
        self._life = ""
        self._sent: Dict[str, _Sent] = {}
        self._listed: Dict[str, List[object]] = {}
        self._verdict: Tuple[str, str] = ("", "")
        self._next = 0.0

    def due(self) -> bool:
        """Whether it is time: for the next one, or at once since there is another verdict."""
        return time.monotonic() >= self._next or self._now() != self._verdict

    def bring(self) -> bool:
        """Bring what has changed; whether all is there as it is now.

        Raises:
            OSError: something has not arrived; what has is not sent again.
        """
        end = self._next = time.monotonic() + AT_ONCE
        self._meet((self._folder / "life").read_text())
        verdict = self._now()
        there: Dict[str, List[object]] = {}
        for path in _files(self._folder):
            if time.monotonic() >= end:
                self._next = 0.0
                return False
            name = path.relative_to(self._folder).as_posix()
            try:
                there[name] = _told(path) if path.name in _REPLACED else self._bring(path, name)
            except FileNotFoundError:
                continue  # the oldest of a log is let go while it grows
        if there != self._listed or verdict != self._verdict:
            self._list(there, verdict)
        self._next = time.monotonic() + EVERY
        return True

    def _meet(self, life: str) -> None:
        if life != self._life:
            self._life, self._sent, self._listed = life, {}, {}

    def _bring(self, path: Path, name: str) -> List[object]:
        about, before = path.stat(), self._sent.get(name)
        if before and (before.size, before.changed) == (about.st_size, about.st_mtime_ns):
            return [before.size, before.md5]
        content = path.read_bytes()
        sent = _Sent(len(content), about.st_mtime_ns, hashlib.md5(content).hexdigest())
        if before is None or (before.size, before.md5) != (sent.size, sent.md5):
            self._put(f"record/{self._life}/{name}", content)
        self._sent[name] = sent
        return [sent.size, sent.md5]

    def _list(self, there: Dict[str, List[object]], verdict: Tuple[str, str]) -> None:
        run, state = verdict
        told = {"life": self._life, "run": run, "verdict": state or None, "at": time.time(), "files": there}
        self._put(LIST, json.dumps(told).encode())
        self._listed, self._verdict = there, verdict

    def _now(self) -> Tuple[str, str]:
        """The present run, and what its job has come to; each may be empty."""
        try:
            run = (self._folder / "current").read_text()
            job = json.loads((self._folder / "runs" / run / "job.json").read_text())
        except FileNotFoundError:
            return "", ""
        return run, job["verdict"][0] if job["verdict"] else ""


def _told(path: Path) -> List[object]:
    content = path.read_bytes()
    return [len(content), hashlib.md5(content).hexdigest(), content.decode()]


def _files(folder: Path) -> Iterator[Path]:
    """The files of the record. A log's index comes before its bytes: it never tells of some that are not there."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".draft")
    account = (path for path in found if path.relative_to(folder).parts[0] not in _ELSEWHERE)
    yield from sorted(account, key=lambda path: (not path.name.startswith("index."), path))
