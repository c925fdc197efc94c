"""What a whole run of the tests checks beside them: by outcomes that are made up, and by two runs of pytest over planted tests."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.artefacts import VARIABLE
from tests.engine.fixtures import WITHOUT
from tests.plugins import run_checks
from tests.plugins.commands import SELECTING, Run, run_of
from tests.plugins.measuring import Collection
from tests.plugins.outcomes import Cost, Outcomes
from tests.plugins.run_checks import RunChecks

ROOT = Path(__file__).parents[3]
OK, FAILED = pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED
FILE = "tests/unit/test_it.py"

SETTINGS = f"""
[tool.tfdeploy-tests]
skips."{FILE}::test_hardware" = "there is no such hardware here"
least.test.unit = 2
budget.test = {{ unit = 100, machine = 100 }}
"""

PLANTED = """
import subprocess, sys, time
import pytest

BURN = "import time\\nwhile time.process_time() < 0.3: pass"

@pytest.fixture
def torn():
    yield
    raise OSError

def test_good(): subprocess.run([sys.executable, "-c", BURN], check=True)
@pytest.mark.full
def test_long(): pass
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.full)])
def test_both(n): pass
def test_bad(): assert False
def test_broken(nowhere): pass
def test_torn(torn): pass
@pytest.mark.parametrize("n", [1, 2])
def test_one_of_two(n): assert n == 1
def test_skipped(): pytest.skip("no GPU")
def test_hardware(): pytest.skip("no such hardware")
@pytest.mark.xfail
def test_awaited(): assert False
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.skip)])
def test_half(n): pass
"""


def write(folder: Path, rows: tuple[str, ...], settings: str = SETTINGS) -> None:
    """The files that the checks read: the table of features has a row `a.NAME` for each of these tests."""
    lines = [f'[[feature]]\nid = "a.{row}"\nsystem = "a"\ntext = ""\ntests = ["{FILE}::test_{row}"]\n' for row in rows]
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs" / "features.toml").write_text("\n".join(['[systems]\na = "A"\n', *lines]))
    (folder / "pyproject.toml").write_text(settings)


class Lines:
    """What a run prints at its end."""

    def __init__(self) -> None:
        self.all: list[str] = []

    def section(self, title: str) -> None:
        self.all.append(f"== {title}")

    def line(self, text: str, **_: bool) -> None:
        self.all.append(text)


@pytest.fixture(autouse=True)
def _files_of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))


def checked(
    folder: Path, rows: tuple[str, ...], name: str = "test", settings: str = "", code: int = OK, **outcomes: Any
) -> tuple[int, list[str], list[str]]:
    """The exit code of a run with these outcomes, what its checks print, and what they print before that."""
    write(folder, rows, settings)
    checks = RunChecks(folder, Run(name), Collection())
    checks.outcomes = Outcomes(
        {f"{FILE}::test_good": Cost(seconds, seconds) for seconds in outcomes.get("costs", ())},
        passed={f"{FILE}::test_{test}" for test in outcomes.get("passed", ())},
        deselected={f"{FILE}::test_{test}" for test in outcomes.get("deselected", ())},
    )
    session: Any = SimpleNamespace(shouldfail=False, exitstatus=code)
    checks.pytest_sessionfinish(session, code)
    printed: Any = Lines()
    checks.pytest_terminal_summary(printed)
    place = printed.all.index("== checks of the run")
    return session.exitstatus, printed.all[place + 1 :], printed.all[:place]


@pytest.mark.parametrize(
    ("name", "passed", "deselected", "printed"),
    [
        ("all", ["quick", "long", "both[1]", "both[2]"], [], ["each of the 3 rows of docs/features.toml is shown"]),
        (
            *("test", ["quick", "both[1]"], ["long", "both"]),
            ["2 of the 3 rows of docs/features.toml are shown.", "`make test-all` alone shows all of: a.long"],
        ),
        (
            *("rest", ["long", "both[2]"], ["quick", "both"]),
            ["together with `make test`, each of the 3 rows of docs/features.toml is shown"],
        ),
    ],
)
def test_each_command_leaves_rows_to_the_other_and_names_those_that_it_does_not_show(
    tmp_path: Path, name: str, passed: list[str], deselected: list[str], printed: list[str]
) -> None:
    rows = ("quick", "long", "both")
    assert checked(tmp_path, rows, name, passed=passed, deselected=deselected)[:2] == (OK, printed)
    assert checked(tmp_path, (*rows, "gone"), name, passed=passed, deselected=deselected)[:2] == (
        FAILED,
        [f"a.gone: {FILE}::test_gone: did not run"],
    )


def test_a_run_that_was_broken_off_is_not_judged(tmp_path: Path) -> None:
    code = pytest.ExitCode.INTERRUPTED
    assert checked(tmp_path, ("gone",), code=code)[:2] == (code, ["not checked: the run was broken off"])


def test_fewer_tests_than_the_least_number_fail_the_run(tmp_path: Path) -> None:
    least = "[tool.tfdeploy-tests.least.test]\nunit = 2\n"
    assert checked(tmp_path, ("good",), settings=least, passed=["good", "other"])[0] == OK
    assert checked(tmp_path, ("good",), settings=least, passed=["good"])[:2] == (
        FAILED,
        ["tests/unit: 1 tests have passed, and `least` in pyproject.toml asks for 2"],
    )


@pytest.mark.parametrize(
    ("unit", "machine", "code", "warnings"),
    [(99, 99, OK, []), (101, 500, OK, ["unit", "machine"]), (201, 99, FAILED, ["unit"])],
)
def test_a_folder_that_costs_twice_its_budget_fails_the_run_and_the_machine_only_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: int, machine: int, code: int, warnings: list[str]
) -> None:
    clock = iter([0, *[machine] * 9])
    monkeypatch.setattr(run_checks, "machine_time", lambda: next(clock))
    budget = "[tool.tfdeploy-tests.budget.test]\nunit = 100\nmachine = 100\n"
    found, printed, before = checked(tmp_path, ("good",), settings=budget, passed=["good"], costs=[unit])
    assert found == code
    assert [line.split()[1] for line in before if line.startswith("warning: ")] == [f"{name}:" for name in warnings]
    assert (printed == [f"unit: {unit} s of processor time, of a budget of 100 s"]) is (code == FAILED)


@pytest.mark.parametrize(
    ("named", "options", "variable", "expected"),
    [
        (False, {"markexpr": "full"}, "", Run("rest")),
        (False, {"keyword": "good"}, "1", Run("all", ("keyword", WITHOUT))),
        (False, {"markexpr": "docker"}, "", Run("some", ("markexpr",))),
        (True, {"keyword": "good"}, "", Run("some")),
    ],
)
def test_a_run_of_chosen_tests_is_known(
    monkeypatch: pytest.MonkeyPatch, named: bool, options: dict[str, str], variable: str, expected: Run
) -> None:
    monkeypatch.setenv(WITHOUT, variable)
    source = pytest.Config.ArgsSource
    config: Any = SimpleNamespace(
        ArgsSource=source,
        args_source=source.ARGS if named else source.TESTPATHS,
        getoption=lambda name, default="": options.get(name, default if name == "markexpr" else None),
    )
    assert run_of(config) == expected
    assert {*options} <= {*SELECTING, "markexpr"}


def run(folder: Path, text: str, *arguments: str) -> tuple[int, list[str], Mapping[str, Any]]:
    """The exit code of a run of pytest over planted tests, what its checks print, and what it writes down of costs."""
    for name, content in (
        ("pytest.ini", "[pytest]\ntestpaths = tests\nmarkers = full: what `make test` leaves out\n unit: a folder\n"),
        ("conftest.py", 'pytest_plugins = ["tests.plugins.run_checks"]'),
        (FILE, text),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST") and name != WITHOUT}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "xdist", "-p", "no:cacheprovider", "--tb=no", *arguments],
        cwd=folder,
        env={**known, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    _, _, printed = done.stdout.partition(" checks of the run ")
    lines = list(takewhile(lambda line: line[:1] not in "=!", printed.splitlines()[1:]))
    return done.returncode, lines, json.loads((folder / "durations-test.json").read_text())


def test_a_run_in_two_processes_knows_what_came_of_each_test_and_what_it_cost(tmp_path: Path) -> None:
    write(tmp_path, ("good", "long", "both", "bad", "broken", "torn", "one_of_two", "skipped", "awaited", "half"))
    code, printed, costs = run(tmp_path, PLANTED, "-n2", "-m", "not full")
    not_allowed = "and `skips` in pyproject.toml does not allow it"
    assert code == FAILED
    assert sorted(printed) == sorted(
        [
            *(f"a.{test}: {FILE}::test_{test}: failed" for test in ("bad", "broken", "torn", "one_of_two")),
            *(f"a.{test}: {FILE}::test_{test}: skipped" for test in ("skipped", "awaited", "half")),
            f"{FILE}::test_skipped: was skipped (no GPU), {not_allowed}",
            f"{FILE}::test_awaited: was skipped (E   assert False), {not_allowed}",
            f"{FILE}::test_half[2]: was skipped (unconditional skip), {not_allowed}",
        ]
    )
    cost = costs["tests"][f"{FILE}::test_good"]
    assert 0.3 <= cost["processor"] <= costs["shelves"]["unit"]["processor"] <= costs["processor"]["machine"]
    assert cost["wall"] >= 0.3


def test_a_run_in_one_process_shows_its_rows(tmp_path: Path) -> None:
    write(tmp_path, ("good", "long", "both"))
    text = PLANTED.partition("def test_bad")[0]
    assert run(tmp_path, text, "-n0", "-m", "not full")[:2] == (
        OK,
        ["2 of the 3 rows of docs/features.toml are shown.", "`make test-all` alone shows all of: a.long"],
    )


@pytest.mark.parametrize(
    ("beside", "is_left_out"), [("", True), ("params=[pytest.param(1, marks=pytest.mark.full)]", False)]
)
def test_the_rest_does_not_import_a_file_without_the_mark(tmp_path: Path, beside: str, is_left_out: bool) -> None:
    (tmp_path / "test_a.py").write_text("def test(): ...")
    (tmp_path / "conftest.py").write_text(beside)
    collection = Collection()
    config: Any = SimpleNamespace(getoption={"markexpr": "full"}.get, rootpath=tmp_path)
    assert bool(collection.pytest_ignore_collect(tmp_path / "test_a.py", config)) == is_left_out
    outcome = Outcomes(deselected=collection.deselected).of_function("test_a.py::test")
    assert outcome == ("deselected" if is_left_out else "did not run")


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
