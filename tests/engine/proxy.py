"""A socket that leads to an engine, and counts the connections to it."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer
from typing import cast

from tests.waiting import until


class Proxy(ThreadingUnixStreamServer):
    """Passes on bytes in both directions."""

    daemon_threads = True

    def __init__(self, path: Path, engine: str) -> None:
        super().__init__(str(path), _Handler)
        self.address = f"unix://{path}"
        self.engine = engine.removeprefix("unix://")
        self._lock = threading.Lock()
        self._open = 0
        self.most = 0
        """How many connections were open at once."""

    def add(self, number: int) -> None:
        """So many connections more are open."""
        with self._lock:
            self._open += number
            self.most = max(self.most, self._open)

    def begin(self, idle: int) -> None:
        """Count from now on, once at most so many connections are open, which clients keep for their next calls."""
        until(lambda: self._open <= idle, f"{idle} connections", seen=lambda: self._open)
        with self._lock:
            self.most = self._open


class _Handler(StreamRequestHandler):
    def handle(self) -> None:
        proxy = cast(Proxy, self.server)
        with socket.socket(socket.AF_UNIX) as engine:
            engine.connect(proxy.engine)
            proxy.add(1)
            try:
                back = threading.Thread(target=_pass_on, args=(engine, self.connection))
                back.start()
                _pass_on(self.connection, engine)
                back.join()
            finally:
                proxy.add(-1)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextmanager
def proxy(folder: Path, engine: str) -> Iterator[Proxy]:
    """A proxy to the engine at this address, which is a Unix socket."""
    with Proxy(folder / "engine.sock", engine) as found:
        threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield found
        finally:
            found.shutdown()
