"""No module imports that the import table forbids: the sources are read, functions included."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.checks.import_table import ANYTHING, FOREIGN, MAY_COMPUTE, TABLE
from tests.checks.pure_modules import CLOCKLESS, CLOCKS, NEWER_THAN_38, PURE, WORLD
from tests.checks.sources import COMPUTED, Import, imports, is_standard, modules

PACKAGE = Path(__file__).parents[2] / "tfdeploy"


def _row(table: Mapping[str, Sequence[str] | None], module: str) -> Sequence[str] | None:
    """The row of a module, or of the nearest folder that it is in; KeyError where there is none."""
    while module and module not in table:
        module = module.rpartition(".")[0]
    return table[module]


def _covers(allowed: Sequence[str], module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in allowed)


def complaints(package: Path) -> Iterator[str]:
    """Every breach of the table, one line each."""
    known = modules(package)
    for name, path in known.items():
        try:
            ours = _row(TABLE, name)
        except KeyError:
            yield f"{name}: has no row in the table"
            continue
        for found in imports(package, path, known):
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
    if _covers(("agent", "backends.ec2.watchdog"), name) and _covers(NEWER_THAN_38, module):
        return f"{module} is newer than Python 3.8"
    return ""


def _clocks(name: str, path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr in CLOCKS:
            yield f"{name}:{node.lineno}: may not know the clock ({node.attr})"


def test_no_module_imports_what_the_table_forbids() -> None:
    assert list(complaints(PACKAGE)) == []


PLANTED = [
    ("spec/cluster.py", "from ..plan.plan import Plan", "spec.cluster:1: may not import plan.plan"),
    ("spec/cluster.py", "def f():\n    from ..plan.plan import Plan", "spec.cluster:2: may not import plan.plan"),
    ("spec/cluster.py", "def f():\n    from tfdeploy.plan import plan", "spec.cluster:2: may not import plan.plan"),
    ("spec/cluster.py", "if TYPE_CHECKING:\n    import tfdeploy.plan", "spec.cluster:2: may not import plan"),
    ("spec/cluster.py", "import pulumi", "spec.cluster:1: may not import pulumi"),
    ("spec/cluster.py", "import time", "spec.cluster:1: is pure and may not import time"),
    (
        "spec/cluster.py",
        "def f(m):\n    return m.import_module('tfdeploy.plan')",
        "spec.cluster:2: may not import plan",
    ),
    ("spec/cluster.py", "def f():\n    return __import__('pulumi')", "spec.cluster:2: may not import pulumi"),
    (
        "plan/plan.py",
        "from ..agent.control import elastic\nfrom ..agent.record import record",
        "plan.plan:2: may not import agent.record.record",
    ),
    ("plan/plan.py", "def f(m, name):\n    m.import_module(name)", "plan.plan:2: may not import what it computes"),
    ("plan/plan.py", "__import__('tfde' + 'ploy.report')", "plan.plan:1: may not import what it computes"),
    ("plan/plan.py", "def f(s, m):\n    s.loader.exec_module(m)", "plan.plan:2: may not import what it computes"),
    (
        "report/report.py",
        "import datetime\ndatetime.datetime.now()",
        "report.report:2: may not know the clock (now)",
    ),
    ("plan/code_bundle.py", "def f():\n    import time", "plan.code_bundle:2: may not know the clock"),
    (
        "agent/control/reconcile.py",
        "from ...errors import SpecError",
        "agent.control.reconcile:1: may not import errors",
    ),
    ("agent/launch/launcher.py", "import tensorflow as tf", "agent.launch.launcher:1: may not import tensorflow"),
    ("agent/launch/launcher.py", "import tomllib", "agent.launch.launcher:1: tomllib is newer than Python 3.8"),
    (
        "backends/ec2/watchdog/record_upload.py",
        "import tomllib",
        "backends.ec2.watchdog.record_upload:1: tomllib is newer than Python 3.8",
    ),
    (
        "backends/ec2/watchdog/record_upload.py",
        "from ....agent import record",
        "backends.ec2.watchdog.record_upload:1: may not import agent.record",
    ),
    ("backends/ec2/watchdog/s3.py", "import boto3", "backends.ec2.watchdog.s3:1: may not import boto3"),
    (
        "backends/ec2/watchdog/shutdown_rule.py",
        "import time",
        "backends.ec2.watchdog.shutdown_rule:1: is pure and may not import time",
    ),
    ("resources.py", "from .backends.local.backend import X", "resources:1: may not import backends.local.backend"),
    (
        "backends/local/backend.py",
        "from ...report.report import report",
        "backends.local.backend:1: may not import report.report",
    ),
    ("backends/docker/labels.py", "import boto3", "backends.docker.labels:1: may not import boto3"),
    (
        "backends/ec2/machine/machine_count.py",
        "import secrets",
        "backends.ec2.machine.machine_count:1: is pure and may not import secrets",
    ),
    (
        "backends/docker/engine/engine.py",
        "from ...local.paths import x",
        "backends.docker.engine.engine:1: may not import backends.local.paths",
    ),
    ("helpers.py", "", "helpers: has no row in the table"),
]


@pytest.mark.parametrize(("file", "text", "complaint"), PLANTED)
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


def cycles(package: Path) -> list[list[str]]:
    """Groups of modules that import one another, at the top of a file or inside a function."""
    known = modules(package)
    edges = {
        name: {found.module for found in imports(package, path, known) if found.ours} & {*known} - {name, "__init__"}
        for name, path in known.items()
    }
    sorter = TopologicalSorter(edges)
    try:
        sorter.prepare()
    except CycleError as error:
        return [error.args[1]]
    return []


def test_no_modules_import_one_another() -> None:
    assert cycles(PACKAGE) == []


def test_a_planted_cycle_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(f"from {tmp_path.name} import b")
    (tmp_path / "b.py").write_text("def f():\n    from . import a")
    assert sorted(set(cycles(tmp_path)[0])) == ["a", "b"]
