"""`tfdeploy options`: the arguments of `TensorFlowCluster`."""

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from ...errors import NotFound
from ...units import wrapped
from ..cluster_selection import ClusterQuery
from ..output import print_json, print_result, screen_width
from ..parser import Parser

if TYPE_CHECKING:
    from ...spec.arg_docs import Row

_WIDTH = 100
"""The width where there is no terminal."""


def add_arguments(parser: Parser) -> None:
    """Its options and arguments."""
    text = "Show only arguments with this word in their name."
    parser.add_argument("word", nargs="?", default="", metavar="WORD", help=text)


def options(query: ClusterQuery, word: str = "") -> None:
    """Show the arguments of a `TensorFlowCluster`.

    They are listed with their types, defaults and meaning.
    Each can also be set by `pulumi config set tfdeploy:NAME VALUE`, and with `--path` inside a group.
    """
    matches = [row for row in _rows() if word in row.name]
    if not matches:
        raise NotFound(f"no argument has {word!r} in its name. `tfdeploy options` shows all of them.")
    if query.as_json:
        print_json(
            [{("meaning" if key == "text" else key): value for key, value in asdict(row).items()} for row in matches]
        )
        return
    width = screen_width() or _WIDTH
    for row in matches:
        default = f", default {row.default}" if row.default else ""
        head = wrapped(f"{row.name} ({row.type}{default})", width)
        print_result("\n".join([*head, *wrapped(f"    {row.text}", width)]))


def _rows() -> "list[Row]":
    from ...spec.arg_docs import CLASSES, described

    return [replace(row, name=f"{prefix}{row.name}") for prefix in CLASSES for row in described(prefix)]
