"""No file over 300 lines, no function over 50, no module called utils."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.sources import functions

ROOT = Path(__file__).parents[2]
FOLDERS = ("tfdeploy", "programs", "tests", "bench", "tools")

LONGEST_FILE = 300
LONGEST_FUNCTION = 50
NAMELESS = ("utils", "util", "helpers", "common", "misc")


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
            for function, line, length in functions(ast.parse(text)):
                if length > LONGEST_FUNCTION:
                    yield f"{name}:{line}: {function} has {length} lines"


def test_files_and_functions_stay_short() -> None:
    assert list(complaints(ROOT)) == []


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("tfdeploy/plan.py", "\n" * 301, "tfdeploy/plan.py: 301 lines"),
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
