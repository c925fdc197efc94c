"""A run of all tests fails, and names the row, when a row's test has not run and passed: seen by planted runs of pytest."""

import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import pytest

from tests.engine.fixtures import WITHOUT

ROOT = Path(__file__).parents[2]

PASS = """
import pytest

def test_good(): pass
@pytest.mark.parametrize("n", [1, 2])
def test_each(n): pass
"""

SKIP = """
def test_skipped(): pytest.skip("no GPU")
@pytest.mark.xfail
def test_awaited(): assert False
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.skip)])
def test_half(n): pass
"""

FAIL = """
@pytest.fixture
def torn():
    yield
    raise OSError

def test_bad(): assert False
def test_broken(nowhere): pass
def test_torn(torn): pass
@pytest.mark.parametrize("n", [1, 2])
def test_one_of_two(n): assert n == 1
"""


def run(folder: Path, text: str, tests: Sequence[str], *arguments: str, **environment: str) -> tuple[int, list[str]]:
    """The exit code of a run of a file of tests, and what it says of a table with a row `a.NAME` for each of these."""
    rows = [
        f'[[feature]]\nid = "a.{test}"\nsystem = "a"\ntext = ""\ntests = ["tests/test_it.py::test_{test}"]\n'
        for test in tests
    ]
    files = {
        "pytest.ini": "[pytest]\ntestpaths = tests\n",
        "conftest.py": 'pytest_plugins = ["tests.features"]',
        "tests/test_it.py": text,
        "docs/features.toml": "\n".join(['[systems]\na = "A"\n', *rows]),
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST") and name != WITHOUT}
    bare = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "xdist", "-p", "no:cacheprovider", "--tb=no", *arguments],
        cwd=folder,
        env={**known, **bare, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    _, _, said = done.stdout.partition(" features ")
    return done.returncode, list(takewhile(lambda line: line[:1] not in "=!", said.splitlines()[1:]))


def test_rows_that_nothing_shows_fail_a_run_in_which_no_test_failed(tmp_path: Path) -> None:
    assert run(tmp_path, PASS + SKIP, ["good", "gone", "skipped", "awaited", "half", "each"], "-n2") == (
        pytest.ExitCode.TESTS_FAILED,
        [
            "a.gone: tests/test_it.py::test_gone: did not run",
            "a.skipped: tests/test_it.py::test_skipped: skipped",
            "a.awaited: tests/test_it.py::test_awaited: skipped",
            "a.half: tests/test_it.py::test_half: skipped",
        ],
    )


def test_rows_whose_tests_fail_are_named(tmp_path: Path) -> None:
    assert run(tmp_path, PASS + FAIL, ["good", "bad", "broken", "torn", "one_of_two"]) == (
        pytest.ExitCode.TESTS_FAILED,
        [
            "a.bad: tests/test_it.py::test_bad: failed",
            "a.broken: tests/test_it.py::test_broken: failed",
            "a.torn: tests/test_it.py::test_torn: failed",
            "a.one_of_two: tests/test_it.py::test_one_of_two: failed",
        ],
    )


@pytest.mark.parametrize("processes", ["-n0", "-n2"])
def test_a_run_that_shows_every_row_says_so(tmp_path: Path, processes: str) -> None:
    code, said = run(tmp_path, PASS, ["good", "each"], processes)
    assert (code, said) == (pytest.ExitCode.OK, ["each of the 2 rows of docs/features.toml is shown"])


@pytest.mark.parametrize(
    ("text", "arguments", "environment", "code", "said"),
    [
        (PASS, ["-k", "good"], {WITHOUT: "1"}, 0, [f"not checked: tests were left out (keyword, {WITHOUT})"]),
        (PASS, ["tests/test_it.py"], {}, 0, []),
        (PASS + FAIL, ["-x"], {}, 1, ["not checked: the run was broken off"]),
    ],
    ids=["some chosen", "a file named", "broken off"],
)
def test_a_run_of_some_tests_is_not_judged(
    tmp_path: Path, text: str, arguments: list[str], environment: dict[str, str], code: int, said: list[str]
) -> None:
    assert run(tmp_path, text, ["gone"], *arguments, **environment) == (code, said)
