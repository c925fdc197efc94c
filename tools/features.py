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

What five systems can do, what none of them can, and the tests that show it for tfdeploy. ● marks the backends on
which these tests run. `make features` runs all of them, and prints on which backend each ran and how it ended.
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

EACH = "tests/contract/"
"""The folder with the tests of all backends that its fixture names."""


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
    rows = [
        Feature(f"{system}.{name}", system, **row) for system in table["systems"] for name, row in table[system].items()
    ]
    return Features(table["systems"], rows)


def page(table: Features) -> str:
    """The whole page: a list for each system."""
    return "\n".join([HEAD, *(_section(system, table) for system in table.systems)])


def _section(system: str, table: Features) -> str:
    rows = [row for row in table.rows if row.system == system]
    head = [f"| feature | {' | '.join(COLUMNS)} |", f"|---|{':-:|' * len(COLUMNS)}"]
    lines = [f"| `{row.id}`: {row.text} {_shown(row.tests)} | {' | '.join(_dots(row))} |" for row in rows]
    return "\n".join([f"## {table.systems[system]}", "", *head, *lines, ""])


def _dots(row: Feature) -> list[str]:
    """The columns of a row."""
    backends = {backend for test in row.tests for backend in backends_of(test)}
    return ["●" if backend in backends else "" for backend in COLUMNS]


def backends_of(test: str) -> set[str]:
    """The backends on which a test runs: by its folder, and by the fixtures that it uses."""
    file, _, name = test.partition("::")
    folder = file.split("/")[1]
    if file.startswith(EACH):
        parameters = (ROOT / EACH / "conftest.py").read_text().partition("params=[")[2].partition("]")[0]
        return {*COLUMNS} & {*re.findall(r"[a-z0-9]+", parameters)}
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


def _shown(tests: Iterable[str]) -> str:
    parts = (test.partition("::") for test in tests)
    return ", ".join(f"[`{name}`](../{file})" for file, _, name in parts)


if __name__ == "__main__":
    TARGET.write_text(page(features(ROOT)))
    sys.stdout.write(f"wrote {TARGET.relative_to(ROOT)}\n")
