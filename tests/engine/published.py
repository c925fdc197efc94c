"""The images of `images/`, built on a Debian made of its packages: their own BASE comes from an image registry."""

import fcntl
import os
import ssl
import tempfile
from pathlib import Path

from tests.engine.cli import LABEL, cache, digest, docker
from tests.engine.images import NAME, ROOT, python_image, there

IMAGES = ROOT / "images"
ARGUMENTS = {"cpu": (), "hdfs": ("HADOOP_URL=",)}
"""With HDFS it is without Hadoop itself."""

TRUSTED = "/etc/ssl/certs/ca-certificates.crt"


def base(address: str) -> str:
    """Python with venv, which trusts whom this machine trusts: a proxy may stand between it and PyPI."""
    trusted = os.environ.get("PIP_CERT") or ssl.get_default_verify_paths().cafile
    certificates = Path(trusted).read_text() if trusted else ""
    get = "apt-get -q update && apt-get -q -y --no-install-recommends install python3-venv"
    lines = [
        f"FROM {python_image(address)}",
        f"RUN {get} && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt",
        *([f"COPY trusted {TRUSTED}", f"ENV PIP_CERT={TRUSTED}"] if trusted else []),
    ]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "Dockerfile").write_text("\n".join(lines))
        Path(folder, "trusted").write_text(certificates)
        return _built(address, "images-base", Path(folder), python_image(address))


def image(address: str, kind: str) -> str:
    """`images/KIND`."""
    stands_on = base(address)
    return _built(address, f"images-{kind}", IMAGES / kind, stands_on, f"BASE={stands_on}", *ARGUMENTS[kind])


def _built(address: str, name: str, folder: Path, base: str, *arguments: str) -> str:
    """The image of a folder, built unless there is one of the same content; of several runs one builds, and the others wait."""
    tag = f"{NAME}/{name}"
    files = [text for path in sorted(folder.iterdir()) for text in (path.name, path.read_text())]
    recipe = digest(docker(address, "image", "inspect", "--format", "{{.Id}}", base), *files, *arguments)
    given = [part for argument in arguments for part in ("--build-arg", argument)]
    with (cache() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not there(address, tag, recipe):
            docker(address, "build", "--quiet", "--label", f"{LABEL}={recipe}", "--tag", tag, *given, folder)
    return tag
