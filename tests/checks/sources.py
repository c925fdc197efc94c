"""Reads Python sources without running them: who imports whom, where, and what else a test of the house asks."""

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

COMPUTED = "what it computes"
"""In place of the name of a module that only running the code would tell."""

_IMPORTERS = ("import_module", "__import__", "exec_module", "load_module", "run_module", "run_path")


class Import(NamedTuple):
    """One import, wherever in the file it stands."""

    line: int
    module: str
    """Dotted: below the package's own name for modules of ours (`agent.wiring`), else the whole name (`os.path`)."""
    ours: bool


def modules(package: Path) -> dict[str, Path]:
    """The modules of a package by their names below it; a folder's `__init__` has the folder's name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        found[name] = path
    return found


def imports(package: Path, path: Path, known: Mapping[str, Path]) -> Iterator[Import]:
    """Every import of a file: statements at any depth, and calls that import. `known` is `modules(package)`."""
    here = (package.name, *path.relative_to(package).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield _import(package, known, node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = list(here[: len(here) + 1 - node.level]) if node.level else []
            base += (node.module or "").split(".") if node.module else []
            for alias in node.names:
                yield _import(package, known, node.lineno, ".".join([*base, alias.name]))
        elif isinstance(node, ast.Call) and _called(node) in _IMPORTERS:
            argument = node.args[0] if node.args else None
            literal = argument.value if isinstance(argument, ast.Constant) else None
            yield _import(package, known, node.lineno, literal if isinstance(literal, str) else COMPUTED)


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _import(package: Path, known: Mapping[str, Path], line: int, name: str) -> Import:
    """`name` may end in something that is no module: then the module is what stands before it."""
    top, _, below = name.partition(".")
    if top != package.name:
        return Import(line, name, ours=False)
    while below and below not in known:
        below = below.rpartition(".")[0]
    return Import(line, below or "__init__", ours=True)


def is_standard(module: str) -> bool:
    """Whether a module is of Python's own library."""
    return module.partition(".")[0] in sys.stdlib_module_names


def functions(tree: ast.AST) -> Iterator[tuple[str, int, int]]:
    """Each function with its first line and its number of lines, decorators and docstring included."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield node.name, first, (node.end_lineno or first) - first + 1
