"""The table of features: reads docs/features.toml, and writes docs/features.md from it: `python -m tools.features`."""

import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
TABLE = "docs/features.toml"
TARGET = ROOT / "docs" / "features.md"

HEAD = """\
# Features

Made from `docs/features.toml` by `python -m tools.features`; a test compares.

What five systems that run distributed TensorFlow can do, and the tests that show that it can be done here. `make test` fails, and names
the row, when a test of a row has not run and passed. How each system's options and commands are called here:
[Coming from](coming-from/README.md).
"""


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
    """Their names in full, by those that the rows have."""
    rows: Sequence[Feature]


def features(root: Path) -> Features:
    """The table of a checkout."""
    found = tomllib.loads((root / TABLE).read_text())
    return Features(found["systems"], [Feature(**row) for row in found["feature"]])


def page(table: Features) -> str:
    """The whole page: a table for each system."""
    return "\n".join([HEAD, *(_section(system, table) for system in table.systems)])


def _section(system: str, table: Features) -> str:
    rows = [row for row in table.rows if row.system == system]
    lines = [f"| `{row.id}` | {_cell(row.text)} | {_shown(row.tests)} |" for row in rows]
    return "\n".join([f"## {table.systems[system]}", "", "| row | what | shown by |", "|---|---|---|", *lines, ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _shown(tests: Iterable[str]) -> str:
    parts = (test.partition("::") for test in tests)
    return "<br>".join(f"[`{name}`](../{file})" for file, _, name in parts)


if __name__ == "__main__":
    TARGET.write_text(page(features(ROOT)))
    sys.stdout.write(f"wrote {TARGET.relative_to(ROOT)}\n")
