"""The table of features names tests that there are, and its page is made from it."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import features as module
from tools.features import TARGET, Feature, Features, command, features, page

ROOT = Path(__file__).parents[2]
SHELVES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["testpaths"]


def complaints(root: Path, table: Features) -> Iterator[str]:
    """What of a table cannot be so, one line each."""
    ids = [row.id for row in table.rows]
    for row in table.rows:
        if ids.count(row.id) > 1:
            yield f"{row.id}: stands there twice"
        if not row.id.startswith(f"{row.system}."):
            yield f"{row.id}: is not called after its system"
        if row.system not in table.systems:
            yield f"{row.id}: {row.system} is no system"
        if not row.tests:
            yield f"{row.id}: has no test"
        yield from (f"{row.id}: {test}: there is no such test" for test in row.tests if not _is_there(root, test))


def _is_there(root: Path, test: str) -> bool:
    """Whether a file that pytest collects has such a function."""
    file, _, name = test.partition("::")
    path = root / file
    collected = path.match("test_*.py") and any(file.startswith(f"{shelf}/") for shelf in SHELVES)
    if not (collected and path.is_file() and name.startswith("test_")):
        return False
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in ast.parse(path.read_text()).body)


def test_each_row_names_tests_that_there_are() -> None:
    assert list(complaints(ROOT, features(ROOT))) == []


def test_each_system_has_rows() -> None:
    table = features(ROOT)
    assert {row.system for row in table.rows} == set(table.systems)


def test_the_page_is_made_from_the_table() -> None:
    assert TARGET.read_text() == page(features(ROOT)), "run: python -m tools.features"


def test_what_cannot_be_so_is_found() -> None:
    there = ["tests/unit/project/test_ci.py::test_what_make_starts_stores_compiled_modules"]
    rows = [
        Feature("a.good", "a", "", there),
        Feature("a.bare", "a", "", []),
        Feature("a.other", "c", "", there),
        Feature("b.none", "b", "", there),
        Feature("a.twice", "a", "", there),
        Feature("a.twice", "a", "", there),
    ]
    assert list(complaints(ROOT, Features({"a": "A", "c": "C"}, rows))) == [
        "a.bare: has no test",
        "a.other: is not called after its system",
        "b.none: b is no system",
        "a.twice: stands there twice",
        "a.twice: stands there twice",
    ]


@pytest.mark.parametrize(
    "test",
    [
        "tests/unit/test_a.py",
        "tests/unit/test_a.py::test_other",
        "tests/unit/test_a.py::helps",
        "tests/unit/test_a.py::test_in_it",
        "tests/unit/a.py::test_it",
        "tests/unit/test_b.py::test_it",
        "tests/test_a.py::test_it",
    ],
)
def test_a_test_that_pytest_would_not_run_is_found(tmp_path: Path, test: str) -> None:
    for file in ("tests/unit/test_a.py", "tests/unit/a.py", "tests/test_a.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(
            "def test_it(): pass\ndef helps(): pass\nclass TestIt:\n    def test_in_it(self): pass\n"
        )
    row = Feature("a.one", "a", "", ["tests/unit/test_a.py::test_it", test])
    assert list(complaints(tmp_path, Features({"a": "A"}, [row]))) == [f"a.one: {test}: there is no such test"]


LEFT_OUT = """
import pytest
pytestmark = {of_all}
def test_quick(): pass
@pytest.mark.full
def test_long(): pass
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.full)])
def test_half(n): pass
"""


@pytest.mark.parametrize(
    ("of_all", "tests", "expected"),
    [
        ("[]", ["quick", "half"], "make test"),
        ("[]", ["quick", "long"], "make test-all"),
        ("pytest.mark.full", ["quick"], "make test-all"),
        ("[pytest.mark.unit, pytest.mark.full]", ["quick"], "make test-all"),
    ],
)
def test_a_row_names_the_command_that_runs_all_its_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_all: str, tests: list[str], expected: str
) -> None:
    monkeypatch.setattr(module, "ROOT", tmp_path)
    (tmp_path / "test_it.py").write_text(LEFT_OUT.format(of_all=of_all))
    assert command(Feature("a.one", "a", "", [f"test_it.py::test_{test}" for test in tests])) == expected


@pytest.mark.parametrize(
    ("test", "backends"),
    [
        ("tests/contract/test_contract.py::test_names_flags_environment_and_outputs", {"local", "docker", "ec2"}),
        ("tests/docker/test_images.py::test_hdfs_loads_tensorflow_io_and_java", {"docker"}),
        ("tests/programs/test_marathon.py::test_the_final_loss_is_an_output", {"local"}),
        (
            "tests/programs/test_tfmesos_docker.py::test_tasks_run_as_the_caller_with_the_callers_files_and_volumes",
            {"docker"},
        ),
        ("tests/cli/test_run.py::test_in_containers_it_is_the_same", {"docker"}),
        ("tests/cli/test_run.py::test_worker_0_runs_in_this_terminal", {"local"}),
        ("tests/unit/test_units.py::test_a_duration_is_read", set()),
    ],
)
def test_a_row_has_the_backends_on_which_its_tests_run(test: str, backends: set[str]) -> None:
    assert {*module.COLUMNS[:3]} & module.backends_of(test) == backends
