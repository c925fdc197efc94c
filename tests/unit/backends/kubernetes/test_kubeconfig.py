"""Which API server a context names, each way to log in there, and calls of one that breaks connections, is away, or is busy."""

import base64
import json
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.http_server import serving
from tfdeploy.backends.kubernetes import api
from tfdeploy.backends.kubernetes.api import ApiError, ApiServer
from tfdeploy.backends.kubernetes.discover import discover_clusters
from tfdeploy.backends.kubernetes.kubeconfig import Kubeconfig
from tfdeploy.backends.kubernetes.namespace import chosen_place, parse_home
from tfdeploy.errors import SpecError, Unreachable

PLUGIN = """\
#!/bin/sh
echo "$KUBERNETES_EXEC_INFO" >{folder}/info
echo '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {{"token": "of-the-plugin"}}}}'
"""


def config(name: str, server: str, user: dict[str, Any], **cluster: Any) -> dict[str, Any]:
    """A kubeconfig of one context."""
    return {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"of-{name}"}}],
        "clusters": [{"name": name, "cluster": {"server": server, **cluster}}],
        "users": [{"name": name, "user": user}],
    }


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes the files of KUBECONFIG."""

    def write(*configs: dict[str, Any]) -> None:
        paths = [tmp_path / f"config-{number}" for number in range(len(configs))]
        for path, content in zip(paths, configs, strict=True):
            path.write_text(yaml.safe_dump(content))
        monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, paths)))

    return write


def test_a_context_is_a_server_and_a_namespace(written: Any) -> None:
    written(config("one", "https://one:6443/", {}), config("two", "https://two:6443/path", {}))
    assert chosen_place().home == "of-one@https://one:6443"
    assert chosen_place("two", "mine").home == "mine@https://two:6443/path"
    assert parse_home("mine@https://two:6443/path").server == "https://two:6443/path"
    assert Kubeconfig().context_of("https://two:6443/path") == "two", "of another file, and not the current one"


@pytest.mark.parametrize(("context", "word"), [("tow", "two"), ("", "current")])
def test_what_is_not_there_is_refused_by_name(written: Any, context: str, word: str) -> None:
    content = config("two", "https://two:6443", {})
    written({**content, "current-context": ""})
    with pytest.raises(SpecError, match=word):
        chosen_place(context)
    with pytest.raises(SpecError, match="https://gone:6443"):
        Kubeconfig().context_of("https://gone:6443")


def test_each_way_to_log_in(written: Any, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    plugin.write_text(PLUGIN.format(folder=tmp_path))
    plugin.chmod(0o755)
    (tmp_path / "token").write_text("of-a-file")
    command = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
    users: dict[str, dict[str, Any]] = {
        "token": {"token": "in-it"},
        "file": {"tokenFile": str(tmp_path / "token")},
        "basic": {"username": "u", "password": "p"},
        "plugin": {"exec": command},
    }
    written(*(config(name, f"https://{name}:6443", user) for name, user in users.items()))
    sent = {name: ApiServer(f"n@https://{name}:6443").authorization() for name in users}
    assert sent == {
        "token": {"authorization": "Bearer in-it"},
        "file": {"authorization": "Bearer of-a-file"},
        "basic": {"authorization": "Basic dTpw"},
        "plugin": {"authorization": "Bearer of-the-plugin"},
    }
    assert json.loads((tmp_path / "info").read_text())["kind"] == "ExecCredential"


def test_proxy_and_name_of_the_server_are_used(written: Any) -> None:
    options = {"proxy-url": "http://proxy:3128", "tls-server-name": "inside", "insecure-skip-tls-verify": True}
    written(config("far", "https://far:6443", {}, **options))
    configuration = ApiServer("n@https://far:6443").client.configuration
    assert (configuration.proxy, configuration.tls_server_name, configuration.verify_ssl) == (
        "http://proxy:3128",
        "inside",
        False,
    )


@pytest.mark.parametrize("as_text", [False, True])
def test_no_key_is_in_a_temporary_file_while_a_process_may_be_killed(
    written: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_text: bool
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    texts = {name: f"{name} of {as_text}" for name in ("client-key", "client-certificate", "certificate-authority")}
    data = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
    login = {f"{name}-data": data[name] for name in ("client-key", "client-certificate")}
    content = config("one", "https://one:6443", login, **{"certificate-authority-data": data["certificate-authority"]})
    written(content)
    made = Kubeconfig(yaml.safe_dump(content) if as_text else "").configuration("one")
    paths = (made.key_file, made.cert_file, made.ssl_ca_cert)
    assert [Path(path).read_text() for path in paths] == [*texts.values()]
    assert not list(folder.iterdir())


def test_a_computer_without_a_context_is_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(Unreachable, match="no kubeconfig has a context"):
        discover_clusters()


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
