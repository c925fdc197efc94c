"""The agent runs in any image, the watchdog on any machine: both are written for Python 3.8."""

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checks.test_imports import modules
from tests.old_python import MISSING, old_python

PACKAGE = Path(__file__).parents[3] / "tfdeploy"

BUILTIN_GENERICS = ("dict", "frozenset", "list", "set", "tuple", "type")


def too_new(text: str) -> Iterator[str]:
    """What of a source Python 3.8 cannot read or run, as far as its form shows."""
    try:
        tree = ast.parse(text, feature_version=(3, 8))
    except SyntaxError as error:
        yield f"{error.lineno}: {error.msg}"
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in BUILTIN_GENERICS:
            yield f"{node.lineno}: {node.value.id}[…]"
        if isinstance(node, (ast.arg, ast.AnnAssign)) and isinstance(node.annotation, ast.BinOp):
            yield f"{node.lineno}: a union by |"
        if isinstance(node, ast.Attribute) and node.attr in ("removeprefix", "removesuffix", "is_relative_to"):
            yield f"{node.lineno}: {node.attr}"


TRAVELLERS = ("agent", "backends/ec2/watchdog")


@pytest.mark.parametrize(
    "path",
    [path for name in TRAVELLERS for path in modules(PACKAGE / name).values()],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_what_travels_is_written_for_python_38(path: Path) -> None:
    assert list(too_new(path.read_text())) == []


def _run(*command: str) -> tuple[int, str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


LOAD = """
import importlib, sys, types
top, folder, *names = sys.argv[1:]
package = types.ModuleType(top)
package.__path__ = [folder]
sys.modules[top] = package
for name in names:
    importlib.import_module(top + "." + name)
"""


@pytest.mark.parametrize("top", TRAVELLERS)
def test_what_travels_loads_in_a_real_python_38(top: str) -> None:
    python = old_python()
    if not python:
        pytest.skip(MISSING)
    names = [name.partition(".")[2] for name in modules(PACKAGE / top) if "." in name]
    assert _run(python, "-B", "-I", "-c", LOAD, top, str(PACKAGE / top), *names) == (0, "")
