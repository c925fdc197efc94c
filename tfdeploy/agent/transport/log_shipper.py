"""A program's output on its way from the disk to the controller's record: it is sent, and deleted once it has arrived."""

import threading
from pathlib import Path
from typing import Any, Dict, Optional
from urllib.parse import quote

from ..polling import Backoff, wait_until
from ..record.log_lines import NAMES, Log
from ..record.record_files import PART
from .rpc import CallError, Client

_GATHER_SECONDS, _SEND_SECONDS = 0.02, 0.2
"""Seconds from a change until it is sent, and from then at least until the next one is."""

_LONGEST_PAUSE = 4.0
"""Seconds between two tries while the controller does not respond."""

_CLOSE_SECONDS = 20.0
"""How long `close` waits for the thread: longer than the one call takes that the thread may be in."""


class Shipper:
    """Sends the spool of one run to the controller, and retries until it has arrived."""

    def __init__(self, client: Client, folder: Path, run: str, hostname: str, ends: Dict[str, int]) -> None:
        """`ends` has the end positions of the controller's copy; a spool that ends earlier begins there."""
        self.log = Log(folder)
        self.lost_bytes = 0
        """Bytes of the output that were deleted before they were sent, as by the spool's limit."""
        self._client = client
        self._path = f"/log/{quote(run)}/{quote(hostname)}"
        self._sent = ends
        self._is_sure = True
        self._lock = threading.Lock()
        self._closed = threading.Event()
        for name, stream in self.log.streams.items():
            if stream.end < ends[name]:
                stream.restart_at(ends[name])
        self.log.changed.set()  # an earlier launcher may have left bytes
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        """Ship what the streams get. Where nothing has changed since the controller had all of it, nothing is done.

        `close` sets `_closed`, then `changed`. So `_closed` is read after `changed` was cleared: otherwise the thread could wait
        forever.
        """
        retry = Backoff(_SEND_SECONDS, _LONGEST_PAUSE)
        while self.log.changed.wait() and not self._closed.wait(_GATHER_SECONDS):
            self.log.changed.clear()
            if self._closed.is_set():
                return
            if self.ship():
                retry.reset()
            else:
                self.log.changed.set()
                retry.fail()
            self._closed.wait(max(_SEND_SECONDS, retry.seconds))

    def ship(self) -> bool:
        """Send the current bytes, and return whether the controller has all of them.

        The index is sent last, so that it has no entry for bytes that are missing.
        """
        with self._lock:
            goals = {name: self.log.streams[name].end for name in reversed(NAMES)}
            try:
                if not self._is_sure:
                    self._compare()
                return all(self._send(name, goals[name]) for name in NAMES)
            except (OSError, CallError, ValueError, KeyError, TypeError):  # no response, or none of a controller
                self._is_sure = False
                return False

    def _compare(self) -> None:
        """Continue where the controller's copy ends: it may be another controller, with an older copy."""
        ends = self._client.json("GET", self._path)
        self._sent = {name: min(self._sent[name], int(ends[name])) for name in NAMES}
        self._is_sure = True

    def _send(self, name: str, goal: int) -> bool:
        stream = self.log.streams[name]
        while self._sent[name] < goal:
            if self._closed.is_set():
                return False
            at = max(self._sent[name], stream.start)
            data = stream.read(at, min(PART, goal - at))
            if not data:
                at = min(stream.next_segment(at) or goal, goal)
            if name != "index":
                self.lost_bytes += at - self._sent[name]
            self._sent[name] = at
            if not data:
                continue
            response = self._client.json_bytes("PUT", f"{self._path}/{name}/{at}", data)
            if response["end"] <= at:
                return False
            self._sent[name] = response["end"]
        stream.forget_before(goal)
        return True

    def finish(self, seconds: float) -> bool:
        """Send all remaining bytes, with retries for `seconds`, and return whether all have arrived."""
        return wait_until(self.ship, seconds, _SEND_SECONDS)

    def close(self) -> None:
        """Stop sending. A thread that does not end is left behind: the launcher ends."""
        self._closed.set()
        self.log.changed.set()
        self._thread.join(_CLOSE_SECONDS)


def open_spool(client: Client, folder: Path, run: str, hostname: str) -> Shipper:
    """A shipper for the run's spool below `folder`; it begins at the end of the controller's copy."""
    ends: Dict[str, Any] = client.json("GET", f"/log/{quote(run)}/{quote(hostname)}")
    return Shipper(client, folder / run, run, hostname, ends)


def close_spool(shipper: Optional[Shipper], seconds: float) -> None:
    """Send the remaining bytes, and stop."""
    if shipper is not None:
        shipper.finish(seconds)
        shipper.close()
