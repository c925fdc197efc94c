"""The controller of 1,000 tasks: how soon all have started, its load when nothing changes any more, and how soon it can be observed.

The launchers are simulated: each reports over its own connection as a real one does, and starts nothing.
"""

import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil

from tests.components.many_launchers import RunningController, launchers_of, running_controller
from tfdeploy.agent.control.controller import LATER_TASKS, POLL_LATER

from .observed import busy_seconds
from .pairs import log
from .processes import BenchError, until
from .table import Row, limit

_TASKS = 1000
_STEADY_POLL = POLL_LATER * _TASKS / LATER_TASKS
"""Seconds between two reports of each launcher, once its program has run for long."""

_MEASURED = 10.0
_RUNS = 5
_VIEWS = 5


class _Measured(NamedTuple):
    started: float
    """Seconds until all tasks have started."""
    share: float
    """Of a core, in a steady state."""
    views: list[float]
    """Seconds of each view, in a steady state."""


def run() -> list[Row]:
    """All rows from the same runs, each with a new controller."""
    runs = [_run() for _ in range(_RUNS)]
    steady = f"the controller of {_TASKS} tasks in a steady state: "
    return [
        limit(
            f"{_TASKS} tasks with simulated launchers until all have started", [run.started for run in runs], 15, " s"
        ),
        limit(f"{steady}share of a core", [run.share for run in runs], 0.3, ""),
        limit(f"{steady}one observation", [seconds for run in runs for seconds in run.views], 1, " s"),
    ]


def _run() -> _Measured:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        began = time.perf_counter()
        with running_controller(Path(folder), _TASKS) as controller, launchers_of(controller) as groups:
            until(lambda: all(launcher.running for group in groups for launcher in group.launchers), "all tasks")
            started = time.perf_counter() - began
            log(f"{_TASKS} tasks started after {started:.1f} s")
            until(lambda: all(poll >= _STEADY_POLL for group in groups for poll in group.polls), "a steady state")
            share = _share(controller.process)
            views = _views(controller)
    if errors := [error for group in groups for error in group.errors]:
        raise BenchError(f"{len(errors)} reports failed, the first one: {errors[0]}")
    return _Measured(started, share, views)


def _views(controller: RunningController) -> list[float]:
    seconds = []
    with controller.client() as client:
        for _ in range(_VIEWS):
            begun = time.perf_counter()
            view = client.json("POST", "/view", {})
            seconds.append(time.perf_counter() - begun)
            if len(view["run_state"]["tasks"]) != _TASKS:
                raise BenchError("the view lacks tasks")
    return seconds


def _share(process: psutil.Process) -> float:
    """The controller's processor time over ten seconds."""
    begun, before = time.monotonic(), busy_seconds([process])
    time.sleep(_MEASURED)
    return (busy_seconds([process]) - before) / (time.monotonic() - begun)
