"""The packages of the virtual environment: what the lock names, and tfdeploy itself, editable."""

import sys
from pathlib import Path

from tools.provision.steps import locked, run

PIP = (sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check")


def install(root: Path, venv: Path) -> None:
    lock = root / "requirements.lock"
    stamp = venv / "installed"
    wanted = lock.read_text() + (root / "pyproject.toml").read_text()
    if _text(stamp) == wanted:
        return
    with locked(venv / "lock"):
        if _text(stamp) == wanted:
            return
        log = venv / "setup.log"
        run("Python packages", [*PIP, "--require-hashes", "-r", lock], log)
        # Its build backend is in the lock, so nothing unpinned is fetched for it.
        run("tfdeploy itself", [*PIP, "--no-deps", "--no-build-isolation", "-e", root], log)
        stamp.write_text(wanted)


def _text(file: Path) -> str | None:
    return file.read_text() if file.exists() else None
