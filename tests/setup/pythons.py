"""Interpreters of other versions, from PATH or from pyenv."""

import os
import shutil
import subprocess
from pathlib import Path


def python(version: str) -> str:
    """An interpreter of this version, such as 3.12; empty when there is none."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    of_pyenv = map(str, sorted(versions.glob(f"{version}.*/bin/python{version}")))
    ask = "import ctypes, ensurepip, ssl, sys; print('%d.%d' % sys.version_info[:2])"
    for path in filter(None, [shutil.which(f"python{version}"), *of_pyenv]):
        done = subprocess.run([path, "-c", ask], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return path
    return ""
