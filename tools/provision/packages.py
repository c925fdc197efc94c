"""The packages of the virtual environment: what the lock names for the extras that are installed, and tfdeploy itself, editable.

pip installs uv, and uv the rest, from the index that pip is configured for: in a sixth of the processor time of pip, and a further
environment of the same user within two seconds, by links to the files of the first.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from tools.provision import lockfile
from tools.provision.steps import locked, run

PIP = (sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--require-hashes", "-r")
UV = (sys.executable, "-m", "uv", "pip", "install", "--python", sys.executable)
UV_SETTINGS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
}
"""Settings of pip, and the variables by which uv has the same."""


def install(root: Path, venv: Path, extras: Collection[str]) -> None:
    """Install what these extras need, unless it is there; the extras of earlier set-ups stay, and follow the lock too."""
    if not _missing(root, venv, extras):
        return
    with locked(venv / "lock"):
        missing = _missing(root, venv, extras)
        if not missing:
            return
        log = venv / "setup.log"
        stamp = venv / "installed"
        if "packages" in missing:
            wanted = _wanted(root, venv, extras)
            chosen = venv / "requirements.txt"
            chosen.write_text(lockfile.part((root / "requirements.lock").read_text(), lockfile.BUILD))
            run("uv", [*PIP, chosen], log)
            text = _chosen(root, wanted)
            chosen.write_text(text)
            count = len(re.findall(r"^[\w.-]+(?:\[.*?\])?==", text, re.MULTILINE))
            run(
                f"{count} Python packages for {', '.join(wanted)}",
                [*UV, "--require-hashes", "-r", chosen],
                log,
                uv_settings(),
            )
        if "itself" in missing:
            # Its build backend is in the lock, so nothing unpinned is fetched for it.
            run("tfdeploy itself", [*UV, "--no-deps", "--no-build-isolation", "-e", root], log, uv_settings())
        wanted = _wanted(root, venv, extras)
        draft = stamp.with_suffix(".draft")
        draft.write_text(json.dumps({"extras": wanted, **_digests(root, wanted)}))
        draft.rename(stamp)


def uv_settings() -> dict[str, str]:
    """What pip is configured for, by its files and its variables, in variables of uv that are not set."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    # The last of several lines counts: files come before variables.
    found = dict(re.findall(r"^\S*?\.([a-z-]+)='(.*)'$", listed.stdout, re.MULTILINE))
    ours = {variable: found[name].replace("\\n", " ") for name, variable in UV_SETTINGS.items() if name in found}
    # Compiled while several processes import them, modules would be compiled several times.
    wanted = {**ours, "UV_COMPILE_BYTECODE": "1"}
    return {name: value for name, value in wanted.items() if name not in os.environ}


def _missing(root: Path, venv: Path, extras: Collection[str]) -> set[str]:
    """What is not as it should be: `packages`, `itself`."""
    installed = _installed(venv)
    wanted = _wanted(root, venv, extras)
    digests = _digests(root, wanted)
    missing = {name for name, digest in digests.items() if installed.get(name) != digest}
    return missing if installed.get("extras") == wanted else missing | {"packages"}


def _wanted(root: Path, venv: Path, extras: Collection[str]) -> list[str]:
    """These extras, and those that are installed and still exist."""
    extras_of_project = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return sorted({*extras, *(extra for extra in _installed(venv).get("extras", []) if extra in extras_of_project)})


def _chosen(root: Path, extras: Collection[str]) -> str:
    return lockfile.part(
        (root / "requirements.lock").read_text(), lockfile.roots((root / "pyproject.toml").read_text(), extras)
    )


def _digests(root: Path, extras: Collection[str]) -> dict[str, str]:
    """What of the lock and of pyproject.toml an installation depends on."""
    read = tomllib.loads((root / "pyproject.toml").read_text())
    itself = {"project": read["project"], "build": read["tool"]["hatch"]["build"]}
    return {"packages": _digest(_chosen(root, extras)), "itself": _digest(json.dumps(itself))}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _installed(venv: Path) -> Mapping[str, Any]:
    """What the last complete set-up wrote; nothing where none was, or where it was one of another layout."""
    try:
        stored = json.loads((venv / "installed").read_text())
    except (OSError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}
