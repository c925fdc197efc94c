"""The keeper's answer through an engine: whole, though all of it is there before anybody reads the first byte."""

import json
import socketserver
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.unit.props import task_props
from tfdeploy.agent.call import REFUSED, SILENT
from tfdeploy.agent.protocol import CallError
from tfdeploy.backends.docker.engine import Engine
from tfdeploy.backends.docker.exec_keeper import ExecKeeper
from tfdeploy.backends.docker.streams import STDERR, STDOUT
from tfdeploy.errors import Unreachable

LONG = json.dumps({"logs": ["a line"] * 5000}).encode()
"""More than the client reads at once."""


class Handler(BaseHTTPRequestHandler):
    """An engine as far as one command in one container goes."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: "Fake"

    def do_GET(self) -> None:
        told: dict[str, Any] = {
            "version": {"ApiVersion": "1.41"},
            "containers/json": [{"Id": "keeper", "Created": 1}],
            "containers/keeper/json": {"Args": ["keep", "/record", "unix:/keeper"]},
            "exec/1/json": {"Running": False, "ExitCode": self.server.code},
        }
        asked = self.path.partition("?")[0].removeprefix("/v1.41").strip("/")
        self._answer(told.get(asked, "OK"))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if not self.path.endswith("/start"):
            self._answer({"Id": "1"})
            return
        self.send_response_only(101)
        self.send_header("Upgrade", "tcp")
        self.end_headers()
        for kind, data in self.server.said:
            self.wfile.write(struct.pack(">BxxxL", kind, len(data)) + data)
        self.close_connection = True

    def _answer(self, found: Any) -> None:
        body = json.dumps(found).encode()
        self.send_response_only(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Fake(socketserver.ThreadingUnixStreamServer):
    """Listens as an engine does; what the command says, and its exit code, are the test's."""

    daemon_threads = True
    said: list[tuple[int, bytes]]
    code = 0


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Fake]:
    """One that answers."""
    with Fake(str(tmp_path / "engine.sock"), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def keeper(fake: Fake, tmp_path: Path) -> ExecKeeper:
    """The keeper behind it."""
    return ExecKeeper(Engine(f"unix://{tmp_path}/engine.sock"), task_props(hostname="worker-0", index=0)["cluster"])


@pytest.mark.parametrize("data", [b'{"stopped": true}', LONG])
def test_nothing_of_an_answer_is_lost_that_comes_with_the_engines_own(
    fake: Fake, keeper: ExecKeeper, data: bytes
) -> None:
    fake.said = [(STDOUT, data[place : place + 1000]) for place in range(0, len(data), 1000)]
    assert keeper.call("GET", "/stopped") == data


def test_a_no_a_silence_and_an_answer_that_was_cut_short(fake: Fake, keeper: ExecKeeper) -> None:
    fake.said, fake.code = [(STDERR, b"no such "), (STDERR, b"call\n")], REFUSED
    with pytest.raises(CallError, match=r"^no such call$"):
        keeper.call("GET", "/nothing")
    fake.code = SILENT
    with pytest.raises(Unreachable, match=r"does not answer \(no such call\)"):
        keeper.call("GET", "/stopped")
    fake.said, fake.code = [(STDOUT, b'{"stop')], 0
    with pytest.raises(Unreachable, match="was cut short"):
        keeper.json("GET", "/stopped")
