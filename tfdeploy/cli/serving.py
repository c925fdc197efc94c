"""A live page on loopback: who asks gets what is seen now."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ..errors import BackendError, TfdeployError
from ..page.content import Content
from ..page.document import fragment, page, policy

LOOPBACK = "127.0.0.1"
_OWN_NAMES = (LOOPBACK, "localhost")
_FRESH_SECONDS = 1.0
"""Several readers share a look that is not older."""

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
    """Answers with what `make` sees, while the context lasts; gives the page's URL. Port 0 takes a free one.

    Raises:
        BackendError: the address is not loopback, or the port is taken.
    """
    if address not in _OWN_NAMES:
        raise BackendError(f"the page is served on {LOOPBACK} only, not on {address}: whoever reaches it can read it")
    try:
        server = _Server((LOOPBACK, port), make)
    except OSError as error:
        raise BackendError(f"cannot serve on port {port}: {error.strerror}. Choose another one, or 0 for any") from None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, where: tuple[str, int], make: Callable[[], Content]) -> None:
        super().__init__(where, _Handler)
        self._make = make
        self._lock = threading.Lock()
        self._seen: tuple[float, Content] | None = None

    def content(self) -> Content:
        """What is seen now, or was a moment ago; one look at a time."""
        with self._lock:
            if self._seen is None or time.monotonic() - self._seen[0] > _FRESH_SECONDS:
                self._seen = (time.monotonic(), self._make())
            return self._seen[1]

    def handle_error(self, request: object, client_address: object) -> None:
        """A reader that went away is no error."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version, sys_version = "tfdeploy", ""
    timeout = 30.0

    def do_GET(self) -> None:
        """The page, or what is new on it."""
        if _name(self.headers.get("Host", "")) not in _OWN_NAMES:
            self._answer(421, "text/plain", f"ask for {LOOPBACK} or localhost")
        elif self.path == "/":
            self._answer_with(lambda content: page(content, live=True))
        elif self.path == "/data":
            self._answer_with(fragment)
        else:
            self._answer(404, "text/plain", "there is / and /data")

    def _answer_with(self, write: Callable[[Content], str]) -> None:
        try:
            text = write(self.server.content())
        except TfdeployError as error:
            self._answer(503, "text/plain", str(error))
        except Exception as error:  # one failed look must not end the page
            self._answer(500, "text/plain", f"looking failed: {type(error).__name__}: {error}")
        else:
            self._answer(200, "text/html", text)

    def _answer(self, status: int, kind: str, text: str) -> None:
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged: the terminal belongs to the command."""


def _name(host: str) -> str:
    """The host's name without its port, which a tunnel may change."""
    return host.rpartition(":")[0] if ":" in host else host
