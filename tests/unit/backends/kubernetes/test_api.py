"""Calls of an API server whose connections break, or that is away or busy."""

import json
import socket
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from tests.http_server import serving
from tests.unit.backends.kubernetes.conftest import config
from tfdeploy.backends.kubernetes import api
from tfdeploy.backends.kubernetes.api import ApiError, ApiServer
from tfdeploy.errors import Unreachable

CUT, CLOSE, BUSY, SHUTS_DOWN, FAILS = "cut", "close", "busy", "shuts down", "fails"
ANSWER = json.dumps({"kind": "Job", "padding": "x" * 5000}).encode()


class Script:
    """What the server does with each call in turn; afterwards it responds."""

    def __init__(self, *steps: str) -> None:
        self.steps = list(steps)
        self.calls: list[str] = []

    def __call__(self, *arguments: Any) -> "_Handler":
        return _Handler(self, *arguments)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, script: Script, *arguments: Any) -> None:
        self._script = script
        super().__init__(*arguments)

    def _respond(self) -> None:
        self._script.calls.append(self.command)
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        step = self._script.steps.pop(0) if self._script.steps else ""
        if step in (CUT, CLOSE):
            self.close_connection = True
            if step == CUT:
                self._send(200, ANSWER, len(ANSWER) - 236)
            return
        status = {BUSY: 429, SHUTS_DOWN: 503, FAILS: 503}.get(step, 200)
        self._send(status, ANSWER, len(ANSWER), pause="0" if step == FAILS else "1" if status != 200 else "")

    def _send(self, status: int, content: bytes, length: int, pause: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        if pause != "":
            self.send_header("Retry-After", pause)
        self.end_headers()
        self.wfile.write(content[:length])

    do_GET = do_POST = do_PATCH = do_DELETE = _respond  # noqa: N815

    def log_message(self, *_: Any) -> None:
        """The test needs no log."""


@pytest.fixture(autouse=True)
def _first_calls() -> Iterator[None]:
    """Each test is a process that has not called before."""
    api._responding.clear()
    yield
    api._responding.clear()


@pytest.fixture
def server_at(written: Any) -> Any:
    """The API server of a port, by a kubeconfig without a login."""

    def at(port: int) -> ApiServer:
        server = f"http://127.0.0.1:{port}"
        written(config("one", server, {}))
        return ApiServer(f"training@{server}")

    return at


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE"])
def test_a_call_whose_connection_breaks_is_repeated(server_at: Any, method: str) -> None:
    script = Script(CUT, CLOSE, CUT)
    with serving(script) as port:
        assert server_at(port).json(method, "/jobs", {"kind": "Job"})["kind"] == "Job"
    assert script.calls == [method] * 4


def test_a_server_that_has_responded_is_waited_for(server_at: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "_FIRST_PATIENCE", 0.2)
    script = Script("", *[CLOSE] * 5)
    with serving(script) as port:
        server = server_at(port)
        server.get("/version")
        server.get("/version")
    assert len(script.calls) == 7


def test_a_server_that_is_away_is_said_soon_to_be(server_at: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    begun = time.monotonic()
    with pytest.raises(Unreachable, match="does not respond"):
        server_at(port).get("/version")
    assert time.monotonic() - begun < 12.0, "it was waited for as long as one that has responded"
    monkeypatch.setattr(api, "PATIENCE", 0.3)
    api._responding.add(f"http://127.0.0.1:{port}")
    with pytest.raises(Unreachable):
        server_at(port).get("/version")
    assert not api._responding, "the next call waits less"


def test_a_busy_server_says_when_to_call_again_and_what_one_refuses_is_not_repeated(server_at: Any) -> None:
    script = Script(BUSY, SHUTS_DOWN)
    with serving(script) as port:
        server = server_at(port)
        api._responding.add(server.server)
        assert server.post("/jobs", {})["kind"] == "Job"
    assert len(script.calls) == 3
    script = Script(FAILS)
    with serving(script) as port, pytest.raises(ApiError) as refused:
        server_at(port).get("/jobs")
    assert (refused.value.status, len(script.calls)) == (503, 1)
