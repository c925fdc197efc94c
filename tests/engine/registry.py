"""An image registry on a port of this machine: Debian's docker-registry, with or without a login and a certificate."""

import json
import socket
import ssl
import subprocess
import tempfile
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    certificate: Path | None = None
    """What its clients must trust; without one it is reached by plain HTTP."""

    def tags(self, name: str) -> list[str]:
        """The tags of an image that has been pushed; none when it was not."""
        try:
            with self._open(f"{name}/tags/list") as answer:
                return sorted(json.load(answer)["tags"] or [])
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return []

    def answers(self) -> bool:
        """Whether it takes requests."""
        try:
            self._open("").close()
        except OSError:
            return False
        return True

    def _open(self, path: str) -> Any:
        login = b64encode(f"{self.user}:{self.password}".encode()).decode()
        headers = {"Authorization": f"Basic {login}"} if self.user else {}
        trusted = ssl.create_default_context(cafile=self.certificate) if self.certificate else None
        url = f"{'https' if trusted else 'http'}://{self.address}/v2/{path}"
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10, context=trusted)


@contextmanager
def registry(
    login: bool = False, host: str = HOST, images: Path | None = None, secured: bool = False
) -> Iterator[Registry]:
    """A registry of our own, empty unless it shares its images; with a login it takes only `USER` with `PASSWORD`."""
    with tempfile.TemporaryDirectory(prefix="tfdeploy-registry-") as folder:
        home = Path(folder)
        address = f"{host}:{_free_port(host)}"
        certificate = _certificate(home, host) if secured else None
        found = Registry(address, *((USER, PASSWORD) if login else ("", "")), certificate)
        tls = {"certificate": str(certificate), "key": f"{home}/key"}
        (home / "htpasswd").write_text(HTPASSWD + "\n")
        settings = {
            "version": 0.1,
            "storage": {"filesystem": {"rootdirectory": str(images or home / "images")}, "delete": {"enabled": True}},
            "http": {"addr": address, **({"tls": tls} if secured else {})},
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


def _certificate(folder: Path, host: str) -> Path:
    """A certificate for this address, signed by itself; its key is beside it."""
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"]
    name = ["-subj", f"/CN={host}", "-addext", f"subjectAltName=IP:{host}"]
    made = folder / "certificate"
    command = ["openssl", "req", *kind, *name, "-out", str(made), "-keyout", f"{folder}/key"]
    subprocess.run(command, check=True, capture_output=True)
    return made


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port
