"""The table of features: reads docs/features.toml, and writes docs/features.md from it: `python -m tools.features`."""

import ast
import sys
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
TABLE = "docs/features.toml"
TARGET = ROOT / "docs" / "features.md"

HEAD = """\
# Features

Made from `docs/features.toml` by `python -m tools.features`; a test compares.

What five systems can do, and the tests that show it for tfdeploy. `make test` runs all tests of a row, or, where it is
marked with \\*, `make test-all`. Both fail and name the row if one of its tests did not pass.
[Other systems](README.md#other-systems) maps the options and commands of each.
"""

MARKER = "full"
"""`make test` leaves out the tests with this marker."""


class Feature(NamedTuple):
    """One thing that a system can do."""

    id: str
    system: str
    text: str
    tests: Sequence[str]
    """What shows it: `FILE::FUNCTION` each, without parameters."""


class Features(NamedTuple):
    """The whole table."""

    systems: dict[str, str]
    """Their names in full, by the names that the rows use."""
    rows: Sequence[Feature]


def features(root: Path) -> Features:
    """The table of a checkout."""
    table = tomllib.loads((root / TABLE).read_text())
    return Features(table["systems"], [Feature(**row) for row in table["feature"]])


def page(table: Features) -> str:
    """The whole page: a list for each system."""
    return "\n".join([HEAD, *(_section(system, table) for system in table.systems)])


def _section(system: str, table: Features) -> str:
    rows = [row for row in table.rows if row.system == system]
    lines = [f"- `{row.id}`{_mark(row)}: {row.text} {_shown(row.tests)}" for row in rows]
    return "\n".join([f"## {table.systems[system]}", "", *lines, ""])


def _mark(row: Feature) -> str:
    return r" \*" if command(row) == "make test-all" else ""


def command(row: Feature) -> str:
    """The command that runs all tests of a row, of those that have `make test` in them."""
    tests = (test.partition("::") for test in row.tests)
    return "make test-all" if any(name in _left_out(ROOT / file) for file, _, name in tests) else "make test"


@cache
def _left_out(file: Path) -> frozenset[str]:
    """The test functions of a file that carry the marker, each of them or all by `pytestmark`."""
    if not file.is_file():
        return frozenset()
    body = ast.parse(file.read_text()).body
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    everything = any(
        isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark" and _marks(node.value)
        for node in body
    )
    return frozenset(node.name for node in functions if everything or any(map(_marks, node.decorator_list)))


def _marks(expression: ast.expr) -> bool:
    """Whether an expression has the marker in it, alone or in a list; one on a single parameter does not count."""
    marks = expression.elts if isinstance(expression, ast.List | ast.Tuple) else [expression]
    return any(ast.unparse(mark) == f"pytest.mark.{MARKER}" for mark in marks)


def _shown(tests: Iterable[str]) -> str:
    parts = (test.partition("::") for test in tests)
    return ", ".join(f"[`{name}`](../{file})" for file, _, name in parts)


if __name__ == "__main__":
    TARGET.write_text(page(features(ROOT)))
    sys.stdout.write(f"wrote {TARGET.relative_to(ROOT)}\n")
