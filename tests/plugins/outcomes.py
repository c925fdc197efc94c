"""What came of each test of a run, and what it cost."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest


@dataclass
class Cost:
    """Seconds of a test, its fixtures included."""

    processor: float = 0.0
    """Of the test's process and of the children that it has waited for: not of containers and daemons."""

    wall: float = 0.0


@dataclass
class Outcomes:
    """The tests of a run, by their ids."""

    costs: dict[str, Cost] = field(default_factory=dict)
    passed: set[str] = field(default_factory=set)
    other: dict[str, str] = field(default_factory=dict)
    """`failed` or `skipped`, for a test of which any part was not passed."""

    skips: dict[str, str] = field(default_factory=dict)
    """Skipped tests, with the reason that each gave."""

    deselected: set[str] = field(default_factory=set)
    """Functions that the run's marker expression leaves out, and files with none but such."""

    def add(self, report: pytest.TestReport) -> None:
        """Take in the report of a test's setup, call or teardown."""
        cost = self.costs.setdefault(report.nodeid, Cost())
        cost.wall += report.duration
        cost.processor += getattr(report, "processor", 0.0)
        if report.skipped:
            self.skips[report.nodeid] = _reason(report)
        if not report.passed:
            self.other[report.nodeid] = report.outcome
        elif report.when == "call":
            self.passed.add(report.nodeid)

    def of_function(self, name: str) -> str:
        """`passed` where a function has passed with each of its parameters, else what came of it."""
        others = [outcome for test, outcome in self.other.items() if function(test) == name]
        if others:
            return others[0]
        if any(function(test) == name for test in self.passed):
            return "passed"
        return "deselected" if {name, name.partition("::")[0]} & self.deselected else "did not run"

    def by_shelf(self) -> dict[str, Cost]:
        """The sums of the costs by folder of `tests/`."""
        sums: dict[str, Cost] = {}
        for test, cost in self.costs.items():
            total = sums.setdefault(shelf(test), Cost())
            total.processor += cost.processor
            total.wall += cost.wall
        return sums

    def counts(self) -> Counter[str]:
        """How many tests have passed by folder of `tests/`."""
        return Counter(map(shelf, self.passed - {*self.other}))


def function(test: str) -> str:
    """A test's id without its parameters."""
    return test.partition("[")[0]


def shelf(test: str) -> str:
    """The folder of a test, below `tests/`: each is a marker too. Empty for a test in no such folder."""
    parts = test.partition("::")[0].split("/")
    return parts[1] if len(parts) > 2 else ""


def functions(items: Iterable[pytest.Item]) -> set[str]:
    """The functions of collected tests."""
    return {function(item.nodeid) for item in items}


def _reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return str(getattr(report, "wasxfail", "") or report.longrepr)
