"""The processor time of each part of each test, measured in the process that runs it."""

import resource
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from tests.plugins.outcomes import functions, shelf
from tests.pulumi_python import server_time

TICKS = 100
"""Of /proc/stat in a second, on every Linux that TensorFlow is built for."""


class Measuring:
    """Adds `processor` to each report, in seconds."""

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
    """Marks tests by their folder, and tells the process that started this one which of them the marker expression leaves out."""

    def __init__(self) -> None:
        self.deselected: set[str] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: Sequence[pytest.Item]) -> None:
        """Each folder of `tests/` is a marker."""
        for item in items:
            if name := shelf(item.nodeid):
                item.add_marker(name)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """By any option."""
        self.deselected |= functions(items)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """In a process of several."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["deselected"] = sorted(self.deselected)


def own_time() -> float:
    """Processor seconds of this process, of its children that have ended and been waited for, and of Pulumi's programs."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used) + server_time()


def machine_time() -> float:
    """Processor seconds that all processes and containers of this machine have used; 0 where there is no /proc/stat."""
    try:
        fields = Path("/proc/stat").read_text().split(maxsplit=9)
    except OSError:
        return 0.0
    user, nice, system, _idle, _wait, irq, softirq = map(int, fields[1:8])
    return (user + nice + system + irq + softirq) / TICKS
