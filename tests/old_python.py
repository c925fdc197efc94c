"""The oldest Python that the agent and the watchdog promise to run under."""

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MISSING = "there is no Python 3.8 here, neither on PATH nor of pyenv"


def old_python() -> str:
    """A Python 3.8 that starts, with ctypes; empty when there is none. One on PATH may be a stub that says where the real one is."""
    ask = "import ctypes, sys; print(sys.version_info[:2] == (3, 8))"
    for path in dict.fromkeys(_candidates()):
        done = subprocess.run([path, "-c", ask], capture_output=True, text=True, check=False)
        if done.stdout.strip() == "True":
            return path
    return ""


def _candidates() -> Iterator[str]:
    """Where it may be: on PATH, and among pyenv's versions, also where HOME is another folder than the user's."""
    if found := shutil.which("python3.8"):
        yield found
    homes = (Path.home(), Path(pwd.getpwuid(os.getuid()).pw_dir))
    roots = [Path(os.environ["PYENV_ROOT"])] if os.environ.get("PYENV_ROOT") else []
    versions = [root / "versions" for root in (*roots, *(home / ".pyenv" for home in homes))]
    for folder in (*versions, Path(sys.base_prefix).resolve().parent):
        yield from map(str, sorted(folder.glob("3.8*/bin/python3.8")))
