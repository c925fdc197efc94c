"""The house's import table (design.md): who may import whom, read from the sources, also inside functions."""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.unit.sources import COMPUTED, Import, imports, is_standard, modules

PACKAGE = Path(__file__).parents[2] / "tfdeploy"

ANYTHING = None

TABLE: Mapping[str, Sequence[str] | None] = {
    "__init__": ANYTHING,
    "errors": (),
    "quantities": (),
    "asked": ("errors", "quantities"),
    "spec": ("asked", "errors"),
    "arguments": ("errors",),
    "constraints": ("errors",),
    "board": ("constraints", "quantities"),
    "placement": ("board", "constraints", "errors", "quantities", "spec"),
    "plan": ("agent.wiring", "errors", "placement", "spec"),
    "bundle": ("errors", "quantities"),
    "agent": ("agent",),
    "application": ("agent",),
    "backends": (),
    "backends.base": ("errors", "placement", "plan", "spec"),
    "backends.local": (
        "agent",
        "application",
        "backends.base",
        "backends.local",
        "bundle",
        "errors",
        "placement",
        "plan",
        "spec",
    ),
    "report": ("agent", "backends.base", "placement", "plan", "spec"),
    "observe": ("agent", "backends.base", "plan", "report", "spec"),
    "waiting": ("observe", "report"),
    "resources": ("agent", "backends.base"),
    "cluster": (
        "application",
        "arguments",
        "backends.base",
        "bundle",
        "errors",
        "observe",
        "plan",
        "report",
        "resources",
        "spec",
        "waiting",
    ),
}
"""Module, or folder of modules, to what of ours it may import; a folder's name stands for all in it."""

FOREIGN: Mapping[str, Sequence[str] | None] = {
    "": (),
    "agent.serve": ("tensorflow",),
    "arguments": ("pulumi",),
    "backends.local": ("packaging", "psutil", "supervisor"),
    "bundle": ("pathspec",),
    "cluster": ("pulumi",),
    "resources": ("pulumi",),
    "waiting": ("pulumi",),
}
"""Module, or folder of modules, to the packages besides Python's own that it may import."""

MAY_COMPUTE = ("backends.base",)
"""Where a module is imported whose name only running the code tells."""

PURE = (
    "errors",
    "quantities",
    "asked",
    "spec",
    "constraints",
    "board",
    "placement",
    "plan",
    "report",
    "agent.states",
    "agent.verdict",
    "agent.orders",
    "agent.wiring",
)
"""What computes and does nothing else."""

WORLD = ("os", "pathlib", "random", "secrets", "signal", "socket", "subprocess", "threading", "time", "uuid")
CLOCKLESS = (*PURE, "agent.lines", "agent.stream", "bundle")
CLOCKS = ("now", "today", "utcnow", "monotonic")

NEWER_THAN_38 = ("graphlib", "tomllib", "zoneinfo")


def _row(table: Mapping[str, Sequence[str] | None], module: str) -> Sequence[str] | None:
    """The row of a module, or of the nearest folder that it is in; KeyError where there is none."""
    while module and module not in table:
        module = module.rpartition(".")[0]
    return table[module]


def _covers(allowed: Sequence[str], module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in allowed)


def complaints(package: Path) -> Iterator[str]:
    """Every breach of the table, one line each."""
    for name, path in modules(package).items():
        try:
            ours = _row(TABLE, name)
        except KeyError:
            yield f"{name}: has no row in the table"
            continue
        for found in imports(package, path):
            wrong = _wrong_with_ours(ours, found) if found.ours else _wrong_with_others(name, found.module)
            if wrong:
                yield f"{name}:{found.line}: {wrong}"
        if name in CLOCKLESS:
            yield from _clocks(name, path)


def _wrong_with_ours(allowed: Sequence[str] | None, found: Import) -> str:
    return "" if allowed is ANYTHING or _covers(allowed, found.module) else f"may not import {found.module}"


def _wrong_with_others(name: str, module: str) -> str:
    """What is wrong with this module's importing another one that is not ours; nothing when empty."""
    if module == COMPUTED:
        return "" if name in MAY_COMPUTE else f"may not import {COMPUTED}"
    if not is_standard(module) and not _covers(_row(FOREIGN, name) or (), module):
        return f"may not import {module}"
    if name in PURE and _covers(WORLD, module):
        return f"is pure and may not import {module}"
    if name in CLOCKLESS and _covers(("time",), module):
        return "may not know the clock"
    if _covers(("agent",), name) and _covers(NEWER_THAN_38, module):
        return f"{module} is newer than Python 3.8"
    return ""


