"""No module imports what the house's import table (design.md) forbids, read from the sources, also inside functions."""

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.unit.import_table import ANYTHING, FOREIGN, MAY_COMPUTE, TABLE
from tests.unit.pure_modules import CLOCKLESS, CLOCKS, NEWER_THAN_38, PURE, WORLD
from tests.unit.sources import COMPUTED, Import, imports, is_standard, modules

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
    if _covers(("agent", "caretaker"), name) and _covers(NEWER_THAN_38, module):
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
        ("caretaker/upload.py", "import tomllib", "caretaker.upload:1: tomllib is newer than Python 3.8"),
        ("caretaker/upload.py", "from ..agent import record", "caretaker.upload:1: may not import agent.record"),
        ("caretaker/bucket.py", "import boto3", "caretaker.bucket:1: may not import boto3"),
        ("caretaker/decisions.py", "import time", "caretaker.decisions:1: is pure and may not import time"),
        ("resources.py", "from .backends.local import BACKEND", "resources:1: may not import backends.local"),
        ("backends/local/__init__.py", "from ...report import report", "backends.local:1: may not import report"),
        ("backends/docker/names.py", "import docker", "backends.docker.names:1: may not import docker"),
        ("backends/docker/swarm.py", "import pulumi_docker", "backends.docker.swarm:1: may not import pulumi_docker"),
        ("backends/ec2/fleet.py", "import pulumi_aws", "backends.ec2.fleet:1: may not import pulumi_aws"),
        ("ec2/layout.py", "from . import account", "ec2.layout:1: may not import ec2.account"),
        ("ec2/boot.py", "import secrets", "ec2.boot:1: is pure and may not import secrets"),
        ("ec2/removal.py", "import boto3", "ec2.removal:1: may not import boto3"),
        (
            "backends/docker/engine.py",
            "from ..local import x",
            "backends.docker.engine:1: may not import backends.local",
        ),
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
    ours = ("tfdeploy.backends.local", "tfdeploy.backends.docker", "tfdeploy.backends.ec2", "tfdeploy.ec2")
    heavy = (*ours, "tensorflow", "psutil", "supervisor", "docker", "boto3", "pulumi_docker", "pulumi_aws")
    program = f"""
import sys, pulumi
before = set(sys.modules)
import tfdeploy
print([name for name in {heavy!r} if name in sys.modules and name not in before])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
