"""What a whole run of the tests checks beside them, shown by runs of pytest over planted tests."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path

import pytest

from tests.artefacts import VARIABLE
from tests.engine.fixtures import WITHOUT

ROOT = Path(__file__).parents[3]

SETTINGS = """
[tool.tfdeploy-tests.skips]
"tests/test_it.py::test_hardware" = "there is no such hardware here"
"""

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

NOT_ALLOWED = "and `skips` in pyproject.toml does not allow it"
SKIPPED = {
    "skipped": f"(no GPU), {NOT_ALLOWED}",
    "awaited": f"(E   assert False), {NOT_ALLOWED}",
    "half[2]": f"(unconditional skip), {NOT_ALLOWED}",
}

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


def run(
    folder: Path,
    text: str,
    tests: Sequence[str],
    *arguments: str,
    settings: str = SETTINGS,
    files: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[int, list[str]]:
    """The exit code of a run of a file of tests, and what it says of a table with a row `a.NAME` for each of these."""
    rows = [
        f'[[feature]]\nid = "a.{test}"\nsystem = "a"\ntext = ""\ntests = ["tests/test_it.py::test_{test}"]\n'
        for test in tests
    ]
    planted = {
        "pytest.ini": "[pytest]\ntestpaths = tests\nmarkers = full: what `make test` leaves out\n",
        "pyproject.toml": settings,
        "conftest.py": 'pytest_plugins = ["tests.plugins.run_checks"]',
        "tests/test_it.py": text,
        "docs/features.toml": "\n".join(['[systems]\na = "A"\n', *rows]),
        **(files or {}),
    }
    for name, content in planted.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST") and name != WITHOUT}
    bare = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", VARIABLE: str(folder)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "xdist", "-p", "no:cacheprovider", "--tb=no", *arguments],
        cwd=folder,
        env={**known, **bare, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    _, _, said = done.stdout.partition(" checks of the run ")
    return done.returncode, list(takewhile(lambda line: line[:1] not in "=!", said.splitlines()[1:]))


def test_rows_that_nothing_shows_fail_a_run_in_which_no_test_failed(tmp_path: Path) -> None:
    assert run(tmp_path, PASS + SKIP, ["good", "gone", "skipped", "awaited", "half", "each"], "-n2") == (
        pytest.ExitCode.TESTS_FAILED,
        [
            "a.gone: tests/test_it.py::test_gone: did not run",
            "a.skipped: tests/test_it.py::test_skipped: skipped",
            "a.awaited: tests/test_it.py::test_awaited: skipped",
            "a.half: tests/test_it.py::test_half: skipped",
            *(f"tests/test_it.py::test_{test}: was skipped {why}" for test, why in SKIPPED.items()),
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
    assert run(tmp_path, text, ["gone"], *arguments, environment=environment) == (code, said)


TWO_COMMANDS = """
import pytest

