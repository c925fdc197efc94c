"""The table of features: reads design/features.toml, and writes design/features.md from it: `python -m tools.features`."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
TABLE = "design/features.toml"
TARGET = ROOT / "design" / "features.md"

HEAD = """\
# Features

Made from `design/features.toml` by `python -m tools.features`; a test compares.

What five systems can do, and the tests that show it for tfdeploy. `make test` runs all tests of a row, or, where it is
marked with \\*, `make test-all`. Both fail and name the row if one of its tests did not pass. ● marks the backends on
which these tests run.
[Other systems](../docs/README.md#other-systems) maps the options and commands of each.
"""

COLUMNS = ("local", "docker", "ec2", "kubernetes")
"""The backends."""

_FOLDERS = {"docker": "docker", "ec2": "ec2", "box": "ec2", "kubernetes": "kubernetes"}
"""Folder of tests to the backend on which all in it run."""

_FIXTURES = {"engine": "docker", "swarm": "docker", "box": "ec2"}
"""What tests elsewhere use, to the backend on which they run then."""

_LOCAL = ("cli", "components", "integration", "programs")
"""Folders with tests that run on the backend local, unless they use such a fixture."""

_EACH = "tests/contract/"
"""The folder with the tests of all backends that its fixture names."""

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
    head = [f"| feature | {' | '.join(COLUMNS)} |", f"|---|{':-:|' * len(COLUMNS)}"]
    lines = [f"| `{row.id}`{_mark(row)}: {row.text} {_shown(row.tests)} | {' | '.join(_dots(row))} |" for row in rows]
    return "\n".join([f"## {table.systems[system]}", "", *head, *lines, ""])


def _dots(row: Feature) -> list[str]:
    """The columns of a row."""
    backends = {backend for test in row.tests for backend in backends_of(test)}
    return ["●" if backend in backends else "" for backend in COLUMNS]


def backends_of(test: str) -> set[str]:
    """The backends on which a test runs: by its folder, and by the fixtures that it uses."""
    file, _, name = test.partition("::")
    folder = file.split("/")[1]
    if file.startswith(_EACH):
        return {
            *re.findall(
                r"[a-z0-9]+", (ROOT / _EACH / "conftest.py").read_text().partition("params=[")[2].partition("]")[0]
            )
        }
    if folder in _FOLDERS:
        return {_FOLDERS[folder]}
    used = _used(ROOT / file, name)
    return {_FIXTURES[item] for item in used if item in _FIXTURES} or ({"local"} if folder in _LOCAL else set())


def _used(file: Path, name: str) -> set[str]:
    """The fixtures of a test, and theirs, as far as its file and its folder have them."""
    parameters = {**_parameters(file.with_name("conftest.py")), **_parameters(file)}
    used, rest = set[str](), {name}
    while rest:
        rest = {item for item in set().union(*(parameters.get(name, ()) for name in rest)) if item not in used}
        used |= rest
    return used


@cache
def _parameters(file: Path) -> dict[str, frozenset[str]]:
    """Function to the names of its parameters."""
    body = ast.parse(file.read_text()).body if file.is_file() else []
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    return {node.name: frozenset(item.arg for item in node.args.args) for node in functions}


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
