"""A plugin of pytest's: a run of all tests fails when a row of the table of features has no test that ran and passed in it."""

import os
from collections.abc import Iterator, Sequence

import pytest

from tests.engine.fixtures import WITHOUT
from tools.features import Feature, features

LEAVE_OUT = ("keyword", "markexpr", "deselect", "ignore", "ignore_glob", "lf", "stepwise", "collectonly")
"""Options by which pytest leaves tests out, under the names that it keeps them by."""


def pytest_configure(config: pytest.Config) -> None:
    """A run of named tests is not looked at. The processes of a run have theirs named, so only the one that hears of all looks."""
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        left_out_by = [name for name in LEAVE_OUT if config.getoption(name, None)]
        left_out_by += [name for name in (WITHOUT,) if os.environ.get(name)]
        unchecked = f"tests were left out ({', '.join(left_out_by)})" if left_out_by else ""
        config.pluginmanager.register(Check(features(config.rootpath).rows, unchecked))


class Check:
    """Hears of every test's end, and judges when all is over."""

    def __init__(self, rows: Sequence[Feature], unchecked: str) -> None:
        self.rows = rows
        self.unchecked = unchecked
        """Why there is nothing to judge; empty when there is."""
        self.passed: set[str] = set()
        self.other: dict[str, str] = {}
        self.complaints: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test with parameters has passed when it has with each of them; one that was skipped has shown nothing."""
        test = report.nodeid.partition("[")[0]
        if not report.passed:
            self.other[test] = report.outcome
        elif report.when == "call":
            self.passed.add(test)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """The run fails, whatever else is so."""
        if session.shouldfail or exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            self.unchecked = self.unchecked or "the run was broken off"
        if not self.unchecked:
            self.complaints = [complaint for row in self.rows for complaint in self._complaints(row)]
        if self.complaints:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _complaints(self, row: Feature) -> Iterator[str]:
        if not row.tests:
            yield f"{row.id}: has no test"
        for test in row.tests:
            how = self.other.get(test, "passed" if test in self.passed else "did not run")
            if how != "passed":
                yield f"{row.id}: {test}: {how}"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """What is to be said of it, in one place."""
        terminalreporter.section("features")
        if self.unchecked:
            terminalreporter.line(f"not checked: {self.unchecked}")
        elif self.complaints:
            for complaint in self.complaints:
                terminalreporter.line(complaint, red=True)
        else:
            terminalreporter.line(f"each of the {len(self.rows)} rows of docs/features.toml is shown")
