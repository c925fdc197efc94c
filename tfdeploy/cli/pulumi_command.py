"""The Pulumi command: what is asked of it, and its ways to say no as ours."""

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..errors import BackendError, CommandError, NotFound
from ..registry import login

LOCKED = "currently locked"
NO_STACK = "no stack named"

_INSTALL = "Install it: https://www.pulumi.com/docs/install/, or `source tools/activate` in a clone of tfdeploy."
_QUIET = {"PULUMI_SKIP_UPDATE_CHECK": "1"}
FILE = "file://"


def pulumi(
    folder: Path, *arguments: str, seconds: float | None = None, where: str = ""
) -> "subprocess.CompletedProcess[str]":
    """One call in a folder, ended, however it went; of the stacks that are kept at `where`, if that is said.

    Raises:
        BackendError: there is no Pulumi, no such folder, or no answer in so many seconds.
    """
    try:
        return subprocess.run(
            ["pulumi", *arguments, "--non-interactive"],
            cwd=folder,
            env={**os.environ, **_QUIET, **({"PULUMI_BACKEND_URL": where} if where else {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
    except OSError as error:
        raise _missing(folder, error) from None
    except subprocess.TimeoutExpired:
        raise BackendError(f"`pulumi {arguments[0]}` in {folder} did not answer within {seconds:g} s.") from None


def follow(folder: Path, arguments: Sequence[str], tell: Callable[[str], None], **env: str) -> tuple[int, list[str]]:
    """One call in a folder, its lines told as they come; its exit code, and all its lines."""
    try:
        process = subprocess.Popen(
            ["pulumi", *arguments, "--non-interactive"],
            cwd=folder,
            env={**os.environ, **_QUIET, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except OSError as error:
        raise _missing(folder, error) from None
    lines: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        tell(lines[-1])
    return process.wait(), lines


def preview(folder: Path, stack: str, refresh: bool) -> list[dict[str, Any]]:
    """The steps that an update would take; those of a refresh first.

    Raises:
        NotFound: there is no such stack.
        BackendError: Pulumi, or the program, refuses.
    """
    done = pulumi(folder, "preview", "--json", "--stack", stack, *(["--refresh"] if refresh else []))
    try:
        answer = json.loads(done.stdout) if done.stdout.strip() else {}
    except ValueError:
        answer = {}
    wrong = [one["message"] for one in answer.get("diagnostics", []) if one["severity"] == "error"]
    if done.returncode or wrong:
        raise refusal(stack, folder, done.returncode, [*wrong, *done.stderr.splitlines()])
    steps: list[dict[str, Any]] = answer.get("steps", [])
    return steps


def refusal(stack: str, folder: Path, code: int, lines: Sequence[str]) -> Exception:
    """Why a call failed, as an error."""
    text = "\n".join(lines)
    if LOCKED in text:
        return locked_error(stack)
    if NO_STACK in text:
        return NotFound(
            f"there is no stack {stack} of {folder} in {login() or 'the login of Pulumi'}. `pulumi login` leads elsewhere."
        )
    return CommandError("pulumi", code, [line for part in lines for line in part.splitlines() if line.strip()])


def locked_error(stack: str) -> BackendError:
    """Somebody else has the stack."""
    return BackendError(
        f"an update of {stack} is under way, or was cut short: the stack is locked. Wait for its end; "
        "where none runs, `pulumi cancel` frees it."
    )


def locked(project: str, stack: str, where: str) -> bool | None:
    """Whether an update has the stack that is kept at `where`; None where only Pulumi's service would know."""
    if not where.startswith(FILE):
        return None
    root = Path(where.removeprefix(FILE).partition("?")[0]).expanduser() / ".pulumi" / "locks"
    folders = (root / "organization" / project / stack, root / stack)
    return any(folder.is_dir() and any(folder.glob("*.json")) for folder in folders)


def _missing(folder: Path, error: OSError) -> BackendError:
    if not folder.is_dir():
        return BackendError(f"{folder}, where the program was, is gone. Give where it is now: --cwd FOLDER.")
    if isinstance(error, FileNotFoundError):
        return BackendError(f"the command `pulumi` is not to be found. {_INSTALL}")
    return BackendError(f"`pulumi` cannot be run ({error}). {_INSTALL}")
