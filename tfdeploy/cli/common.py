"""What all commands share: the options that select a cluster, and how results and messages are printed."""

import inspect
import json
import os
import sys
from collections.abc import Callable, Collection
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TextIO

from ..agent.record.terminal_text import safe
from ..errors import SpecError, UsageError
from ..units import DURATION_FORM, seconds, wrapped
from . import completion
from .exit_codes import FAILED
from .option import Argument, Option

Cwd = Annotated[Path, Option("--cwd", "-C", help="Folder of the Pulumi program.", file_okay=False, show_default=False)]
Stack = Annotated[
    str,
    Option(
        "--stack",
        "-s",
        help="Stack. Default: the selected stack.",
        show_default=False,
        autocompletion=completion.stacks,
    ),
]
Name = Annotated[
    str,
    Option(
        "--cluster",
        "-c",
        help="Cluster, or its id. Needed if the stack has more than one.",
        show_default=False,
        autocompletion=completion.clusters,
    ),
]
Json = Annotated[bool, Option("--json", help="Print JSON.", show_default=False)]
Hostname = Annotated[
    str,
    Argument(help="Task, such as worker-0.", show_default=False, autocompletion=completion.hostnames),
]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.", show_default=False)]


class Format(StrEnum):
    """How a command without a table prints its result."""

    json = "json"


class TableFormat(StrEnum):
    """How a command prints its table."""

    wide = "wide"
    json = "json"


_Format = Annotated[Format | None, Option("--output", "-o", help="`json` is the same as --json.", show_default=False)]
_TableFormat = Annotated[
    TableFormat | None,
    Option(
        "--output",
        "-o",
        help="`wide` prints all columns in full, `json` is the same as --json.",
        show_default=False,
    ),
]


def _common_options(names: Collection[str], wide: bool) -> list[inspect.Parameter]:
    options = (
        ("cwd", Cwd, Path()),
        ("stack", Stack, ""),
        ("cluster", Name, ""),
        ("as_json", Json, False),
        ("output", _TableFormat if wide else _Format, None),
    )
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, annotation, default in options
        if name in names
    ]


def with_common_options(command: Callable[..., None], names: Collection[str], wide: bool) -> Callable[..., None]:
    """A command that takes a `ClusterQuery` first, as one that takes the options of these names last.

    The options of a command are read from its signature, and there is no other way to share them between commands. With `wide`, the
    command has a table that can be printed with all columns.
    """
    from .select import ClusterQuery  # the list of all commands needs no cluster

    common_options = _common_options(names, wide)

    @wraps(command)
    def command_with_options(*args: Any, **options: Any) -> None:
        common = {option.name: options.pop(option.name, option.default) for option in common_options}
        form = common.pop("output", None)
        as_json = common.pop("as_json", False) or form in (Format.json, TableFormat.json)
        command(ClusterQuery(**common, as_json=as_json, wide=form is TableFormat.wide), *args, **options)

    _, *parameters = inspect.signature(command).parameters.values()
    command_with_options.__signature__ = inspect.Signature([*parameters, *common_options])  # type: ignore[attr-defined]
    return command_with_options


def print_result(text: str = "") -> None:
    """Print what the user asked for, on stdout."""
    print(_safe_for(sys.stdout, text), flush=True)


def print_styled(text: str) -> None:
    """Print a result that has our own colours, on stdout."""
    print("\n".join(map(safe, text.split("\n"))) if sys.stdout.isatty() else text, flush=True)


def has_colours() -> bool:
    """Whether results have colours: in a terminal, unless NO_COLOR is set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_message(text: str) -> None:
    """Print progress, a question or an error, on stderr."""
    print(_fitted(sys.stderr, _safe_for(sys.stderr, text)), file=sys.stderr, flush=True)


def print_prose(text: str) -> None:
    """Print sentences that the user asked for, on stdout. In a terminal no word of them is broken."""
    print(_fitted(sys.stdout, _safe_for(sys.stdout, text)), flush=True)


def _fitted(out: TextIO, text: str) -> str:
    return "\n".join(wrapped(text, columns(out)))


def columns(out: TextIO) -> int:
    """The width of the terminal that `out` is; 0 if it is none."""
    if not out.isatty():
        return 0
    import shutil  # takes long to load

    return shutil.get_terminal_size().columns


def print_json(document: Any) -> None:
    """Print a result as JSON."""
    print_result(json.dumps(document, indent=2, default=str))


def _safe_for(out: TextIO, text: str) -> str:
    """The text without escape sequences if it is for a terminal: it may contain what programs and engines printed."""
    return "\n".join(safe(line, False) for line in text.split("\n")) if out.isatty() else text


def parse_timeout(text: str) -> float:
    """The duration in seconds; infinity if the option is not used."""
    if not text:
        return float("inf")
    try:
        return seconds(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a valid duration. Use {DURATION_FORM}.") from None


def ask_to_confirm(yes: bool, question: str, no_terminal: SpecError) -> None:
    """Return if the user confirms, by `--yes` or at the terminal; otherwise exit.

    Raises:
        SpecError: `no_terminal`, if there is no terminal to ask on.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise no_terminal
    import typer  # most commands ask nothing

    try:
        typer.confirm(question, abort=True, err=True)
    except typer.Abort:
        print_message("Aborted.")
        sys.exit(FAILED)
