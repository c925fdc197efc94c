"""Two zip applications: the agent, which the backends copy to the tasks, and the watchdog of a machine on EC2."""

import ast
import hashlib
import io
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType

from .. import agent
from .ec2 import watchdog as package

_START = "import sys\n\nfrom {name}.main import main\n\nsys.exit(main())\n"


@cache
def application() -> bytes:
    """The agent; the same bytes for the same sources."""
    return _zipped(agent, str, zipfile.ZIP_DEFLATED)


@cache
def version() -> str:
    """The agent's version: a hash of its content."""
    return hashlib.sha256(application()).hexdigest()[:12]


@cache
def watchdog() -> bytes:
    """The watchdog, without docstrings, comments and types: it is part of user data, which has a size limit.

    Its members are not compressed, because user data is compressed as a whole, which is smaller.
    """
    return _zipped(package, _terse, zipfile.ZIP_STORED)


def _zipped(source: ModuleType, shorten: Callable[[str], str], method: int) -> bytes:
    name = source.__name__.rpartition(".")[2]
    files = {"__main__.py": _START.format(name=name)}
    for path in sorted(Path(str(source.__file__)).parent.glob("*.py")):
        files[f"{name}/{path.name}"] = shorten(path.read_text())
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as target:
        for file, text in files.items():
            target.writestr(zipfile.ZipInfo(file), text, method)
    return buffer.getvalue()


def _terse(text: str) -> str:
    """The same program without docstrings, comments and the types of functions."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            node.body = [item for item in node.body if not _is_text(item)] or [ast.Pass()]
    return ast.unparse(tree)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
