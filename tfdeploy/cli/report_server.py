"""A web server on loopback for the live page: each request gets the current state.

Every user of this computer can connect to it. The path of the page begins with a token, which only the printed URL contains.
"""

import contextlib
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ..errors import BackendError, TfdeployError
from ..report.html.document import Content, fragment, page, policy

LOOPBACK = "127.0.0.1"
_OWN_NAMES = (LOOPBACK, "localhost")
_FRESH_SECONDS = 1.0
"""Requests within this time share one snapshot."""

MAX_CONNECTIONS = 64
"""Each has a thread. A further connection closes the oldest one, so that silent connections never keep the page from its reader."""

_PAUSE = 10
"""A snapshot that takes long is followed by a pause of so many times its duration, at most `_MAX_PAUSE` seconds."""

_MAX_PAUSE = 30.0

_HEADERS = {
    "Content-Security-Policy": f"{policy(live=True)}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@contextlib.contextmanager
def serve(address: str, port: int, make: Callable[[], Content]) -> Iterator[str]:
    """Serve a page with what `make` returns, while the context lasts; yields its URL. Port 0 chooses a free one.

    Raises:
        BackendError: the address is not loopback, or the port is taken.
    """
    if address not in _OWN_NAMES:
        raise BackendError(
            f"the page is served on {LOOPBACK} only, not on {address}: everyone who reaches that address could read it"
        )
    try:
        server = _Server((LOOPBACK, port), make)
    except OSError as error:
        raise BackendError(
            f"cannot serve on port {port}: {error.strerror}. Use another port, or 0 for a free one"
        ) from None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}/{server.token}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 2 * MAX_CONNECTIONS

    def __init__(self, where: tuple[str, int], make: Callable[[], Content]) -> None:
        super().__init__(where, _Handler)
        self.token = secrets.token_urlsafe(24)
        self._make = make
        self._lock = threading.Lock()
        self._cached: Content | None = None
        self._stale_at = 0.0
        self._open_lock = threading.Lock()
        self._open: dict[Any, None] = {}

    def content(self) -> Content:
        """The content now or a moment ago; one snapshot at a time."""
        with self._lock:
            if self._cached is None or time.monotonic() > self._stale_at:
                begin = time.monotonic()
                self._cached = self._make()
                taken = time.monotonic() - begin
                self._stale_at = time.monotonic() + max(_FRESH_SECONDS, min(_PAUSE * taken, _MAX_PAUSE))
            return self._cached

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in another thread, and close the oldest one if there are too many."""
        with self._open_lock:
            if len(self._open) >= MAX_CONNECTIONS:
                oldest = next(iter(self._open))
                del self._open[oldest]
                with contextlib.suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
            self._open[request] = None
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection that was served."""
        with self._open_lock:
            self._open.pop(request, None)
            super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has disconnected is not an error."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version, sys_version = "tfdeploy", ""
    timeout = 30.0

    def do_GET(self) -> None:
        """Send the page, or its new content."""
        if _name(self.headers.get("Host", "")) not in _OWN_NAMES:
            self._respond(421, "text/plain", f"use the host {LOOPBACK} or localhost")
        elif self._is_path(""):
            self._respond_with(lambda content: page(content, live=True))
        elif self._is_path("data"):
            self._respond_with(fragment)
        else:
            self._respond(404, "text/plain", "not found: use the whole URL that `tfdeploy report --serve` has printed")

    def _is_path(self, path: str) -> bool:
        return secrets.compare_digest(self.path.encode(), f"/{self.server.token}/{path}".encode())

    def _respond_with(self, write: Callable[[Content], str]) -> None:
        try:
            text = write(self.server.content())
        except TfdeployError as error:
            self._respond(503, "text/plain", str(error))
        except Exception as error:  # one failed snapshot must not end the server
            self._respond(500, "text/plain", f"internal error: {type(error).__name__}: {error}")
        else:
            self._respond(200, "text/html", text)

    def _respond(self, status: int, kind: str, text: str) -> None:
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the terminal is the command's."""


def _name(host: str) -> str:
    """The name of the host without its port: a tunnel may change the port."""
    return host.rpartition(":")[0] if ":" in host else host
