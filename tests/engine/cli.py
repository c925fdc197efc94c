"""The docker command, for one engine."""

import hashlib
import os
import subprocess
from pathlib import Path

LABEL = "tfdeploy.test"
"""What the tests make has this label, so that it can be told from everything else."""


class DockerFailed(Exception):
    """A docker command ended badly; what it said."""


def docker(address: str, *arguments: str | Path, stdin: str | None = None) -> str:
    """What `docker ARGUMENTS` printed, on the engine at this address."""
    done = subprocess.run(
        ["docker", "-H", address, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    if done.returncode != 0:
        raise DockerFailed(f"docker {' '.join(map(str, arguments))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.strip()


def environment() -> dict[str, str]:
    """The environment of docker commands: the engine's own builder, no context or address but the one given."""
    kept = {name: value for name, value in os.environ.items() if name not in ("DOCKER_HOST", "DOCKER_CONTEXT")}
    return {**kept, "DOCKER_BUILDKIT": "0"}


def cache() -> Path:
    """Where the tests keep what is slow to make: a folder in the user's cache."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tfdeploy" / "engine"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def digest(*parts: str) -> str:
    """A short name for a content."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
