"""No file over 500 lines, no function over 50, no module called utils, no name of a backend compared outside of the backends."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tfdeploy.spec.backends import BACKENDS
from tools.density import first_line, functions, length

ROOT = Path(__file__).parents[2]
FOLDERS = ("tfdeploy", "programs", "tests", "bench", "tools")

LONGEST_FILE = 500
LONGEST_FUNCTION = 50
NAMELESS = ("utils", "util", "helpers", "misc")


def complaints(root: Path) -> Iterator[str]:
    """What in the folders of a checkout is too long, or named for nothing, one line each."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            text = path.read_text()
            if len(text.splitlines()) > LONGEST_FILE:
                yield f"{name}: {len(text.splitlines())} lines"
            if path.stem in NAMELESS:
                yield f"{name}: say what it is for"
            for function in functions(path):
                if length(function) > LONGEST_FUNCTION:
                    yield f"{name}:{first_line(function)}: {function.name} has {length(function)} lines"


def test_files_and_functions_stay_short() -> None:
    assert list(complaints(ROOT)) == []


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("tfdeploy/plan/plan.py", "\n" * 501, "tfdeploy/plan/plan.py: 501 lines"),
        ("bench/utils.py", "", "bench/utils.py: say what it is for"),
        (
            "programs/mnist/__main__.py",
            "class A:\n    @property\n    def __init__(self):\n" + "        x = 1\n" * 50,
            "programs/mnist/__main__.py:2: __init__ has 52 lines",
        ),
        ("tests/a.py", "async def f():\n" + "    x = 1\n" * 50, "tests/a.py:1: f has 51 lines"),
    ],
)
def test_what_is_too_long_is_found(tmp_path: Path, file: str, text: str, complaint: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(text)
    assert list(complaints(tmp_path)) == [complaint]


def compared_backends(package: Path) -> Iterator[str]:
    """Where a module outside of `backends/` compares the name of a backend: what it needs to know is a field of the table."""
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        for node in [] if name.startswith("backends/") else ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.Compare, ast.MatchValue)) and _literals(node) & {*BACKENDS}:
                yield f"{name}:{node.lineno}: {ast.unparse(node)}"


def _literals(node: ast.Compare | ast.MatchValue) -> set[object]:
    """What is compared, also in a tuple, a list or a set."""
    sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else [node.value]
    parts = [getattr(side, "elts", [side]) for side in sides]
    return {item.value for part in parts for item in part if isinstance(item, ast.Constant)}


def test_the_name_of_a_backend_is_not_compared() -> None:
    assert list(compared_backends(ROOT / "tfdeploy")) == []


@pytest.mark.parametrize(
    "text", ["b == 'local'", "'ec2' != c['backend']", "b in ('docker', x)", "match b:\n case 'ec2': x"]
)
def test_a_name_that_is_compared_is_found(tmp_path: Path, text: str) -> None:
    for name in ("report", "backends"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tables.py").write_text(text)
    assert [found.partition(":")[0] for found in compared_backends(tmp_path)] == ["report/tables.py"]
