"""`tfdeploy doctor`: what is installed, reachable and configured."""

import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ... import registry
from ...backends.backend import health, preload
from ...backends.base import FAIL, OK, WARN, Check
from ...backends.parallel_calls import call_in_parallel
from ...errors import BackendError, NotFound, SpecError
from ...paths import RECORDS_FOLDER, state_folder
from ...registry import versions
from ...spec.backends import BACKENDS, DEFAULT_BACKEND
from ...units import text_of_size, wrapped
from ..cluster_selection import ClusterQuery, current_stack, find_project
from ..command_table import FAILED
from ..output import print_json, print_result, screen_width
from ..pulumi import places, pulumi, secrets_provider, settings

MINIMUM_PULUMI = (3, 249)
_VERSION_SECONDS = 15.0
_CHECK_SECONDS = 20.0
_LOW_SPACE, _NO_SPACE = 5 << 30, 256 << 20
_NOT_NEEDED = "-"
_INSTALL = "Install it: https://www.pulumi.com/docs/install/"


@dataclass(frozen=True)
class CheckRow:
    """A check, and the backend that needs it: empty if all backends do."""

    backend: str
    check: Check


def doctor(query: ClusterQuery) -> None:
    """Check what is installed, reachable and configured.

    A failed check has a remedy. The exit code is 1 if a check of the stack's backend failed. What only other backends need is
    shown as `-`.
    """
    file, stack = current_stack(query)
    configuration = settings(file, stack)
    backend = _backend_of(query, stack, configuration)
    folder = file.parent if file else query.cwd
    calls: dict[tuple[str, str], Callable[[], Sequence[Check]]] = {
        ("", "python"): lambda: [check_python()],
        ("", "pulumi"): lambda: [check_pulumi(folder)],
        ("", "pulumi-language-python"): lambda: [check_language_host()],
        ("", "login"): lambda: [check_login()],
        ("", "passphrase"): lambda: [check_passphrase(file, stack)],
        ("", "program"): lambda: check_project(file, stack),
        ("", "state folder"): check_state_folder,
    }
    preload(BACKENDS)
    calls |= {(name, name): partial(health, name, places(configuration)[name]) for name in BACKENDS}
    results = call_in_parallel(calls, _CHECK_SECONDS)
    rows = [row for key, result in results.items() for row in check_rows(*key, result, backend)]
    if query.as_json:
        print_json({"backend": backend, "checks": [{"backend": row.backend, **row.check._asdict()} for row in rows]})
    else:
        _print(rows, backend)
    if any(row.check.state == FAIL for row in rows):
        sys.exit(FAILED)


def check_rows(backend: str, what: str, result: Sequence[Check] | Exception, needed: str) -> list[CheckRow]:
    """The checks of one call. A problem of a backend that is not needed is not a failure."""
    checks = [_failed(what, result)] if isinstance(result, Exception) else result
    is_needed = backend in ("", needed)
    return [
        CheckRow(backend, check if is_needed or check.state == OK else Check(check.what, _NOT_NEEDED, check.detail))
        for check in checks
    ]


def _failed(what: str, error: Exception) -> Check:
    if isinstance(error, SpecError):
        return Check(what, FAIL, error.wrong, error.remedy)
    return Check(what, FAIL, str(error) or repr(error), "Check that it responds; `tfdeploy --debug` prints more.")


def _backend_of(query: ClusterQuery, stack: str, configuration: Mapping[str, str]) -> str:
    """The backend of the stack: as configured, or as used last, or the default."""
    try:
        project = find_project(query.cwd)[0]
    except NotFound:
        project = ""
    clusters = [entry.cluster for entry in registry.entries()]
    used = [item["backend"] for item in clusters if (item["project"], item["stack"]) == (project, stack)]
    return configuration.get("tfdeploy:backend") or (used[0] if used else DEFAULT_BACKEND)


def _print(rows: Sequence[CheckRow], backend: str) -> None:
    print_result(f"The backend is {backend}.")
    names = [f"{row.backend}: {row.check.what}" if row.backend else row.check.what for row in rows]
    width, state_width = max(map(len, names)), max(len(row.check.state) for row in rows)
    for name, row in zip(names, rows, strict=True):
        check = row.check
        text = f"{check.detail.rstrip('.')}. {check.remedy}" if check.remedy else check.detail
        begin = f"{check.state:<{state_width}}  {name:<{width}}  "
        columns = screen_width()
        lines = wrapped(text, columns - len(begin)) if columns else [text]
        print_result(begin + f"\n{' ' * len(begin)}".join(lines))


