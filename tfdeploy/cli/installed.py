"""Whether this computer has what every cluster needs: Python, Pulumi, a place for what is known."""

import os
import platform
import re
import shutil
import sys
from pathlib import Path

from .. import registry
from ..backends.base import FAIL, OK, WARN, Check
from ..backends.folders import state_folder
from ..errors import BackendError
from ..quantities import text_of_size
from ..versions import versions
from .pulumi_command import pulumi
from .settings import text_of

LEAST_PULUMI = (3, 249)
LEAST_PYTHON = (3, 11)
_SECONDS = 15.0
_LITTLE, _TOO_LITTLE = 5 << 30, 256 << 20
_SECRETS = re.compile(r"^secretsprovider: *(\S+)", re.MULTILINE)


def python() -> Check:
    """The interpreter, and our own package."""
    said = f"{platform.python_version()} at {sys.executable}; tfdeploy {versions().get('pulumi-tfdeploy', 'from its sources')}"
    if sys.version_info < LEAST_PYTHON:
        return Check("python", FAIL, said, f"Use Python {'.'.join(map(str, LEAST_PYTHON))} or newer.")
    return Check("python", OK, said)


def pulumi_command(folder: Path) -> Check:
    """Pulumi's command, and its version."""
    install = "Install it: https://www.pulumi.com/docs/install/"
    try:
        told = pulumi(folder, "version", seconds=_SECONDS).stdout.strip()
    except BackendError as error:
        sentence, _, remedy = str(error).partition(". ")
        return Check("pulumi", FAIL, sentence, remedy or install)
    number = re.match(r"v?(\d+)\.(\d+)", told)
    if number is None or (int(number[1]), int(number[2])) < LEAST_PULUMI:
        return Check("pulumi", FAIL, f"{told or 'of no version'} is too old", f"{install} ({_least()} or newer)")
    return Check("pulumi", OK, f"{told} at {shutil.which('pulumi')}")


def language() -> Check:
    """What lets Pulumi run Python."""
    name = "pulumi-language-python"
    path = shutil.which(name)
    if path is None:
        return Check(name, FAIL, "is not on PATH", "It comes with Pulumi: put the folder of `pulumi` on PATH.")
    return Check(name, OK, path)


def login() -> Check:
    """Where stacks are kept."""
    where = registry.login()
    if not where:
        return Check(
            "login", FAIL, "nobody is logged in", "pulumi login, or for files of your own: pulumi login --local"
        )
    folder = Path(where.removeprefix("file://")).expanduser()
    if where.startswith("file://") and not folder.is_dir():
        return Check("login", FAIL, f"{folder} is no folder", f"mkdir -p {folder}, or log in elsewhere: pulumi login")
    return Check("login", OK, where)


def passphrase(file: Path | None, stack: str) -> Check:
    """What the stack's secrets are locked with."""
    what = "passphrase"
    provider = _provider(file, stack)
    if provider and provider != "passphrase":
        return Check(what, OK, f"the stack's secrets are kept by {provider}")
    if registry.login().startswith("https://"):
        return Check(what, OK, "Pulumi's service keeps the secrets")
    source = os.environ.get("PULUMI_CONFIG_PASSPHRASE_FILE")
    if source and not Path(source).expanduser().is_file():
        return Check(what, FAIL, f"PULUMI_CONFIG_PASSPHRASE_FILE names {source}, which is not there", "Mend its path.")
    if source or "PULUMI_CONFIG_PASSPHRASE" in os.environ:
        return Check(what, OK, f"from {'the file ' + source if source else 'PULUMI_CONFIG_PASSPHRASE'}")
    return Check(
        what,
        WARN,
        "comes from nowhere: Pulumi asks for it",
        "Set PULUMI_CONFIG_PASSPHRASE_FILE, or PULUMI_CONFIG_PASSPHRASE.",
    )


def project(file: Path | None, stack: str) -> list[Check]:
    """The program, and its stack."""
    if file is None:
        remedy = "Go to the folder of the program, or give it: --cwd FOLDER."
        return [Check("program", WARN, "there is no Pulumi.yaml here or above", remedy)]
    found = Check("program", OK, str(file.parent))
    if not stack:
        return [found, Check("stack", WARN, "none is selected", "pulumi stack select NAME, or pulumi stack init NAME")]
    return [found, Check("stack", OK, stack)]


def state() -> list[Check]:
    """The folder in which all is kept that is known of clusters."""
    folder = state_folder()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    said = f"{text_of_size(free)} free in {folder}"
    grade = FAIL if free < _TOO_LITTLE else WARN if free < _LITTLE else OK
    space = Check(
        "disk space", grade, said, "" if grade == OK else "Remove what is not needed; `kept` in it has old records."
    )
    return [space, _private(folder)]


def _private(folder: Path) -> Check:
    what = "state folder"
    if not folder.exists():
        return Check(what, OK, f"{folder} is made by the first cluster")
    found = folder.stat()
    if found.st_uid != os.getuid():
        return Check(
            what,
            FAIL,
            f"{folder} belongs to another user (uid {found.st_uid})",
            "Set XDG_STATE_HOME to a folder of yours.",
        )
    if found.st_mode & 0o077:
        return Check(what, FAIL, f"others can enter {folder}", f"chmod 700 {folder}")
    return Check(what, OK, f"{folder}, yours alone")


def _provider(file: Path | None, stack: str) -> str:
    """The stack's own keeper of secrets; empty where none is named."""
    found = _SECRETS.search(text_of(file, stack))
    return found[1] if found else ""


def _least() -> str:
    return ".".join(map(str, LEAST_PULUMI))
