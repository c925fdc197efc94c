"""An image registry on a loopback port: Debian's docker-registry, with or without a login."""

import json
import socket
import subprocess
import tempfile
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import until

HOST = "127.0.0.1"
USER = "tester"
PASSWORD = "a-password-of-the-tests"
# That password by bcrypt, as `htpasswd -B` writes it.
HTPASSWD = "tester:$2b$05$abcdefghijklmnopqrstuu6O/jaYCx8zhCexxqCBsInzagwRDBqGq"


@dataclass(frozen=True)
class Registry:
    """A registry that runs; images for it are called `ADDRESS/NAME:TAG`."""

    address: str
    user: str = ""
    password: str = ""

    def tags(self, name: str) -> list[str]:
        """The tags of an image that has been pushed; none when it was not."""
        try:
            with urllib.request.urlopen(self._request(f"{name}/tags/list"), timeout=10) as answer:
                return sorted(json.load(answer)["tags"] or [])
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return []

    def answers(self) -> bool:
        """Whether it takes requests."""
        try:
            urllib.request.urlopen(self._request(""), timeout=10).close()
        except OSError:
            return False
        return True

    def _request(self, path: str) -> urllib.request.Request:
        login = b64encode(f"{self.user}:{self.password}".encode()).decode()
        headers = {"Authorization": f"Basic {login}"} if self.user else {}
        return urllib.request.Request(f"http://{self.address}/v2/{path}", headers=headers)


@contextmanager
def registry(login: bool = False, host: str = HOST, images: Path | None = None) -> Iterator[Registry]:
    """A registry of our own, empty unless it shares its images; with a login it takes only `USER` with `PASSWORD`."""
    with tempfile.TemporaryDirectory(prefix="tfdeploy-registry-") as folder:
        home = Path(folder)
        address = f"{host}:{_free_port(host)}"
        found = Registry(address, USER, PASSWORD) if login else Registry(address)
        (home / "htpasswd").write_text(HTPASSWD + "\n")
        settings = {
            "version": 0.1,
            "storage": {"filesystem": {"rootdirectory": str(images or home / "images")}, "delete": {"enabled": True}},
            "http": {"addr": address},
            **({"auth": {"htpasswd": {"realm": "tests", "path": f"{home}/htpasswd"}}} if login else {}),
        }
        # JSON is YAML.
        (home / "config.yml").write_text(json.dumps(settings))
        with (home / "log").open("wb") as log:
            # It ends with this process, however that ends.
            command = ["setpriv", "--pdeathsig=TERM", "docker-registry", "serve", str(home / "config.yml")]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            until(found.answers, f"a registry at {address}")
            yield found
        finally:
            process.terminate()
            process.wait(timeout=30)


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port
