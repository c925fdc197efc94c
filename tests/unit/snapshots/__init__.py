"""What users read, kept as text: one file for each surface, reviewed as a diff.

`errors`, `preview`, `events`, `diagnosis` and `tables` each have a module here, which lists the cases and renders the
surface, and a `.txt` file with the result. `commands` is what `tfdeploy` alone prints; docs/command.md has the options.
`make snapshots` writes the files again after a sentence has changed.

To add a sentence, add its case to the module of its surface and renew the file. Other tests assert kinds, arguments and
hostnames (`SpecError.where`, `Event.kind`), so that a better sentence changes one file only.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from tfdeploy.errors import TfdeployError

_FOLDER = Path(__file__).parent


def check_snapshot(surface: str, text: str) -> None:
    """Compare a surface with its file; RENEW_GOLDENS=1 (`make snapshots`) writes the file instead."""
    path = _FOLDER / f"{surface}.txt"
    text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    if os.environ.get("RENEW_GOLDENS"):
        path.write_text(text)
    assert text == path.read_text(), f"{surface}.txt is out of date: run `make snapshots` and review the diff"


def section(title: str, lines: Iterable[str]) -> str:
    return "\n".join([f"== {title}", *lines, ""])


def error_of(call: Callable[[], object]) -> str:
    try:
        call()
    except TfdeployError as error:
        return str(error)
    except ValueError as error:
        return f"(ValueError) {error}"
    raise AssertionError("nothing was refused")


def case(title: str, text: str) -> str:
    """One case: its title, and its text indented below it."""
    short = title if len(title) <= 110 else f"{title[:110]}…"
    return "\n".join([short, *(f"    {line}" for line in text.splitlines())])
