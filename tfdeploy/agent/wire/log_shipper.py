"""A program's output on its way from the launcher's disk to the controller's record: it is sent, and deleted once it has arrived."""

import threading
from pathlib import Path
from typing import Dict
from urllib.parse import quote

from ..record.output import DIFFERS, Spool
from ..record.record_files import PART
from ..system.polling import Backoff
from .rpc import CallError, Client

_GATHER_SECONDS, _SEND_SECONDS = 0.02, 0.2
"""Seconds from a change until it is sent, and from then at least until the next one is."""

_AGAIN = 4096
"""So many bytes before the controller's end are sent again: it compares them, and they have times."""

_LONGEST_PAUSE = 4.0
"""Seconds between two tries while the controller does not respond."""

_CLOSE_SECONDS = 20.0
"""How long `close` waits for the thread: longer than the one call takes that the thread may be in."""


class Shipper:
    """Sends the spool of one run to the controller, and retries until it has arrived."""

    def __init__(self, client: Client, folder: Path, run: str, hostname: str, instance: str) -> None:
        """`instance` is that of the launcher.

        Raises:
            OSError, CallError, ValueError, KeyError: the controller does not say what it has.
        """
        self._client, self._instance = client, instance
        self._path = f"/log/{quote(run)}/{quote(hostname)}"
        self._lock = threading.Lock()
        self._closed = threading.Event()
        stored = self._stored()
        self.log = Spool(folder / run, stored)
        self._continue_after(stored)
        self._is_sure = True
        self.log.changed.set()  # an earlier launcher may have left bytes
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _stored(self) -> Dict[int, int]:
        """The pieces that the controller has, and their sizes."""
        return {int(first): int(size) for first, size in self._client.json("GET", self._path)["pieces"].items()}

    def _continue_after(self, stored: Dict[int, int]) -> None:
        """Continue where the pieces of the controller end, once it has compared the bytes before that."""
        own = self.log.sizes()
        same = {first: min(size, own.get(first, 0)) for first, size in stored.items() if first not in self.log.apart}
        self.log.arrived = {first: max(0, end - _AGAIN) for first, end in same.items()}
        for first, end in same.items():
            self._send(first, end)

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
        """Send the lines that are there now, and return whether the controller has all of them."""
        with self._lock:
            try:
                if not self._is_sure:  # it may be another controller, with an older copy
                    self._continue_after(self._stored())
                    self._is_sure = True
                self._is_sure = all(self._send(first, size) for first, size in self.log.sizes().items())
            except (OSError, CallError, ValueError, KeyError, TypeError):  # no response, or none of a controller
                self._is_sure = False
            return self._is_sure

    def _send(self, first: int, goal: int) -> bool:
        """Send a piece. One of which the controller has other bytes, as of a launcher on another machine, is sent from its start again,
        and stored apart."""
        arrived = self.log.arrived
        while arrived.get(first, 0) < goal:
            at = arrived.get(first, 0)
            data = self.log.lines(first, at, min(PART, goal - at))
            if self._closed.is_set():
                return False
            if not data:  # the disk is full, or the limit has deleted the piece
                break
            kind = "apart" if first in self.log.apart else "own"
            path = f"{self._path}/{kind}/{first}/{first + at}/{self._instance}"
            end = self._client.json_bytes("PUT", path, data)["end"]
            if end == DIFFERS and kind == "own":
                self.log.apart.add(first)
            arrived[first] = max(0, end - first)
            if arrived[first] <= at:
                return False
        self.log.forget_arrived()
        return True

    def close(self) -> None:
        """Stop sending. A thread that does not end is left behind: the launcher ends."""
        self._closed.set()
        self.log.changed.set()
        self._thread.join(_CLOSE_SECONDS)
