"""An engine that counts: the calls that it and the controller on it get, and how many connections its clients hold open at once."""

import json
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast
from urllib.parse import parse_qs

import psutil
from docker.errors import APIError

from tests.unit.props import task_props
from tfdeploy.agent.wire.call_relay import TOKEN_MARK
from tfdeploy.agent.wire.rpc import TOKEN_HEADER
from tfdeploy.backends.docker.swarm.services import Reference, Service
from tfdeploy.backends.docker.task_runner import DockerTaskRunner
from tfdeploy.backends.terminal import STDOUT

VERSION = "1.41"
TOKEN = "5ec2e7"


def api_error(status: int, text: str) -> APIError:
    """What the SDK raises where an engine refuses a call."""
    return APIError(text, SimpleNamespace(status_code=status), text)  # type: ignore[arg-type]


class FakeApi:
    """An engine whose API is this object."""

    host = "unix:///d.sock"

    def call(self, request: Callable[[Any], Any]) -> Any:
        return request(self)

    call_once = remove = call


class FakeSwarm:
    """A Swarm that remembers the services that it gets."""

    cluster = task_props()["cluster"]

    def __init__(self) -> None:
        self.applied: list[Service] = []

    def apply(self, desired: Service) -> None:
        self.applied.append(desired)

    create = apply

    def secret(self, name: str, content: str) -> Reference:
        """That of a task's token."""
        return cast(Reference, task_props()["dependencies"]["launcher_token"])


def runner_of(swarm: FakeSwarm, controller: Any) -> DockerTaskRunner:
    runner = DockerTaskRunner()
    vars(runner).update(objects=lambda _: swarm, controller=lambda _: controller)
    return runner


_FRAME = 1000


class Called(NamedTuple):
    what: str
    token: str
    body: bytes


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: "FakeEngine"
    is_relay = False

    def _act(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if self.is_relay:
            self._act_as_controller(body)
            return
        path, _, query = self.path.partition("?")
        call = f"{self.command} {path.removeprefix(f'/v{VERSION}').strip('/')}"
        self.server.calls.append(call)
        if call == "POST containers/1/exec":
            self.server.commands.append(body)
        if call == "POST exec/1/start":
            self._start()
            return
        response = self.server.response(call, parse_qs(query))
        status, content = (
            (response, {"message": f"status {response}"}) if isinstance(response, int) else (200, response)
        )
        self.wfile.write(_response(status, json.dumps(content).encode()))

    def _start(self) -> None:
        """Start the command: from now on, what is received goes to the controller, and what is sent is the output of the command."""
        self.send_response_only(101)
        self.send_header("Upgrade", "tcp")
        self.end_headers()
        for kind, data in self.server.begin:
            self._output(kind, data)
        self.is_relay = self.server.begin == CONNECTED
        self.close_connection = not self.is_relay
        if self.is_relay:
            self.server.relays.append(self.connection)

    def _act_as_controller(self, body: bytes) -> None:
        call = f"{self.command} {self.path}"
        self.server.calls.append(call)
        self.server.called.append(Called(call, self.headers[TOKEN_HEADER], body))
        if not self.server.controller(self):
            self.close_connection = True
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)

    def output(self, data: bytes) -> bool:
        """Respond as the controller: in several frames."""
        for start in range(0, len(data), _FRAME):
            self._output(STDOUT, data[start : start + _FRAME])
        return True

    def _output(self, kind: int, data: bytes) -> None:
        self.wfile.write(struct.pack(">BxxxL", kind, len(data)) + data)

    def do_GET(self) -> None:
        self._act()

    def do_POST(self) -> None:
        self._act()

    def do_PUT(self) -> None:
        self._act()


def _response(status: int, body: bytes, head: str = "") -> bytes:
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n{head}\r\n".encode() + body


CONNECTED = [(STDOUT, TOKEN_MARK + TOKEN.encode() + b"\n")]
"""What a command prints that has connected."""

Controller = Callable[[_Handler], bool]
"""What responds to a call; False where it ends instead."""


def responds(body: bytes, status: int = 200, head: str = "") -> Controller:
    return lambda handler: handler.output(_response(status, body, head))


class FakeEngine(socketserver.ThreadingUnixStreamServer):
    """It has a response for each call, or the status with which it refuses it; `controller` responds to those that are relayed."""

    daemon_threads = True

    def __init__(self, path: Path, responses: Mapping[str, Any], output: bytes = b"{}") -> None:
        self.responses: dict[str, Any] = {
            "GET version": {"ApiVersion": VERSION},
            "GET containers/json": [
                {"Id": "1", "Created": 1, "Command": "python3 agent controller /record 0.0.0.0:2220 token"}
            ],
            "POST containers/1/exec": {"Id": "1"},
            **responses,
        }
        self.begin: list[tuple[int, bytes]] = CONNECTED
        self.controller = responds(output)
        self.calls: list[str] = []
        self.commands: list[bytes] = []
        self.called: list[Called] = []
        self.relays: list[socket.socket] = []
        self.most_connections = 0
        self._others = _unnamed_sockets()
        super().__init__(str(path), _Handler)
        self.address = f"unix://{path}"

    def response(self, call: str, query: dict[str, list[str]]) -> Any:
        """What it responds to a call; a number is the status with which it refuses it."""
        return self.responses[call]

    def end_relays(self) -> None:
        """End the commands, as when their container is replaced."""
        for relay in self.relays:
            with suppress(OSError):
                relay.shutdown(socket.SHUT_RDWR)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Count the connections that the client, which is in this process, has not closed."""
        self.most_connections = max(self.most_connections, _unnamed_sockets() - self._others)
        super().process_request(request, client_address)


def _unnamed_sockets() -> int:
    """The Unix sockets of this process that are no server's."""
    return sum(not connection.laddr for connection in psutil.Process().net_connections(kind="unix"))


@contextmanager
def fake_engine(path: Path, responses: Mapping[str, Any], output: bytes = b"{}") -> Iterator[FakeEngine]:
    with FakeEngine(path, responses, output) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield server
        server.shutdown()
        server.end_relays()
