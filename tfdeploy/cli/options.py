"""`tfdeploy options`: every argument, from the code itself."""

import re
import textwrap
from typing import Annotated

import typer

from ..documented import documented
from ..errors import NotFound
from .asking import Asked, answer, say

_CLASSES = {"": "TensorFlowClusterArgs", "jobs.JOB.": "JobArgs", "restart.": "RestartArgs"}
_DEFAULT = re.compile(r'("[^"]*"|[\w.]+) (?:\(the default\)|by default)|\((?:the default|by default) ([^)]*)\)')
_WIDTH = 100


def options(
    asked: Asked, word: Annotated[str, typer.Argument(help="Only those with this word in their name.")] = ""
) -> None:
    """Show every argument of `TensorFlowCluster`: its type, its default, what it means.

    Each may be given by `pulumi config set tfdeploy:NAME VALUE` too.
    """
    rows = [row for row in _rows() if word in row["name"]]
    if not rows:
        raise NotFound(f"no argument has {word!r} in its name. `tfdeploy options` shows all.")
    if asked.as_json:
        answer(rows)
        return
    for row in rows:
        default = f", default {row['default']}" if row["default"] else ""
        say(f"{row['name']} ({row['type']}{default})")
        say(textwrap.fill(row["meaning"], _WIDTH, initial_indent="    ", subsequent_indent="    "))


def _rows() -> list[dict[str, str]]:
    return [
        {"name": f"{prefix}{name}", "type": kind, "default": _default(text), "meaning": text}
        for prefix, owner in _CLASSES.items()
        for name, kind, text in documented("arguments", owner)
        if name
    ]


def _default(text: str) -> str:
    found = _DEFAULT.search(text)
    return (found[1] or found[2]) if found else ""
