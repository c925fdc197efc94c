"""A proxy behind which there is one host with git repositories, and no other."""

import os
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from tests.http_server import serving

HOST = "git.example.org"


@dataclass
class GitServer:
    """It serves the repositories in a folder, and remembers for which other hosts it was asked."""

    root: Path
    port: int = 0
    refused: list[str] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        """Lets a program use the proxy for all hosts but this one, and trust its certificate."""
        proxy = f"http://127.0.0.1:{self.port}"
        trusted = {"SSL_CERT_FILE": str(self.root / "certificate.pem")}
        return {"HTTPS_PROXY": proxy, "HTTP_PROXY": proxy, "NO_PROXY": "localhost,127.0.0.1", **trusted}


def _certified(root: Path) -> ssl.SSLContext:
    """A server's side of TLS, with a new certificate for the host."""
    key, certificate = root / "key.pem", root / "certificate.pem"
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={HOST}"]
    request += ["-addext", f"subjectAltName=DNS:{HOST}", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(request, capture_output=True, check=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


def _answer(root: Path, request: BaseHTTPRequestHandler, body: bytes) -> tuple[dict[str, str], bytes]:
    """The headers and the content with which git answers. A request is one call of the program, as RFC 3875 (CGI) describes."""
    path, _, query = request.path.partition("?")
    env = {
        "GIT_PROJECT_ROOT": str(root),
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
        "REQUEST_METHOD": request.command,
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "CONTENT_TYPE": request.headers.get("Content-Type", ""),
    }
    call = ["git", "http-backend"]
    answer = subprocess.run(call, input=body, env={**os.environ, **env}, capture_output=True, check=True).stdout
    head, _, content = answer.partition(b"\r\n\r\n")
    return dict(line.split(": ", 1) for line in head.decode().splitlines()), content


@contextmanager
def git_server(root: Path) -> Iterator[GitServer]:
    """Serve the repositories in a folder by `git http-backend`, over HTTPS: Pulumi fetches packages by no other scheme."""
    context = _certified(root)
    found = GitServer(root)

    class Handler(BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            if self.path != f"{HOST}:443":
                found.refused.append(self.path)
                self.send_error(403)
                return
            self.send_response(200)
            self.end_headers()
            self.connection = context.wrap_socket(self.connection, server_side=True)
            self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", buffering=0)
            self.close_connection = False

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers, content = _answer(root, self, body)
            self.send_response(int(headers.pop("Status", "200").split()[0]))
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, *args: object) -> None:
            pass

    with serving(Handler) as found.port:
        yield found
