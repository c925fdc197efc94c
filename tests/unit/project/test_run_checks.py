"""What a whole run of the tests checks beside them: by outcomes that are made up, and by a run of pytest over planted tests."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.engine.fixtures import WITHOUT
from tests.plugins.run_checks import Collection, RunChecks, shelf

ROOT = Path(__file__).parents[3]
FILE = "tests/unit/test_it.py"
ALLOWED = {f"{FILE}::test_hardware": "there is no such hardware here"}


def checked(least: int, *outcomes: tuple[str, str, str]) -> list[str]:
    """The complaints about a run with these parts of tests: the name, the part and its outcome."""
    checks = RunChecks(ALLOWED, {"unit": least})
    for name, when, outcome in outcomes:
        report = SimpleNamespace(
            nodeid=f"{FILE}::{name}",
            when=when,
            passed=outcome == "passed",
            skipped=outcome == "skipped",
            longrepr="no GPU",
            processor=1.0,
        )
        checks.pytest_runtest_logreport(cast(Any, report))
    return [*checks.complaints()]


def test_a_skip_that_is_not_on_the_list_is_named() -> None:
    skips = [(name, "setup", "skipped") for name in ("test_hardware", "test_hardware[2]", "test_other")]
    (complaint,) = checked(0, *skips)
    assert complaint.startswith(f"{FILE}::test_other: was skipped (no GPU)")


def test_a_folder_in_which_too_few_have_passed_is_named() -> None:
    good, torn = ("test_good", "call", "passed"), ("test_torn", "call", "passed")
    assert checked(2, good, torn) == []
    (complaint,) = checked(2, good, torn, ("test_torn", "teardown", "failed"))
    assert complaint.startswith("tests/unit: 1 tests have passed")


def test_a_run_with_complaints_fails() -> None:
    checks, session = RunChecks({}, {"unit": 1}), SimpleNamespace(exitstatus=pytest.ExitCode.OK)
    checks.pytest_sessionfinish(cast(Any, session))
    assert session.exitstatus == pytest.ExitCode.TESTS_FAILED


def test_the_folder_of_a_test_is_below_tests() -> None:
    assert shelf("tests/unit/agent/test_a.py::test_b[x/y]") == "unit"


SETTINGS = """
[tool.pytest.ini_options]
testpaths = ["tests/unit"]
markers = ["full: the rest"]
[tool.tfdeploy-tests]
skips = {}
least.test.unit = 2
least.rest.unit = 1
"""
PLANTED = """
import pytest
def test_good(): pass
@pytest.mark.full
def test_long(): pass
def test_skipped(): pytest.skip("no GPU")
"""


@pytest.mark.parametrize(
    ("arguments", "code", "complaints"),
    [
        (("-n2", "-m", "not full"), 1, ["no GPU", "1 tests have passed"]),
        (("-n0", "-m", "full"), 0, []),
        (("-n0", "-m", "not full", "-k", "good"), 0, []),
    ],
)
def test_a_run_of_all_tests_is_checked_and_one_of_chosen_tests_is_not(
    tmp_path: Path, arguments: tuple[str, ...], code: int, complaints: list[str]
) -> None:
    for name, content in (("pyproject.toml", SETTINGS), (FILE, PLANTED)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST") and name != WITHOUT}
    plugins = ("-p", "xdist", "-p", "no:cacheprovider", "-p", "tests.plugins.run_checks")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "--tb=no", *arguments],
        cwd=tmp_path,
        env={**known, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    _, _, printed = done.stdout.partition(" checks of the run ")
    assert all(text in printed for text in complaints)


def test_a_mark_where_the_rest_does_not_look_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("from elsewhere import marked")
    item: Any = SimpleNamespace(nodeid="test_a.py::test", path=tmp_path / "test_a.py", get_closest_marker=str)
    with pytest.raises(pytest.UsageError, match=r"test_a\.py::test: `mark\.full` stands neither"):
        Collection().pytest_collection_modifyitems([item])


def test_the_tests_that_may_be_skipped_exist() -> None:
    allowed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["tfdeploy-tests"]["skips"]
    for test in allowed:
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(), test
