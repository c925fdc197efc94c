"""Images that the nodes have from the start, as one file in Docker's format: no engine is needed to make it."""

import fcntl
import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.engine import images
from tests.engine.cli import cache, digest

PAUSE = f"{images.NAME}/slim:pause"
"""What keeps the namespaces of a pod."""

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    images.PYTHON: {"Cmd": ["python3"]},
    images.USER: {"Cmd": ["python3"], "User": "1000"},
    PAUSE: {"Entrypoint": ["sleep", "infinity"]},
}
"""The images, which have the same files."""


def archive() -> Path:
    """A file with all of them; it is made once."""
    recipe = digest(images.debian_recipe(), images.SLIM.read_text(), json.dumps(CONFIGS))
    file = cache() / f"kube-images-{recipe}.tar"
    with (cache() / "kube-images.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            with tempfile.TemporaryDirectory(dir=cache()) as folder:
                _make(Path(folder), file)
    return file


def _make(folder: Path, file: Path) -> None:
    system, content = folder / "system", folder / "content"
    system.mkdir()
    content.mkdir()
    subprocess.run(["tar", "-C", system, "-xf", images.debian_tar()], check=True)
    shutil.copy(images.SLIM, system)
    subprocess.run(["chroot", system, "python3", f"/{images.SLIM.name}", "/slim"], check=True)
    subprocess.run(["tar", "--numeric-owner", "-C", system / "slim", "-cf", content / "layer.tar", "."], check=True)
    with (content / "layer.tar").open("rb") as layer:
        digest_of_layer = hashlib.file_digest(layer, "sha256").hexdigest()
    manifest = []
    for name, config in CONFIGS.items():
        described = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"], **config},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest_of_layer}"]},
        }
        text = json.dumps(described)
        config_file = f"{hashlib.sha256(text.encode()).hexdigest()}.json"
        (content / config_file).write_text(text)
        manifest.append({"Config": config_file, "RepoTags": [name], "Layers": ["layer.tar"]})
    (content / "manifest.json").write_text(json.dumps(manifest))
    draft = folder / "draft.tar"
    subprocess.run(["tar", "-C", content, "-cf", draft, "."], check=True)
    draft.rename(file)
