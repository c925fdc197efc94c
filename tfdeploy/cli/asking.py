"""What every verb has: the options that say which cluster, and the ways to print."""

import inspect
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from ..errors import SpecError
from ..quantities import DURATION_FORM, seconds
from . import completing
from .terminal import safe

if TYPE_CHECKING:
    from rich.console import Console

FAILED, USAGE, NOT_FOUND, UNREACHABLE, NOT_OVER, INTERRUPTED = 1, 2, 3, 4, 5, 130
"""Exit codes besides 0: the job, or what was asked about, failed; wrong usage; nothing of that name; out of reach; not over
within `--timeout`; Ctrl-C."""

Cwd = Annotated[
    Path, typer.Option("--cwd", "-C", help="The folder of the Pulumi program.", file_okay=False, show_default=False)
]
Stack = Annotated[
    str,
    typer.Option(
        "--stack",
        "-s",
        help="The stack; by default the selected one.",
        show_default=False,
        autocompletion=completing.stacks,
    ),
]
Name = Annotated[
    str,
    typer.Option(
        "--cluster",
        "-c",
        help="The cluster, where the stack has several.",
        show_default=False,
        autocompletion=completing.clusters,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.", show_default=False)]
Hostname = Annotated[
    str,
    typer.Argument(help="The task, such as worker-0.", show_default=False, autocompletion=completing.hostnames),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.", show_default=False)]


@dataclass(frozen=True)
class Asked:
    """Which clusters a call is about, and how it answers."""

    cwd: Path = Path()
    stack: str = ""
    cluster: str = ""
    as_json: bool = False


_COMMON = {"cwd": (Cwd, Path()), "stack": (Stack, ""), "cluster": (Name, ""), "as_json": (Json, False)}


def verb(run: Callable[..., None]) -> Callable[..., None]:
    """A function whose first parameter is `asked: Asked`, with the options that every verb has in the place of it."""
    own = list(inspect.signature(run).parameters.values())[1:]
    common = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in _COMMON.items()
    ]

    def called(*args: Any, **given: Any) -> None:
        asked = Asked(**{name: given.pop(name) for name in _COMMON})
        run(asked, *args, **given)

    called.__name__, called.__doc__, called.__module__ = run.__name__, run.__doc__, run.__module__
    called.__signature__ = inspect.Signature([*own, *common])  # type: ignore[attr-defined]
    called.__annotations__ = {item.name: item.annotation for item in [*own, *common]}
    return called


def say(text: str = "") -> None:
    """Print what was asked for."""
    print(_fit_for(sys.stdout, text), flush=True)


def tell(text: str) -> None:
    """Print what goes on beside the answer."""
    print(_fit_for(sys.stderr, text), file=sys.stderr, flush=True)


def _fit_for(out: TextIO, text: str) -> str:
    """The text, without what would move or set a terminal where it goes to one: programs and engines have a say in it."""
    return "\n".join(safe(line, False) for line in text.split("\n")) if out.isatty() else text


def limit(text: str) -> float:
    """Seconds of an option that says how long at most; no end where it is empty."""
    if not text:
        return float("inf")
    try:
        return seconds(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no duration; it takes {DURATION_FORM}.") from None


def agree(yes: bool, question: str, refusal: SpecError) -> None:
    """Go on only when the user says so: by `--yes`, or at the terminal.

    Raises:
        SpecError: `refusal`; there is no terminal.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise refusal
    typer.confirm(question, abort=True, err=True)


def answer(document: Any) -> None:
    """Print the answer as JSON."""
    say(json.dumps(document, indent=2, default=str))


@cache
def console() -> "Console":
    """The terminal, with colours where it has them and NO_COLOR is not set."""
    from rich.console import Console

    return Console(highlight=False)
