"""What a whole run of the tests checks beside them, by a run of pytest over planted tests."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.engine.fixtures import WITHOUT
from tests.plugins.run_checks import Collection

ROOT = Path(__file__).parents[3]
FILE = "tests/unit/test_it.py"

SETTINGS = """
[tool.pytest.ini_options]
testpaths = ["tests/unit"]
markers = ["full: the rest"]
[tool.tfdeploy-tests]
skips = {}
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
        (("-n2", "-m", "not full"), 1, ["no GPU"]),
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
