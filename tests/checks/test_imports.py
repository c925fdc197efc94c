"""No modules import one another: the sources are read, functions included. `lint-imports` checks who may import whom."""

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "tfdeploy"


def modules(package: Path) -> dict[str, Path]:
    """The modules of a package by their whole names; a folder's `__init__` has the folder's name."""
    paths = sorted(package.rglob("*.py"))
    names = [".".join((package.name, *path.relative_to(package).with_suffix("").parts)) for path in paths]
    return {name.removesuffix(".__init__"): path for name, path in zip(names, paths, strict=True)}


def imports(package: Path, path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """The modules of the package that a file imports, wherever in it."""
    here = (package.name, *path.relative_to(package).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            base = here[: len(here) + 1 - node.level] if node.level else ()
            origin = ".".join((*base, *filter(None, [node.module])))
            names = [f"{origin}.{alias.name}" for alias in node.names]
        for name in names:
            yield name if name in known else name.rpartition(".")[0]


def cycles(package: Path) -> list[str]:
    """A group of modules that import one another; empty where there is none."""
    known = modules(package)
    edges = {name: {*imports(package, path, known)} & {*known} - {name, package.name} for name, path in known.items()}
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return [*error.args[1]]
    return []


def test_no_modules_import_one_another() -> None:
    assert cycles(PACKAGE) == []


def test_a_planted_cycle_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(f"from {tmp_path.name} import b")
    (tmp_path / "b.py").write_text("def f():\n    from . import a")
    assert {name.rpartition(".")[2] for name in cycles(tmp_path)} == {"a", "b"}