def test_quick(): pass
@pytest.mark.full
def test_long(): pass
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.full)])
def test_both(n): pass
"""


@pytest.mark.parametrize("processes", ["-n0", "-n2"])
def test_each_command_leaves_rows_to_the_other_and_names_those_that_it_does_not_show(
    tmp_path: Path, processes: str
) -> None:
    rows = ["quick", "long", "both"]
    assert run(tmp_path, TWO_COMMANDS, rows, processes, "-m", "not full") == (
        pytest.ExitCode.OK,
        ["2 of the 3 rows of docs/features.toml are shown.", "`make test-all` alone shows all of: a.long"],
    )
    assert run(tmp_path, TWO_COMMANDS, rows, processes, "-m", "full") == (
        pytest.ExitCode.OK,
        ["together with `make test`, each of the 3 rows of docs/features.toml is shown"],
    )
    assert run(tmp_path, TWO_COMMANDS, rows, processes, "-m", "full and not (ec2 or box)") == (
        pytest.ExitCode.OK,
        ["`make test-all` shows the 3 rows of docs/features.toml"],
    )
    assert run(tmp_path, TWO_COMMANDS, [*rows, "gone"], processes, "-m", "full") == (
        pytest.ExitCode.TESTS_FAILED,
        ["a.gone: tests/test_it.py::test_gone: did not run"],
    )


def test_a_skip_on_the_list_is_allowed(tmp_path: Path) -> None:
    text = PASS + "\ndef test_hardware(): pytest.skip('no GPU')\n"
    assert run(tmp_path, text, ["good"])[0] == pytest.ExitCode.OK


def test_fewer_tests_than_the_kept_number_fail_the_run(tmp_path: Path) -> None:
    settings = SETTINGS + "\n[tool.tfdeploy-tests.least.test]\nunit = 2\n"
    planted = {"tests/unit/test_planted.py": PASS.replace("[1, 2]", "[1]")}
    assert run(tmp_path, PASS, ["good"], "-m", "not full", settings=settings, files=planted)[0] == pytest.ExitCode.OK
    planted = {"tests/unit/test_planted.py": "def test_alone(): pass"}
    assert run(tmp_path, PASS, ["good"], "-m", "not full", settings=settings, files=planted) == (
        pytest.ExitCode.TESTS_FAILED,
        ["tests/unit: 1 tests have passed, and `least` in pyproject.toml asks for 2"],
    )


BURNS = """
import subprocess, sys, time
BURN = "import time\\nwhile time.process_time() < 1.5: pass"

def test_burns(): subprocess.run([sys.executable, "-c", BURN], check=True)
"""


@pytest.mark.parametrize(("budget", "code"), [(1.2, pytest.ExitCode.OK), (0.5, pytest.ExitCode.TESTS_FAILED)])
def test_a_run_that_costs_twice_its_budget_fails(tmp_path: Path, budget: float, code: pytest.ExitCode) -> None:
    settings = f"[tool.tfdeploy-tests.budget.all]\nunit = {budget}\n"
    found, said = run(tmp_path, PASS, ["good"], settings=settings, files={"tests/unit/test_planted.py": BURNS})
    assert found == code
    assert said[0].startswith("unit: ") == (code == pytest.ExitCode.TESTS_FAILED)


@pytest.mark.parametrize(("budget", "code"), [(1.2, pytest.ExitCode.OK), (0.5, pytest.ExitCode.TESTS_FAILED)])
def test_a_half_has_the_budgets_of_its_folders(tmp_path: Path, budget: float, code: pytest.ExitCode) -> None:
    settings = (
        f"[tool.tfdeploy-tests.budget.rest]\nunit = {budget}\n[tool.tfdeploy-tests.least.rest-others]\nunit = 1\n"
    )
    planted = {"tests/unit/test_planted.py": f"import pytest\npytestmark = pytest.mark.full\n{BURNS}"}
    half = ("-m", "full and not (ec2 or box)")
    found, said = run(tmp_path, TWO_COMMANDS, ["long"], *half, settings=settings, files=planted)
    assert found == code
    assert said[0].startswith("unit: ") == (code == pytest.ExitCode.TESTS_FAILED)


@pytest.mark.parametrize("processes", ["-n0", "-n2"])
def test_what_each_test_costs_is_written_down(tmp_path: Path, processes: str) -> None:
    run(tmp_path, PASS, ["good"], processes, files={"tests/unit/test_planted.py": BURNS})
    found = json.loads((tmp_path / "durations-all.json").read_text())
    cost = found["tests"]["tests/unit/test_planted.py::test_burns"]
    assert 1.5 <= cost["processor"] <= 5
    assert cost["wall"] >= 1.5
    assert found["shelves"]["unit"] == cost
    assert found["processor"]["machine"] >= 1.5


def test_the_tests_that_may_be_skipped_exist() -> None:
    allowed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["tfdeploy-tests"]["skips"]
    for test in allowed:
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(), test
