"""Two zip applications: the agent, which the backends copy to the tasks, and the watchdog of a machine on EC2."""

import ast
import hashlib
import io
import marshal
import re
import zipfile
from collections.abc import Callable
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import ModuleType

from .. import agent
from .ec2 import watchdog as watchdog_package

_UNCHECKED = 1
"""The flags of a compiled module that is not compared with its source (PEP 552)."""

_INDENT = re.compile("^ +", re.MULTILINE)

_START = "import sys\n\nfrom {name}.main import main\n\nsys.exit(main())\n"


@cache
def application() -> bytes:
    """The agent; the same bytes for the same sources."""
    return _zipped(agent, str, zipfile.ZIP_DEFLATED)


@cache
def compiled_application() -> bytes:
    """The agent with its modules also compiled, for this interpreter: each process of the agent starts about a third faster. Another
    interpreter compiles the sources, as without."""
    return _zipped(agent, str, zipfile.ZIP_STORED, _compiled)


@cache
def version() -> str:
    """The agent's version: a hash of its sources."""
    digest = hashlib.sha256()
    for name, path in _sources(agent).items():
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


@cache
def watchdog() -> bytes:
    """The watchdog, without docstrings, comments and types: it is part of user data, which has a size limit.

    Its members are not compressed, because user data is compressed as a whole, which is smaller.
    """
    return _zipped(watchdog_package, _terse, zipfile.ZIP_STORED)


def _sources(package: ModuleType) -> dict[str, Path]:
    """The files of the package by their paths in it."""
    folder = Path(str(package.__file__)).parent
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.py"))}


def _zipped(
    package: ModuleType,
    shorten: Callable[[str], str],
    method: int,
    compiled: Callable[[str, Path], bytes] | None = None,
) -> bytes:
    name = package.__name__.rpartition(".")[2]
    files: dict[str, str | bytes] = {"__main__.py": _START.format(name=name)}
    for file, path in _sources(package).items():
        files[f"{name}/{file}"] = shorten(path.read_text(encoding="utf-8"))
        if compiled:
            module = ".".join(
                [package.__name__, *path.relative_to(path.parents[file.count("/")]).with_suffix("").parts]
            )
            files[f"{name}/{file}c"] = compiled(module.removesuffix(".__init__"), path)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as target:
        for file, content in files.items():
            target.writestr(zipfile.ZipInfo(file), content, method)
    return buffer.getvalue()


def _compiled(module: str, path: Path) -> bytes:
    """The compiled module, from Python's cache where that is up to date."""
    code = SourceFileLoader(module, str(path)).get_code(module)
    return MAGIC_NUMBER + _UNCHECKED.to_bytes(4, "little") + bytes(8) + marshal.dumps(code)


def _terse(text: str) -> str:
    """The same program without docstrings, comments and types, and with the narrowest indents."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            node.body = [item for item in node.body if not _is_text(item)] or [ast.Pass()]
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "typing"]:
        node.names = [item for item in node.names if item.name in used]
        if not node.names:
            tree.body.remove(node)
    return _INDENT.sub(lambda match: match[0][::4], ast.unparse(tree))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
