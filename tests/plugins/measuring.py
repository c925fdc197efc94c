"""What a process of a run collects, and the processor time of each part of each test, measured in the process that runs it."""

import resource
from collections.abc import Generator, Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.plugins.outcomes import functions, shelf
from tests.pulumi_python import server_time

FULL = "full"
"""The marker of tests that `make test` leaves out."""

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

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        """For the tests with the marker `full`, most files need not be imported, which takes five seconds in each process."""
        is_other = (
            config.getoption("markexpr") == FULL and collection_path.is_file() and not _may_be_full(collection_path)
        )
        if is_other and collection_path.is_relative_to(config.rootpath):
            self.deselected.add(str(collection_path.relative_to(config.rootpath)))
        return is_other or None

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

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """By any option."""
        self.deselected |= functions(items)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """In a process of several."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["deselected"] = sorted(self.deselected)


@cache
def _may_be_full(file: Path) -> bool:
    """Whether the marker stands in a file, or with the fixtures of its folder."""
    beside = file.with_name("conftest.py")
    return any(f"mark.{FULL}" in each.read_text() for each in (file, beside) if each.exists())


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
