"""Checks of a whole run. A run of `make test` or of `make test-rest` fails, whatever the results of its tests, when

- a row of docs/features.toml has a test that has not passed, and that no other command runs,
- a test was skipped that is not on the list of skips,
- fewer tests of a folder have passed than the number in pyproject.toml,
- a folder's tests cost more than twice its budget of processor time.

The list, the numbers and the budgets are in `pyproject.toml`, under `tool.tfdeploy-tests`. A run of chosen tests is not checked.
"""

import json
import signal
import time
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.artefacts import artefacts
from tests.plugins.commands import Run, run_of
from tests.plugins.groups import Groups
from tests.plugins.measuring import Collection, Measuring, machine_time
from tests.plugins.outcomes import Outcomes, function
from tools.features import Features, features

TOO_MUCH = 2
"""Times its budget: what a folder's tests may cost at most."""

MACHINE = "machine"
"""The budget of all that this machine does during a run. It only warns: what other programs do is in it."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugins in each process of a run; the checks only in the process that collects all reports."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell script has started this run in the background: what tests start and interrupt would ignore that too.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for folder in config.getini("testpaths"):
        config.addinivalue_line("markers", f"{Path(folder).name}: the tests of {folder}")
    config.pluginmanager.register(Measuring())
    config.pluginmanager.register(Groups())
    collection = Collection()
    config.pluginmanager.register(collection)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(RunChecks(config.rootpath, run_of(config), collection))


def feature_complaints(table: Features, outcomes: Outcomes) -> Iterator[str]:
    """Rows of which a test should have passed and has not."""
    for row in table.rows:
        if not row.tests:
            yield f"{row.id}: has no test"
        for test in row.tests:
            outcome = outcomes.of_function(test)
            if outcome not in ("passed", "deselected"):
                yield f"{row.id}: {test}: {outcome}"


def shown_elsewhere(table: Features, outcomes: Outcomes) -> list[str]:
    """Rows of which this run has left out a test."""
    return [row.id for row in table.rows if any(outcomes.of_function(test) == "deselected" for test in row.tests)]


def skip_complaints(allowed: Mapping[str, str], outcomes: Outcomes) -> Iterator[str]:
    """Skipped tests that are not on the list."""
    for test, reason in outcomes.skips.items():
        if function(test) not in allowed:
            yield f"{test}: was skipped ({reason}), and `skips` in pyproject.toml does not allow it"


def count_complaints(least: Mapping[str, int], outcomes: Outcomes) -> Iterator[str]:
    """Folders in which fewer tests have passed than pyproject.toml requires."""
    counts = outcomes.counts()
    for shelf, number in least.items():
        if counts[shelf] < number:
            yield f"tests/{shelf}: {counts[shelf]} tests have passed, and `least` in pyproject.toml asks for {number}"


def budget_complaints(budget: Mapping[str, float], costs: Mapping[str, float], times: float) -> Iterator[str]:
    """What cost more than so many times its budget, in seconds of processor time."""
    for name, seconds in budget.items():
        if costs.get(name, 0) > times * seconds:
            yield f"{name}: {costs[name]:.0f} s of processor time, of a budget of {seconds:.0f} s"


class RunChecks:
    """Collects the outcomes of a run, writes down what it cost, and checks it."""

    def __init__(self, root: Path, run: Run, collection: Collection) -> None:
        self.root = root
        self.run = run
        self.collection = collection
        self.outcomes = Outcomes()
        self.complaints: list[str] = []
        self.unchecked = f"tests were left out ({', '.join(run.left_out_by)})" if run.left_out_by else ""
        self.settings = _settings(root)
        self._started, self._machine = time.monotonic(), machine_time()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A part of a test has ended."""
        self.outcomes.add(report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A process of the run has ended."""
        self.outcomes.deselected |= {*getattr(node, "workeroutput", {}).get("deselected", ())}

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Make the run fail, whatever the results of its tests."""
        self.outcomes.deselected |= self.collection.deselected
        if self.outcomes.costs:
            self._write()
        if self.run.name == "some":
            return
        if session.shouldfail or exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            self.unchecked = self.unchecked or "the run was broken off"
        if not self.unchecked:
            self.complaints = list(self._complaints())
        if self.complaints:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _complaints(self) -> Iterator[str]:
        yield from feature_complaints(features(self.root), self.outcomes)
        yield from skip_complaints(self.settings.get("skips", {}), self.outcomes)
        yield from count_complaints(self._setting("least"), self.outcomes)
        budget = {name: seconds for name, seconds in self._setting("budget").items() if name != MACHINE}
        yield from budget_complaints(budget, self._costs(), TOO_MUCH)

    def _setting(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.settings.get(name, {}).get(self.run.name, {})
        return found

    def _costs(self) -> dict[str, float]:
        """Processor seconds by folder; `machine` has all that this machine has done meanwhile, containers and daemons too."""
        shelves = {name: cost.processor for name, cost in self.outcomes.by_shelf().items()}
        return {**shelves, MACHINE: machine_time() - self._machine}

    def _write(self) -> None:
        """Write down what each test cost, and the sums."""
        found = {
            "wall": time.monotonic() - self._started,
            "processor": self._costs(),
            "shelves": {name: asdict(cost) for name, cost in self.outcomes.by_shelf().items()},
            "tests": {test: asdict(cost) for test, cost in self.outcomes.costs.items()},
        }
        (artefacts() / f"durations-{self.run.name}.json").write_text(json.dumps(found, indent=1))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the result of the checks."""
        if self.run.name == "some" and not self.unchecked:
            return
        self._cost_summary(terminalreporter)
        terminalreporter.section("checks of the run")
        if self.unchecked:
            terminalreporter.line(f"not checked: {self.unchecked}")
            return
        for complaint in self.complaints:
            terminalreporter.line(complaint, red=True)
        if not self.complaints:
            self._features_summary(terminalreporter)

    def _cost_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("processor time")
        wall = time.monotonic() - self._started
        for name, cost in self._costs().items():
            terminalreporter.line(f"{name:14}{cost:8.0f} s")
        terminalreporter.line(f"{'wall':14}{wall:8.0f} s (each test: {artefacts()}/durations-{self.run.name}.json)")
        for complaint in budget_complaints(self._setting("budget"), self._costs(), 1):
            terminalreporter.line(f"warning: {complaint}", yellow=True)

    def _features_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        table = features(self.root)
        elsewhere = shown_elsewhere(table, self.outcomes)
        shown = len(table.rows) - len(elsewhere)
        if not elsewhere:
            terminalreporter.line(f"each of the {shown} rows of docs/features.toml is shown")
        elif self.run.name == "test":
            terminalreporter.line(f"{shown} of the {len(table.rows)} rows of docs/features.toml are shown.")
            terminalreporter.line(f"`make test-all` alone shows all of: {', '.join(elsewhere)}")
        else:
            terminalreporter.line(
                f"together with `make test`, each of the {len(table.rows)} rows of docs/features.toml is shown"
            )


def _settings(root: Path) -> dict[str, Any]:
    file = root / "pyproject.toml"
    found: dict[str, Any] = tomllib.loads(file.read_text()) if file.exists() else {}
    settings: dict[str, Any] = found.get("tool", {}).get("tfdeploy-tests", {})
    return settings
