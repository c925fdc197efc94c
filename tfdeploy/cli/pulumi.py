"""The `pulumi` command, its errors, and the files of a project and its stacks."""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BackendError, CommandError, NotFound
from ..registry import login
from ..spec.backends import BACKENDS

if TYPE_CHECKING:  # commands that only read files run nothing
    import subprocess

NO_STACK = "no stack named"
"""In the error message of `pulumi` if a stack does not exist; tests/cli compare it with the installed version."""

_LOCKED = "currently locked"
"""In the error message of `pulumi` if another update has the stack's lock; likewise."""

_INSTALL = "Install it: https://www.pulumi.com/docs/install/. In a clone of tfdeploy: `source tools/activate`."
_NO_UPDATE_CHECK = {"PULUMI_SKIP_UPDATE_CHECK": "1"}
_FILE_URL = "file://"

_NAME_LINE = re.compile(r"^name:(.*)$", re.MULTILINE)
_PLAIN_NAME = re.compile(r"[ \t]+[A-Za-z][\w.-]*\s*", re.ASCII)


def pulumi(
    folder: Path, *arguments: str, seconds: float | None = None, backend_url: str = ""
) -> "subprocess.CompletedProcess[str]":
    """Run `pulumi` in a folder and return its result, whatever its exit code.

    Args:
        folder: The folder of the project.
        arguments: The arguments of the command.
        seconds: The time limit.
        backend_url: Where the stacks are stored; by default where the user is logged in.

    Raises:
        BackendError: there is no `pulumi`, no such folder, or the time limit is over.
    """
    import subprocess

    try:
        return subprocess.run(
            ["pulumi", *arguments, "--non-interactive"],
            cwd=folder,
            env={**os.environ, **_NO_UPDATE_CHECK, **({"PULUMI_BACKEND_URL": backend_url} if backend_url else {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
    except OSError as error:
        raise _cannot_run(folder, error) from None
    except subprocess.TimeoutExpired:
        raise BackendError(f"`pulumi {arguments[0]}` in {folder} did not respond within {seconds:g} s.") from None


def start_pulumi(
    folder: Path, arguments: Sequence[str], env: Mapping[str, str], **streams: Any
) -> "subprocess.Popen[Any]":
    """Start `pulumi` in a folder; `streams` are further arguments of `Popen`.

    Raises:
        BackendError: there is no `pulumi`, or no such folder.
    """
    import subprocess

    environment = {**os.environ, **_NO_UPDATE_CHECK, **env}
    command = ["pulumi", *arguments, "--non-interactive"]
    try:
        return subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, **streams)
    except OSError as error:
        raise _cannot_run(folder, error) from None


def stream_pulumi(
    folder: Path, arguments: Sequence[str], print_line: Callable[[str], None], **env: str
) -> tuple[int, list[str]]:
    """Run `pulumi` in a folder and print its lines as they come. Returns the exit code and all lines. What cannot be printed does not
    interrupt an update: the error is raised after it."""
    from subprocess import PIPE, STDOUT

    process = start_pulumi(folder, arguments, env, stdout=PIPE, stderr=STDOUT, text=True)
    lines: list[str] = []
    assert process.stdout is not None
    with process.stdout:
        try:
            for line in process.stdout:
                lines.append(line.rstrip("\n"))
                print_line(lines[-1])
        finally:
            for _ in process.stdout:
                pass
            code = process.wait()
    return code, lines


def preview(folder: Path, stack: str, refresh: bool) -> list[dict[str, Any]]:
    """The steps of an update, as `pulumi preview --json` prints them; with `refresh`, those of the refresh come first.

    Raises:
        NotFound: the stack does not exist.
        BackendError: Pulumi or the program failed.
    """
    result = pulumi(folder, "preview", "--json", "--stack", stack, *(["--refresh"] if refresh else []))
    try:
        document = json.loads(result.stdout) if result.stdout.strip() else {}
    except ValueError:
        document = {}
    errors = [item["message"] for item in document.get("diagnostics", []) if item["severity"] == "error"]
    if result.returncode or errors:
        raise error_of(stack, folder, result.returncode, [*errors, *result.stderr.splitlines()])
    steps: list[dict[str, Any]] = document.get("steps", [])
    return steps


def error_of(stack: str, folder: Path, exit_code: int, lines: Sequence[str]) -> Exception:
    """The error of a failed call, from what it printed."""
    text = "\n".join(lines)
    if _LOCKED in text:
        return locked_error(stack)
    if NO_STACK in text:
        backend = login() or "Pulumi's backend"
        return NotFound(f"the project in {folder} has no stack {stack} in {backend}. Check `pulumi whoami --verbose`.")
    return CommandError("pulumi", exit_code, [line for part in lines for line in part.splitlines() if line.strip()])


def locked_error(stack: str) -> BackendError:
    """The error if another update has the stack's lock."""
    return BackendError(
        f"the stack {stack} is locked: another update is running, or was interrupted. "
        "Wait until it ends. If none is running, use `pulumi cancel`."
    )


def is_locked(project: str, stack: str, backend_url: str) -> bool | None:
    """Whether an update has the lock of a stack; None if only Pulumi's service knows.

    A backend of files stores its locks in folders, which no command prints:
    https://github.com/pulumi/pulumi/blob/master/pkg/backend/diy/lock.go. A stack with a lock elsewhere is not locked for us;
    then the update itself refuses.
    """
    if not backend_url.startswith(_FILE_URL):
        return None
    root = Path(backend_url.removeprefix(_FILE_URL).partition("?")[0]).expanduser() / ".pulumi" / "locks"
    folders = (root / "organization" / project / stack, root / stack)
    return any(folder.is_dir() and any(folder.glob("*.json")) for folder in folders)


def _cannot_run(folder: Path, error: OSError) -> BackendError:
    if not folder.is_dir():
        return BackendError(f"the folder of the program, {folder}, does not exist. Use --cwd FOLDER.")
    if isinstance(error, FileNotFoundError):
        return BackendError(f"the command `pulumi` was not found. {_INSTALL}")
    return BackendError(f"`pulumi` cannot be run ({error}). {_INSTALL}")


def project_name(file: Path) -> str:
    """The name in a project file; empty if there is no such file or it has no name. Nearly all projects have it as a plain word in a
    line without indentation, which can only be that key: then no parser is loaded."""
    try:
        names = _NAME_LINE.findall(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    if len(names) == 1 and _PLAIN_NAME.fullmatch(names[0]):
        return str(names[0].strip())
    return str(_read_yaml(file).get("name") or "")


def secrets_provider(file: Path | None, stack: str) -> str:
    """What encrypts the secrets of a stack; empty if its file has none."""
    return str(_stack_file(file, stack).get("secretsprovider") or "")


def settings(file: Path | None, stack: str) -> dict[str, str]:
    """The plain configuration of a stack; a value inside a group has a dotted key, such as `tfdeploy:ec2.region`."""
    config = _stack_file(file, stack).get("config")
    values: dict[str, str] = {}
    for key, value in config.items() if isinstance(config, dict) else ():
        members = {f"{key}.{name}": item for name, item in value.items()} if isinstance(value, dict) else {key: value}
        values |= {name: str(item) for name, item in members.items() if not name.endswith(".secure")}
    return values


def _stack_file(file: Path | None, stack: str) -> Mapping[str, Any]:
    """Pulumi.STACK.yaml of a project, which is beside the project's file."""
    if file is None or not stack:
        return {}
    return _read_yaml(file.with_name(f"{file.stem}.{stack}{file.suffix}"))


def _read_yaml(file: Path) -> Mapping[str, Any]:
    """A YAML document; empty if there is none, or it is not valid: Pulumi itself reports that."""
    import yaml

    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return document if isinstance(document, dict) else {}


def places(settings: Mapping[str, str]) -> dict[str, str]:
    """Backend to the address or region of its clusters; empty for the default of the backend's own tools."""
    choices = {name: entry.configured_place for name, entry in BACKENDS.items()}
    return {name: choice(settings) if choice else "" for name, choice in choices.items()}
