"""The Python packages that a program needs besides those of tfdeploy, installed once into a cached environment."""

import fcntl
import hashlib
import importlib.util
import json
import shutil
import site
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from ...errors import CommandError
from ...paths import cache_folder

_DONE = "complete"


def interpreter_folder() -> Path:
    """The folder of the current Python interpreter: tasks use its `python` and the programs installed beside it."""
    return Path(sys.executable).parent


def search_path(
    requirements: Sequence[str], noted: Callable[[], AbstractContextManager[None]] = nullcontext
) -> list[str]:
    """The folders at the start of the tasks' `PATH`; the packages are installed, in the context `noted`, if they are missing.

    Raises:
        CommandError: pip could not install them; the error has pip's last lines.
    """
    interpreter = [str(interpreter_folder())]
    return [str(_environment(requirements, noted) / "bin"), *interpreter] if requirements else interpreter


def _environment(requirements: Sequence[str], noted: Callable[[], AbstractContextManager[None]]) -> Path:
    """A virtual environment that also sees the packages of the current interpreter, so that only what is missing is installed."""
    visible = [path for path in (*site.getsitepackages(), site.getusersitepackages()) if Path(path).is_dir()]
    key = json.dumps([sys.version, sys.executable, sorted(requirements)])
    folder = cache_folder() / "environments" / hashlib.sha256(key.encode()).hexdigest()[:16]
    folder.parent.mkdir(parents=True, exist_ok=True)
    if (folder / _DONE).exists():
        return folder
    with noted(), folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / _DONE).exists():
            shutil.rmtree(folder, ignore_errors=True)
            # The environment also sees the current interpreter's pip; to install another one takes several seconds.
            without_pip = ["--without-pip"] if importlib.util.find_spec("pip") else []
            venv = [sys.executable, "-m", "venv", *without_pip, str(folder)]
            _run("making an environment for the requirements", venv)
            python = folder / "bin" / "python"
            packages = next((folder / "lib").glob("python*/site-packages"))
            (packages / "tfdeploy-base.pth").write_text("\n".join(visible) + "\n")
            pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *requirements]
            _run(f"installing the requirements {', '.join(requirements)}", pip)
            (folder / _DONE).touch()
    return folder


def _run(action: str, command: Sequence[str]) -> None:
    completed = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if completed.returncode:
        raise CommandError(action, completed.returncode, completed.stdout.decode("utf-8", "replace").splitlines())
