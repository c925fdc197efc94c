"""Only the backends and their table know a backend by its name: what another module needs to know is a field of the table."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tfdeploy.spec.backends import BACKENDS

PACKAGE = Path(__file__).parents[2] / "tfdeploy"
MAY_COMPARE = ("backends/", "spec/backends.py")


def comparisons(package: Path) -> Iterator[str]:
    """Every comparison with the name of a backend, one line each."""
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if name.startswith(MAY_COMPARE):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.Compare, ast.MatchValue)) and _compared(node) & {*BACKENDS}:
                yield f"{name}:{node.lineno}: {ast.unparse(node)}"


def _compared(node: ast.Compare | ast.MatchValue) -> set[object]:
    """The literals that are compared, also those in a tuple, a list or a set."""
    sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else [node.value]
    parts = [
        part for side in sides for part in (side.elts if isinstance(side, (ast.Tuple, ast.List, ast.Set)) else [side])
    ]
    return {part.value for part in parts if isinstance(part, ast.Constant)}


def test_no_other_module_compares_the_name_of_a_backend() -> None:
    assert list(comparisons(PACKAGE)) == []


@pytest.mark.parametrize(
    "text",
    [
        "backend == 'local'",
        "x = 1 if 'ec2' != cluster['backend'] else 2",
        "backend in ('docker', 'other')",
        "match b:\n case 'ec2':\n  pass",
    ],
)
def test_a_planted_comparison_is_found(tmp_path: Path, text: str) -> None:
    (tmp_path / "report").mkdir()
    (tmp_path / "report/tables.py").write_text(text)
    (tmp_path / "backends").mkdir()
    (tmp_path / "backends/moving.py").write_text(text)
    assert [found.rpartition(":")[0].rpartition(":")[0] for found in comparisons(tmp_path)] == ["report/tables.py"]
