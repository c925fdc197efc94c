"""Programs that tests need, from Debian's packages where they are missing."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PACKAGES = {"chromium": ("chromium", "fonts-liberation"), "npm": ("npm",), "zsh": ("zsh",)}
"""Which packages a program needs."""


class NotInstalled(Exception):
    """A program is missing, and cannot be installed; the message says why, in a line."""


def provided(name: str) -> str:
    """The program of that name, a key of `PACKAGES`; one process of the tests installs it, the others wait.

    Raises:
        NotInstalled: it is missing all the same.
    """
    if not shutil.which(name):
        with _locked(name):
            if not shutil.which(name):
                install(f"{name} is missing", PACKAGES[name])
    found = shutil.which(name)
    if found is None:
        raise NotInstalled(f"there is no {name} after {' '.join(PACKAGES[name])} were installed")
    return found


def install(missing: str, packages: Sequence[str]) -> None:
    """Install packages.

    Raises:
        NotInstalled: only root can, or it failed; after what is `missing`.
    """
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise NotInstalled(f"{missing}, and only root can install Debian's {' '.join(packages)}")
    apt = ["apt-get", "-q", "-y", "--no-install-recommends"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with _locked("apt"):
        for command in ([*apt, "update"], [*apt, "install", *packages]):
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
            if done.returncode != 0:
                raise NotInstalled(
                    f"{missing}, and {' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}"
                )


@contextmanager
def _locked(name: str) -> Iterator[None]:
    """Only one process at a time, and one thread of it."""
    with Path(tempfile.gettempdir(), f"tfdeploy-{name}-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
