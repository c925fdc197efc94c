"""From the child's pipes to the keeper's record without losing a byte: read, keep on disk, send, forget what has arrived."""

import os
import selectors
import threading
import time
from pathlib import Path
from typing import IO, Any, Dict, Optional
from urllib.parse import quote

from .lines import NAMES, PIPES, STDERR, STDOUT, Log, entry
from .protocol import CallError, Client

_CHUNK = 256 * 1024
_SEND = 4 * 1024 * 1024
_SEND_SECONDS = 0.2
_GATHER_SECONDS = 0.005


class Pump:
    """Reads a child's two pipes into the spool until both are closed."""

    def __init__(self, log: Log, stdout: IO[bytes], stderr: IO[bytes], attempt: int) -> None:
        self._log = log
        self._attempt = attempt
        self._pipes = {stdout: STDOUT, stderr: STDERR}
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with selectors.DefaultSelector() as selector:
            for pipe in self._pipes:
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, selectors.EVENT_READ)
            while selector.get_map() and not self._given_up.is_set():
                for key, _ in selector.select(timeout=0.5):
                    data = os.read(key.fd, _CHUNK)
                    if data:
                        self._keep(self._pipes[key.fileobj], data)  # type: ignore[index]
                    else:
                        selector.unregister(key.fileobj)
                time.sleep(_GATHER_SECONDS)
        for pipe in self._pipes:
            pipe.close()

    def _keep(self, pipe: int, data: bytes) -> None:
        stream = self._log.streams[PIPES[pipe]]
        place = stream.end
        stream.put(place, data)
        index = self._log.streams["index"]
        index.put(index.end, entry(time.time(), pipe, self._attempt, place, len(data)))

    def finish(self, seconds: float) -> None:
        """Wait for the pipes to close, at most so long: a grandchild may hold them open for ever."""
        self._thread.join(seconds)
        self._given_up.set()
        self._thread.join(1.0)


class Shipper:
    """Sends what the spool of one run holds to the keeper, for as long as it takes."""

    def __init__(self, client: Client, folder: Path, run: str, hostname: str, ends: Dict[str, int]) -> None:
        """`ends` is how far the keeper's copy goes; a spool that knows less begins there."""
        self.log = Log(folder)
        self._client = client
        self._path = f"/log/{quote(run)}/{quote(hostname)}"
        self._sent = ends
        self._lock = threading.Lock()
        self._over = threading.Event()
        for name, stream in self.log.streams.items():
            if stream.end < ends[name]:
                stream.restart_at(ends[name])
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(_SEND_SECONDS):
            self.ship()

    def ship(self) -> bool:
        """Send what is there now; whether the keeper has it all. The index goes last: it never tells of bytes to come."""
        with self._lock:
            goals = {name: self.log.streams[name].end for name in reversed(NAMES)}
            try:
                return all(self._send(name, goals[name]) for name in NAMES)
            except (OSError, CallError):
                return False

    def _send(self, name: str, goal: int) -> bool:
        stream = self.log.streams[name]
        while self._sent[name] < goal:
            at = max(self._sent[name], stream.start)
            data = stream.read(at, min(_SEND, goal - at))
            answer = self._client.json_bytes("PUT", f"{self._path}/{name}/{at}", data)
            if answer["end"] <= self._sent[name]:
                return False
            self._sent[name] = answer["end"]
        stream.forget_before(goal)
        return True

    def finish(self, seconds: float) -> bool:
        """Send all that is left, trying for so long; whether all has arrived."""
        deadline = time.monotonic() + seconds
        while not self.ship():
            if time.monotonic() > deadline:
                return False
            time.sleep(_SEND_SECONDS)
        return True

    def close(self) -> None:
        """Stop sending."""
        self._over.set()
        self._thread.join()


def open_spool(client: Client, folder: Path, run: str, hostname: str) -> Shipper:
    """A shipper for the run's spool below `folder`; asks the keeper first how far its copy goes."""
    ends: Dict[str, Any] = client.json("GET", f"/log/{quote(run)}/{quote(hostname)}")
    return Shipper(client, folder / run, run, hostname, ends)


def close_spool(shipper: Optional[Shipper], seconds: float) -> None:
    """Send the rest, and stop."""
    if shipper is not None:
        shipper.finish(seconds)
        shipper.close()
