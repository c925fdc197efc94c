"""The Python packages that a program needs besides ours, installed once into a cached environment."""

import fcntl
import hashlib
import importlib.util
import json
import shutil
import site
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ...errors import CommandError
from ..folders import cache_folder

_DONE = "complete"


def interpreter_folder() -> Path:
    """The folder of the Python that runs us: its `python`, and the programs installed beside it, are what tasks find."""
    return Path(sys.executable).parent


def search_path(requirements: Sequence[str]) -> list[str]:
    """The folders that go first on the tasks' `PATH`; the packages are installed when they are not yet.

    Raises:
        CommandError: pip could not install them; it carries pip's last lines.
    """
    own = [str(interpreter_folder())]
    return [str(_environment(requirements) / "bin"), *own] if requirements else own


def _environment(requirements: Sequence[str]) -> Path:
    """A virtual environment that also sees the packages of our own, so that only what is missing is installed."""
    visible = [path for path in (*site.getsitepackages(), site.getusersitepackages()) if Path(path).is_dir()]
    key = json.dumps([sys.version, sys.executable, sorted(requirements)])
    folder = cache_folder() / "environments" / hashlib.sha256(key.encode()).hexdigest()[:16]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / _DONE).exists():
            shutil.rmtree(folder, ignore_errors=True)
            # Our own pip is seen from there too; to install another one takes several seconds.
            without_pip = ["--without-pip"] if importlib.util.find_spec("pip") else []
            venv = [sys.executable, "-m", "venv", *without_pip, str(folder)]
            _call("making an environment for the requirements", venv)
            python = folder / "bin" / "python"
            packages = next((folder / "lib").glob("python*/site-packages"))
            (packages / "tfdeploy-base.pth").write_text("\n".join(visible) + "\n")
            pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *requirements]
            _call(f"installing the requirements {', '.join(requirements)}", pip)
            (folder / _DONE).touch()
    return folder


def _call(what: str, command: Sequence[str]) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode:
        raise CommandError(what, done.returncode, done.stdout.decode("utf-8", "replace").splitlines())
