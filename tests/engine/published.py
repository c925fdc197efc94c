"""The images of `images/`, built on a Debian made of its packages: their own BASE comes from an image registry."""

import os
import ssl
import tempfile
from pathlib import Path

from tests.engine.cli import LABEL, digest, docker
from tests.engine.images import NAME, ROOT, debian_image, missing

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
        f"FROM {debian_image(address)}",
        f"RUN {get} && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt",
        *([f"COPY trusted {TRUSTED}", f"ENV PIP_CERT={TRUSTED}"] if trusted else []),
    ]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "Dockerfile").write_text("\n".join(lines))
        Path(folder, "trusted").write_text(certificates)
        return _built(address, "base", Path(folder), debian_image(address))


def image(address: str, kind: str) -> str:
    """`images/KIND`."""
    stands_on = base(address)
    return _built(address, kind, IMAGES / kind, stands_on, f"BASE={stands_on}", *ARGUMENTS[kind])


def _built(address: str, name: str, folder: Path, base: str, *arguments: str) -> str:
    """The image of a folder, built unless there is one of the same content."""
    tag = f"{NAME}/published:{name}"
    files = [text for path in sorted(folder.iterdir()) for text in (path.name, path.read_text())]
    recipe = digest(docker(address, "image", "inspect", "--format", "{{.Id}}", base), *files, *arguments)
    given = [part for argument in arguments for part in ("--build-arg", argument)]
    with missing(address, tag, recipe) as is_missing:
        if is_missing:
            docker(address, "build", "--quiet", "--label", f"{LABEL}={recipe}", "--tag", tag, *given, folder)
    return tag
