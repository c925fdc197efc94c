"""The controller of 300 tasks: how soon all have started, and its load when nothing changes any more.

The launchers are simulated: each reports over its own connection as a real one does, and starts nothing.
"""

import tempfile
import time
from pathlib import Path

import psutil

from tests.components.many_launchers import Launchers, launchers_of, running_controller

from .pairs import log
from .processes import BenchError, until
from .table import Row, limit

_TASKS = 300
_STEADY_POLL = 2.0
"""Seconds between two reports of each launcher, once its program has run for long."""

_MEASURED = 10.0
_RUNS = 3


def run() -> list[Row]:
    """Three runs, each with a new controller."""
    runs = [_run() for _ in range(_RUNS)]
    return [
        limit(f"{_TASKS} tasks with simulated launchers until all have started", [run[0] for run in runs], 30, " s"),
        limit(
            f"the controller of {_TASKS} tasks in a steady state: share of a core", [run[1] for run in runs], 0.2, ""
        ),
    ]


def _run() -> tuple[float, float]:
    """Seconds until all tasks have started, and the controller's share of a core in a steady state."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        began = time.perf_counter()
        with running_controller(Path(folder), _TASKS) as controller, launchers_of(controller) as groups:
            until(lambda: all(launcher.running for group in groups for launcher in group.launchers), "all tasks")
            started = time.perf_counter() - began
            log(f"{_TASKS} tasks started after {started:.1f} s")
            until(lambda: all(poll >= _STEADY_POLL for group in groups for poll in group.polls), "a steady state")
            share = _share(controller.process, groups)
    if errors := [error for group in groups for error in group.errors]:
        raise BenchError(f"{len(errors)} reports failed, the first one: {errors[0]}")
    return started, share


def _share(process: psutil.Process, groups: list[Launchers]) -> float:
    """The controller's processor time over ten seconds."""
    begun, busy_before, syncs_before = time.monotonic(), _busy(process), _syncs(groups)
    time.sleep(_MEASURED)
    seconds, busy, syncs = time.monotonic() - begun, _busy(process) - busy_before, _syncs(groups) - syncs_before
    log(f"{busy / seconds:.3f} of a core, {syncs / seconds:.0f} reports a second")
    return busy / seconds


def _busy(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _syncs(groups: list[Launchers]) -> int:
    return sum(group.syncs for group in groups)