def check_python() -> Check:
    """The interpreter, which pip has checked, and our version."""
    package = versions().get("pulumi-tfdeploy", "from source")
    detail = f"{platform.python_version()} at {sys.executable}; tfdeploy {package}"
    return Check("python", OK, detail)


def check_pulumi(folder: Path) -> Check:
    """Check the command `pulumi` and its version."""
    try:
        version = pulumi(folder, "version", seconds=_VERSION_SECONDS).stdout.strip()
    except BackendError as error:
        sentence, _, remedy = str(error).partition(". ")
        return Check("pulumi", FAIL, sentence, remedy or _INSTALL)
    number = re.match(r"v?(\d+)\.(\d+)", version)
    if number is None or (int(number[1]), int(number[2])) < MINIMUM_PULUMI:
        remedy = f"{_INSTALL} ({'.'.join(map(str, MINIMUM_PULUMI))} or newer)"
        return Check("pulumi", FAIL, f"{version or 'the version'} is not supported", remedy)
    return Check("pulumi", OK, f"{version} at {shutil.which('pulumi')}")


def check_language_host() -> Check:
    """Check Pulumi's language host for Python."""
    name = "pulumi-language-python"
    path = shutil.which(name)
    if path is None:
        return Check(name, FAIL, "is not on PATH", "It is part of Pulumi: add the folder of `pulumi` to PATH.")
    return Check(name, OK, path)


def check_login() -> Check:
    """Check the backend that stores stacks."""
    url = registry.login()
    if not url:
        return Check("login", FAIL, "not logged in", "pulumi login, or to store stacks in files: pulumi login --local")
    folder = Path(url.removeprefix("file://")).expanduser()
    if url.startswith("file://") and not folder.is_dir():
        return Check("login", FAIL, f"{folder} is not a folder", f"mkdir -p {folder}, or log in again: pulumi login")
    return Check("login", OK, url)


def check_passphrase(file: Path | None, stack: str) -> Check:
    """Check what encrypts the stack's secrets."""
    name = "passphrase"
    provider = secrets_provider(file, stack)
    if provider and provider != "passphrase":
        return Check(name, OK, f"the stack's secrets are encrypted by {provider}")
    if registry.login().startswith("https://"):
        return Check(name, OK, "the stack's secrets are encrypted by Pulumi's service")
    source = os.environ.get("PULUMI_CONFIG_PASSPHRASE_FILE")
    if source and not Path(source).expanduser().is_file():
        return Check(
            name, FAIL, f"PULUMI_CONFIG_PASSPHRASE_FILE is {source}, which does not exist", "Correct the path."
        )
    if source or "PULUMI_CONFIG_PASSPHRASE" in os.environ:
        return Check(name, OK, f"from {'the file ' + source if source else 'PULUMI_CONFIG_PASSPHRASE'}")
    remedy = "Set PULUMI_CONFIG_PASSPHRASE_FILE or PULUMI_CONFIG_PASSPHRASE."
    return Check(name, WARN, "is not set: Pulumi asks for it", remedy)


def check_project(file: Path | None, stack: str) -> list[Check]:
    """Check the program and its stack."""
    if file is None:
        remedy = "Change to the folder of the program, or use --cwd FOLDER."
        return [Check("program", WARN, "there is no Pulumi.yaml here or in a parent folder", remedy)]
    program = Check("program", OK, str(file.parent))
    if not stack:
        return [program, Check("stack", WARN, "not selected", "pulumi stack select NAME, or pulumi stack init NAME")]
    return [program, Check("stack", OK, stack)]


def check_state_folder() -> list[Check]:
    """Check the space in the state folder, and who can read it."""
    folder = state_folder()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    state = FAIL if free < _NO_SPACE else WARN if free < _LOW_SPACE else OK
    remedy = "" if state == OK else f"Free some space; its subfolder `{RECORDS_FOLDER}` has old records."
    return [Check("disk space", state, f"{text_of_size(free)} free in {folder}", remedy), _check_permissions(folder)]


def _check_permissions(folder: Path) -> Check:
    name = "state folder"
    if not folder.exists():
        return Check(name, OK, f"{folder} will be created with the first cluster")
    status = folder.stat()
    if status.st_uid != os.getuid():
        detail = f"{folder} belongs to another user (uid {status.st_uid})"
        return Check(name, FAIL, detail, "Set XDG_STATE_HOME to a folder of your user.")
    if status.st_mode & 0o077:
        return Check(name, FAIL, f"other users can read {folder}", f"chmod 700 {folder}")
    return Check(name, OK, f"{folder}, readable by you only")
