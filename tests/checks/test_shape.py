"""No file over 500 lines, no function over 50, no module called utils, no name of a backend compared outside of the backends."""

import ast
from collections.abc import Iterator
from pathlib import Path

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
