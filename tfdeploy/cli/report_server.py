"""A web server on loopback for the live page: each request gets the page as of now, and the page reloads itself.

Every user of this computer can connect to it. The path of the page is a token, which only the printed URL contains.
"""

import contextlib
import secrets
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ..errors import BackendError, TfdeployError
from ..report.html.document import policy, whole_page
from ..report.html.markup import element

_LOOPBACK = "127.0.0.1"
_HEADERS = {
    "Content-Security-Policy": f"{policy(live=True)}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@contextlib.contextmanager
def serve(port: int, make: Callable[[], str]) -> Iterator[str]:
    """Serve the page that `make` returns, while the context lasts; yields its URL. Port 0 chooses a free one.

    Raises:
        BackendError: the port is taken.
    """
    try:
        server = _Server(port, make)
    except OSError as error:
        raise BackendError(
            f"cannot serve on port {port}: {error.strerror}. Use another port, or 0 for a free one"
        ) from None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield f"http://{_LOOPBACK}:{server.server_port}/{server.token}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int, make: Callable[[], str]) -> None:
        super().__init__((_LOOPBACK, port), _Handler)
        self.token = secrets.token_urlsafe(24)
        self.make = make

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has disconnected is not an error."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version, sys_version = "tfdeploy", ""
    timeout = 30.0

    def do_GET(self) -> None:
        """Send the page, or a sentence why there is none: both reload."""
        if not secrets.compare_digest(self.path.encode(), f"/{self.server.token}/".encode()):
            self._send(404, "not found: use the whole URL that `tfdeploy report --serve` has printed")
            return
        try:
            status, text = 200, self.server.make()
        except Exception as error:  # one failed snapshot must not end the server
            known = isinstance(error, TfdeployError)
            reason = str(error) if known else f"internal error: {type(error).__name__}: {error}"
            status, text = 503, whole_page("tfdeploy", element("p", reason), live=True)
        self._send(status, text)

    def _send(self, status: int, text: str) -> None:
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the terminal is the command's."""
