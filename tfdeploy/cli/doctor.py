"""`tfdeploy doctor`: what is installed, reachable, configured."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import typer

from .. import registry
from ..backends.base import BACKENDS, FAIL, OK, Check, health
from ..errors import NotFound, SpecError
from . import installed
from .asking import FAILED, Asked, answer, say
from .at_once import at_once
from .finding import project_of, stack_here
from .settings import places, settings

_SECONDS = 20.0
_UNNEEDED = "-"
_DEFAULT = "local"


@dataclass(frozen=True)
class _Line:
    backend: str
    """The backend that needs it; empty where all do."""
    check: Check


def doctor(asked: Asked) -> None:
    """Check what is installed, reachable and configured; what fails says what would do.

    Exit code 1 when something fails that the stack's backend needs. What only other backends need is shown as `-` where it is not
    there.
    """
    file, stack = stack_here(asked)
    known = settings(file, stack)
    needed = _backend(asked, stack, known.get("tfdeploy:backend", ""))
    folder = file.parent if file else asked.cwd
    calls: dict[tuple[str, str], Callable[[], Sequence[Check]]] = {
        ("", "python"): lambda: [installed.python()],
        ("", "pulumi"): lambda: [installed.pulumi_command(folder)],
        ("", "pulumi-language-python"): lambda: [installed.language()],
        ("", "login"): lambda: [installed.login()],
        ("", "passphrase"): lambda: [installed.passphrase(file, stack)],
        ("", "program"): lambda: installed.project(file, stack),
        ("", "state folder"): installed.state,
    }
    calls |= {(one, one): partial(health, one, places(known)[one]) for one in BACKENDS}
    answers = at_once(calls, _SECONDS)
    lines = [line for key, told in answers.items() for line in lines_of(*key, told, needed)]
    if asked.as_json:
        answer({"backend": needed, "checks": [{"backend": line.backend, **asdict(line.check)} for line in lines]})
    else:
        _print(lines, needed)
    if any(line.check.state == FAIL for line in lines):
        raise typer.Exit(FAILED)


def lines_of(backend: str, what: str, told: Sequence[Check] | Exception, needed: str) -> list[_Line]:
    """What one call has come to; what fails that is not needed is no failure. Pure."""
    checks = [_broken(what, told)] if isinstance(told, Exception) else told
    unneeded = backend not in ("", needed)
    return [
        _Line(backend, Check(one.what, _UNNEEDED, one.detail) if unneeded and one.state != OK else one)
        for one in checks
    ]


def _broken(what: str, error: Exception) -> Check:
    if isinstance(error, SpecError):
        return Check(what, FAIL, error.wrong, error.remedy)
    return Check(
        what, FAIL, str(error) or repr(error), "Look whether what it asks answers; `tfdeploy --debug` shows more."
    )


def _backend(asked: Asked, stack: str, given: str) -> str:
    """The backend that the stack is for: as it is set, as it was last used, else the default."""
    try:
        project = project_of(asked.cwd)[0]
    except NotFound:
        project = ""
    used = [
        one.cluster for one in registry.entries() if (one.cluster["project"], one.cluster["stack"]) == (project, stack)
    ]
    return given or (used[0]["backend"] if used else _DEFAULT)


def _print(lines: Sequence[_Line], needed: str) -> None:
    widths: Any = [max(len(text) for text in column) for column in zip(*map(_cells, lines), strict=True)]
    say(f"The backend here is {needed}.")
    for line in lines:
        state, what = (text.ljust(width) for text, width in zip(_cells(line), widths, strict=True))
        remedy = f". {line.check.remedy}" if line.check.remedy else ""
        say(f"{state}  {what}  {line.check.detail.rstrip('.') if remedy else line.check.detail}{remedy}")


def _cells(line: _Line) -> tuple[str, str]:
    prefix = f"{line.backend}: " if line.backend else ""
    return line.check.state, f"{prefix}{line.check.what}"
