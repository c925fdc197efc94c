"""The table of features names tests that there are, and its page is made from it."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tools.features import TARGET, Features, features, page

ROOT = Path(__file__).parents[2]
SHELVES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["testpaths"]


def complaints(root: Path, table: Features) -> Iterator[str]:
    """What of a table cannot be so, one line each."""
    for row in table.rows:
        if not row.tests:
            yield f"{row.id}: has no test"
        yield from (f"{row.id}: {test}: there is no such test" for test in row.tests if not _is_there(root, test))


def _is_there(root: Path, test: str) -> bool:
    """Whether a file that pytest collects has such a function."""
    file, _, name = test.partition("::")
    path = root / file
    collected = path.match("test_*.py") and any(file.startswith(f"{shelf}/") for shelf in SHELVES)
    if not (collected and path.is_file() and name.startswith("test_")):
        return False
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in ast.parse(path.read_text()).body)


def test_each_row_names_tests_that_there_are() -> None:
    assert list(complaints(ROOT, features(ROOT))) == []


def test_each_system_has_rows() -> None:
    table = features(ROOT)
    assert {row.system for row in table.rows} == set(table.systems)


def test_the_page_is_made_from_the_table() -> None:
    assert TARGET.read_text() == page(features(ROOT)), "run: python -m tools.features"
