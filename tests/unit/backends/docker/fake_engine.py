"""An engine that counts: the calls that it gets, and how many connections its clients hold open at once."""

import json
import socketserver
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import psutil

from tfdeploy.backends.docker.exec import STDOUT

VERSION = "1.41"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: "FakeEngine"

    def _act(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        path = self.path.partition("?")[0].removeprefix(f"/v{VERSION}").strip("/")
        call = f"{self.command} {path}"
        self.server.calls.append(call)
        if call == "POST exec/1/start":
            self._start()
            return
        body = json.dumps(self.server.responses[call]).encode()
        self.send_response_only(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _start(self) -> None:
        """Run the command: print the output of the controller's response, and end."""
        self.send_response_only(101)
        self.send_header("Upgrade", "tcp")
        self.end_headers()
        self.wfile.write(struct.pack(">BxxxL", STDOUT, len(self.server.output)) + self.server.output)
        self.close_connection = True

    def do_GET(self) -> None:
        self._act()

    def do_POST(self) -> None:
        self._act()


class FakeEngine(socketserver.ThreadingUnixStreamServer):
    """It has a response for each call, and one output for the commands that it runs in the controller's container."""

    daemon_threads = True

    def __init__(self, path: Path, responses: Mapping[str, Any], output: bytes = b"") -> None:
        self.responses = {
            "GET version": {"ApiVersion": VERSION},
            "GET containers/json": [
                {"Id": "1", "Created": 1, "Command": "python3 agent controller /record unix:/controller token"}
            ],
            "POST containers/1/exec": {"Id": "1"},
            "GET exec/1/json": {"Running": False, "ExitCode": 0},
            **responses,
        }
        self.output = output
        self.calls: list[str] = []
        self.most_connections = 0
        self._others = _unnamed_sockets()
        super().__init__(str(path), _Handler)
        self.address = f"unix://{path}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Count the connections that the client, which is in this process, has not closed."""
        self.most_connections = max(self.most_connections, _unnamed_sockets() - self._others)
        super().process_request(request, client_address)


def _unnamed_sockets() -> int:
    """The Unix sockets of this process that are no server's."""
    return sum(not connection.laddr for connection in psutil.Process().net_connections(kind="unix"))


@contextmanager
def fake_engine(path: Path, responses: Mapping[str, Any], output: bytes = b"") -> Iterator[FakeEngine]:
    """An engine that listens."""
    with FakeEngine(path, responses, output) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield server
        server.shutdown()