def _clocks(name: str, path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr in CLOCKS:
            yield f"{name}:{node.lineno}: may not know the clock ({node.attr})"


def test_no_module_imports_what_the_table_forbids() -> None:
    assert list(complaints(PACKAGE)) == []


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("spec.py", "from .plan import Plan", "spec:1: may not import plan"),
        ("spec.py", "def f():\n    from .plan import Plan", "spec:2: may not import plan"),
        ("spec.py", "def f():\n    from tfdeploy import plan", "spec:2: may not import plan"),
        ("spec.py", "if TYPE_CHECKING:\n    import tfdeploy.plan", "spec:2: may not import plan"),
        ("spec.py", "import pulumi", "spec:1: may not import pulumi"),
        ("spec.py", "import time", "spec:1: is pure and may not import time"),
        ("spec.py", "def f(m):\n    return m.import_module('tfdeploy.plan')", "spec:2: may not import plan"),
        ("spec.py", "def f():\n    return __import__('pulumi')", "spec:2: may not import pulumi"),
        ("plan.py", "from .agent import wiring, record", "plan:1: may not import agent.record"),
        ("plan.py", "def f(m, name):\n    m.import_module(name)", "plan:2: may not import what it computes"),
        ("plan.py", "__import__('tfde' + 'ploy.report')", "plan:1: may not import what it computes"),
        ("plan.py", "def f(spec, m):\n    spec.loader.exec_module(m)", "plan:2: may not import what it computes"),
        ("report.py", "import datetime\ndatetime.datetime.now()", "report:2: may not know the clock (now)"),
        ("bundle.py", "def f():\n    import time", "bundle:2: may not know the clock"),
        ("agent/orders.py", "from ..errors import SpecError", "agent.orders:1: may not import errors"),
        ("agent/launch.py", "import tensorflow as tf", "agent.launch:1: may not import tensorflow"),
        ("agent/launch.py", "import tomllib", "agent.launch:1: tomllib is newer than Python 3.8"),
        ("resources.py", "from .backends.local import BACKEND", "resources:1: may not import backends.local"),
        ("backends/local/__init__.py", "from ...report import report", "backends.local:1: may not import report"),
        ("helpers.py", "", "helpers: has no row in the table"),
    ],
)
def test_a_planted_import_is_found(tmp_path: Path, file: str, text: str, complaint: str) -> None:
    package = tmp_path / "tfdeploy"
    for path in modules(PACKAGE).values():
        (package / path.relative_to(PACKAGE)).parent.mkdir(parents=True, exist_ok=True)
        (package / path.relative_to(PACKAGE)).touch()
    (package / file).write_text(text)
    assert list(complaints(package)) == [complaint]


def test_every_row_of_the_table_is_a_module() -> None:
    known = modules(PACKAGE)
    named = {*TABLE, *FOREIGN, *CLOCKLESS, *MAY_COMPUTE, *(name for row in TABLE.values() for name in row or ())}
    assert sorted(named - {*known, ""}) == []


def test_importing_the_package_loads_nothing_that_only_one_backend_needs() -> None:
    heavy = ("tensorflow", "psutil", "supervisor", "docker", "pulumi_docker", "pulumi_aws", "tfdeploy.backends.local")
    program = f"""
import sys, pulumi
before = set(sys.modules)
import tfdeploy
print([name for name in {heavy!r} if name in sys.modules and name not in before])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


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


@pytest.mark.parametrize("path", modules(PACKAGE / "agent").values(), ids=lambda path: path.stem)
def test_the_agent_is_written_for_python_38(path: Path) -> None:
    assert list(too_new(path.read_text())) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("match 1:\n    case _: pass", "2: Pattern matching is only supported in Python 3.10 and greater"),
        ("x: dict[str, int] = {}", "1: dict[…]"),
        ("def f(x: int | None): pass", "1: a union by |"),
        ("'a'.removeprefix('a')", "1: removeprefix"),
    ],
)
def test_what_is_too_new_for_the_agent_is_found(text: str, complaint: str) -> None:
    assert list(too_new(text)) == [complaint]


def _python38() -> str | None:
    """A Python 3.8 that starts: one on PATH may be a stub that only says where the real one would be."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = [shutil.which("python3.8"), *map(str, sorted(root.glob("versions/3.8.*/bin/python3.8")))]
    return next((python for python in found if python and _run(python, "-V")[0] == 0), None)


def _run(*command: str) -> tuple[int, str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


LOAD = """
import importlib, sys, types
package = types.ModuleType("agent")
package.__path__ = sys.argv[1:2]
sys.modules["agent"] = package
for name in sys.argv[2:]:
    importlib.import_module("agent." + name)
"""


def test_the_agent_loads_in_a_real_python_38() -> None:
    python = _python38()
    if python is None:
        pytest.skip("no Python 3.8 here: only the form of the sources was checked")
    names = [name for name in modules(PACKAGE / "agent") if name != "__init__"]
    assert _run(python, "-B", "-I", "-c", LOAD, str(PACKAGE / "agent"), *names) == (0, "")
