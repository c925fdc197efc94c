"""A stand-in for the server from which Pulumi downloads plugins, on loopback."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from tests.http_server import serving


@dataclass
class PluginServer:
    """It keeps what it was asked for, and has only the files that it was given."""

    address: str
    files: Mapping[str, bytes]
    asked: list[str] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        """Leads Pulumi there for every plugin."""
        return {"PULUMI_PLUGIN_DOWNLOAD_URL_OVERRIDES": f".*={self.address}"}


@contextmanager
def plugin_server(files: Mapping[str, bytes] | None = None) -> Iterator[PluginServer]:
    """Serve these files, by name; anything else is not found."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.rpartition("/")[2]
            found.asked.append(name)
            content = found.files.get(name)
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *args: object) -> None:
            pass

    with serving(Handler) as port:
        found = PluginServer(f"http://127.0.0.1:{port}", files or {})
        yield found
