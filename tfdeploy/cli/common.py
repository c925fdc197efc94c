"""How results and messages are printed, and how the user is asked."""

import json
import os
import sys
from typing import Any, TextIO

from ..agent.record.terminal_text import safe
from ..errors import SpecError, UsageError
from ..units import DURATION_FORM, seconds, wrapped
from .command_table import FAILED


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


def print_answer(as_json: bool, document: Any, sentences: str) -> None:
    """Print what a command has done or found: as JSON, or in sentences."""
    if as_json:
        print_json(document)
    else:
        print_prose(sentences)


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


def ask_to_confirm(yes: bool, question: str) -> None:
    """Return if the user confirms, by `--yes` or at the terminal; otherwise exit.

    Raises:
        SpecError: there is no terminal to ask on.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise SpecError("--yes", "cannot ask without a terminal", "Use --yes to continue.")
    print(f"{question} [y/N]: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        print_message("Aborted.")
        sys.exit(FAILED)
