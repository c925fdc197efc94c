"""The command `call`, by which tfdeploy 0.1.0 calls the controller of a newer cluster."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tfdeploy.agent.transport.rpc import TOKEN_HEADER, call


class Handler(BaseHTTPRequestHandler):
    """Responds with the call."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        content = f"{self.path} {body.decode()} {self.headers[TOKEN_HEADER]}".encode()
        self.send_response_only(404 if self.path == "/nothing" else 200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def address() -> Iterator[str]:
    """A controller."""
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


CALLS = [
    (["PUT", "/run", "{}"], 0, "/run {} secret", ""),
    (["PUT", "/code/1", "@FILE", "PUT", "/run", "{}"], 0, "/run {} secret", ""),
    (["PUT", "/run", "@FILE"], 0, "/run content secret", ""),
    (["PUT", "/nothing", "", "PUT", "/run", "{}"], 1, "", "PUT /nothing: 404 /nothing  secret\n"),
]


@pytest.mark.parametrize(("requests", "code", "output", "errors"), CALLS)
def test_calls_are_made(
    address: str,
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
    requests: list[str],
    code: int,
    output: str,
    errors: str,
) -> None:
    file = tmp_path / "file"
    file.write_text("content")
    (tmp_path / "token").write_text("secret\n")
    named = [item.replace("FILE", str(file)) for item in requests]
    assert call(address, str(tmp_path / "token"), named) == code
    printed = capsysbinary.readouterr()
    assert (printed.out.decode(), printed.err.decode()) == (output, errors)
    assert file.exists() == (f"@{file}" not in named)


def test_no_response_has_another_code(address: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    assert call("127.0.0.1:1", str(tmp_path / "token"), ["PUT", "/run", "{}"]) == 3
    assert call(address, str(tmp_path / "none"), ["PUT", "/run", "{}"]) == 3
