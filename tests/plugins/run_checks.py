"""Checks of a whole run: `make test` and `make test-rest` fail when a test was skipped that is not on the list in `pyproject.toml`,
under `tool.tfdeploy-tests`. A run of chosen tests is not checked. At the end of each run of all tests
stands the processor time of each folder.
"""

import os
import resource
import signal
import tomllib
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.engine.fixtures import WITHOUT
from tests.plugins.groups import Groups
from tests.pulumi_python import server_time

FULL = "full"
"""The marker of tests that `make test` leaves out."""

COMMANDS = ("not full", "full")
"""The marker expressions of runs of all test paths."""

SELECTING = ("keyword", "deselect", "ignore", "ignore_glob", "lf", "stepwise", "collectonly")
"""Options by which pytest leaves tests out, under the names that it keeps them by."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugins in each process of a run; the checks only in the process that collects all reports."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell script has started this run in the background: what tests start and interrupt would ignore that too.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for folder in config.getini("testpaths"):
        config.addinivalue_line("markers", f"{Path(folder).name}: the tests of {folder}")
    for plugin in (Measuring(), Groups(), Collection()):
        config.pluginmanager.register(plugin)
    if has_all_tests(config) and not hasattr(config, "workerinput"):
        settings = tomllib.loads((config.rootpath / "pyproject.toml").read_text())["tool"]["tfdeploy-tests"]
        config.pluginmanager.register(RunChecks(settings["skips"]))


def has_all_tests(config: pytest.Config) -> bool:
    """Whether this is the run of `make test` or `make test-rest`, not one of chosen tests."""
    is_chosen = any(config.getoption(name, None) for name in SELECTING) or bool(os.environ.get(WITHOUT))
    return (
        not is_chosen
        and config.args_source is pytest.Config.ArgsSource.TESTPATHS
        and config.getoption("markexpr", "") in COMMANDS
    )


class Measuring:
    """Adds `processor` to each report: the seconds in the process that runs the test, and in the children that it has waited for."""

    def __init__(self) -> None:
        self._last = own_time()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """A test begins."""
        self._last = own_time()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """One part of it has ended."""
        report = yield
        now = own_time()
        report.processor = now - self._last  # type: ignore[attr-defined]
        self._last = now
        return report


class Collection:
    """Marks tests by their folder."""

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        """For the tests with the marker `full`, most files need not be imported, which takes five seconds in each process."""
        is_full = config.getoption("markexpr") == FULL and collection_path.is_file()
        return (is_full and not _may_be_full(collection_path)) or None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: Sequence[pytest.Item]) -> None:
        """Each folder of `tests/` is a marker."""
        for item in items:
            if name := shelf(item.nodeid):
                item.add_marker(name)
            if item.get_closest_marker(FULL) and not _may_be_full(item.path):
                raise pytest.UsageError(
                    f"{item.nodeid}: `mark.{FULL}` stands neither in its file nor in conftest.py beside it"
                )


@cache
def _may_be_full(file: Path) -> bool:
    """Whether the marker stands in a file, or with the fixtures of its folder."""
    beside = file.with_name("conftest.py")
    return any(f"mark.{FULL}" in each.read_text() for each in (file, beside) if each.exists())


def own_time() -> float:
    """Processor seconds of this process, of its children that have ended and been waited for, and of Pulumi's programs."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used) + server_time()


def shelf(test: str) -> str:
    """The folder of a test, below `tests/`: each is a marker too. Empty for a test in no such folder."""
    parts = test.partition("::")[0].split("/")
    return parts[1] if len(parts) > 2 else ""


class RunChecks:
    """Collects the outcomes of a run, and checks them."""

    def __init__(self, allowed: Mapping[str, str]) -> None:
        self._allowed = allowed
        self._skips: dict[str, str] = {}
        self._processor: Counter[str] = Counter()
        self._complaints: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A part of a test has ended."""
        self._processor[shelf(report.nodeid)] += getattr(report, "processor", 0.0)  # type: ignore[assignment]
        if report.skipped:
            self._skips[report.nodeid] = str(report.longrepr)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Make the run fail, whatever the results of its tests."""
        self._complaints = [*self.complaints()]
        if self._complaints and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def complaints(self) -> Iterator[str]:
        """Skipped tests that are not on the list."""
        for test, reason in self._skips.items():
            if test.partition("[")[0] not in self._allowed:
                yield f"{test}: was skipped ({reason}), and `skips` in pyproject.toml does not allow it"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the processor time by folder, and the result of the checks."""
        terminalreporter.section("processor time")
        for name, seconds in sorted(self._processor.items()):
            terminalreporter.line(f"{name:14}{seconds:8.0f} s")
        terminalreporter.section("checks of the run")
        for complaint in self._complaints:
            terminalreporter.line(complaint, red=True)
