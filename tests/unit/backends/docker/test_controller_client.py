"""Calls of the controller through an engine: the response is complete, also when it arrives in one piece."""

import io
import json
import socketserver
import struct
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, cast

import pytest

from tests.unit.props import CANARY, task_props
from tfdeploy.agent.record import RecordView, ViewRequest
from tfdeploy.agent.rpc import ERROR, NO_RESPONSE, CallError
from tfdeploy.backends.base import ClusterRef
from tfdeploy.backends.docker import task_runner
from tfdeploy.backends.docker.controller_client import ControllerClient
from tfdeploy.backends.docker.engine import Engine
from tfdeploy.backends.docker.exec import STDERR, STDOUT
from tfdeploy.backends.record_copy import RecordCopy
from tfdeploy.errors import Unreachable

LONG = json.dumps({"logs": ["a line"] * 5000}).encode()
"""More than the client reads at once."""


class Handler(BaseHTTPRequestHandler):
    """The part of an engine that runs one command in one container."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: "Fake"

    def do_GET(self) -> None:
        responses: dict[str, Any] = {
            "version": {"ApiVersion": "1.41"},
            "containers/json": [
                {"Id": "controller", "Created": 1, "Command": "python3 agent controller /record unix:/controller token"}
            ],
            "exec/1/json": {"Running": False, "ExitCode": self.server.code},
        }
        path = self.path.partition("?")[0].removeprefix("/v1.41").strip("/")
        self._respond(responses.get(path, "OK"))

    def do_PUT(self) -> None:
        self.server.files.append(self.rfile.read(int(self.headers["Content-Length"])))
        self._respond("")

    def do_POST(self) -> None:
        self.server.requests.append(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.endswith("/start"):
            self._respond({"Id": "1"})
            return
        self.send_response_only(101)
        self.send_header("Upgrade", "tcp")
        self.end_headers()
        for kind, data in self.server.output:
            self.wfile.write(struct.pack(">BxxxL", kind, len(data)) + data)
        self.close_connection = True

    def _respond(self, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response_only(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Fake(socketserver.ThreadingUnixStreamServer):
    """A listening engine; the test sets the output and the exit code of the command."""

    daemon_threads = True
    output: list[tuple[int, bytes]]
    code = 0

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.files: list[bytes] = []
        self.requests: list[bytes] = []


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Fake]:
    """A running engine."""
    with Fake(str(tmp_path / "engine.sock"), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def controller(fake: Fake, tmp_path: Path) -> ControllerClient:
    """The client of a controller on this engine."""
    return ControllerClient(
        Engine(f"unix://{tmp_path}/engine.sock"), task_props(hostname="worker-0", index=0)["cluster"]
    )


@pytest.mark.parametrize("data", [b'{"stopped": true}', LONG])
def test_output_that_arrives_with_the_response_of_the_engine_is_complete(
    fake: Fake, controller: ControllerClient, data: bytes
) -> None:
    fake.output = [(STDOUT, data[start : start + 1000]) for start in range(0, len(data), 1000)]
    assert controller.call("GET", "/stopped") == data


def test_a_refusal_a_timeout_and_an_incomplete_response(fake: Fake, controller: ControllerClient) -> None:
    fake.output, fake.code = [(STDERR, b"no such "), (STDERR, b"call\n")], ERROR
    with pytest.raises(CallError, match=r"^no such call$"):
        controller.call("GET", "/nothing")
    fake.code = NO_RESPONSE
    with pytest.raises(Unreachable, match=r"does not respond \(no such call\)"):
        controller.call("GET", "/stopped")
    fake.output, fake.code = [(STDOUT, b'{"stop')], 0
    with pytest.raises(Unreachable, match="ended during the call"):
        controller.json("GET", "/stopped")


def test_a_run_is_never_an_argument_of_a_process(fake: Fake, controller: ControllerClient) -> None:
    fake.output = [(STDOUT, b"{}")]
    controller.json("PUT", "/run", {"env": {"KEY": CANARY}})
    assert all(CANARY.encode() not in request for request in fake.requests)
    (archive,) = fake.files
    with tarfile.open(fileobj=io.BytesIO(archive)) as reader:
        (entry,) = reader.getmembers()
        content = reader.extractfile(entry)
        assert content is not None
        assert json.loads(content.read()) == {"env": {"KEY": CANARY}}
    assert entry.mode == 0o600
    controller.json("POST", "/view", {"log_lines": 1})
    assert len(fake.files) == 1, "a request without content of the user's costs no further call"


def test_a_preview_gets_the_controllers_view_and_writes_no_file(
    fake: Fake, controller: ControllerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    fake.output = [(STDOUT, json.dumps(RecordView(at=7.0).to_dict()).encode())]
    cluster = {**task_props()["cluster"], "home": f"unix://{tmp_path}/engine.sock"}
    view, silent_since = task_runner._view(
        controller, RecordCopy(cast(ClusterRef, cluster)), None, ViewRequest(), is_preview=True
    )
    assert (view.at, silent_since) == (7.0, None)
    assert not (tmp_path / "state").exists()
