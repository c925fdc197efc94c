"""What the tasks of a cluster on this computer use."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

import psutil

from ..base import CONTROLLER, TaskUsage
from .supervisor import Supervisor

_INTERVAL_SECONDS = 0.5
"""The processors' use is measured over this time."""


def task_usage(supervisor: Supervisor) -> Mapping[str, TaskUsage]:
    """The use of each task with a process. A task is its launcher with all processes that descend from it.

    Raises:
        Unreachable: the supervisord does not respond.
    """
    pids = {name: info["pid"] for name, info in supervisor.programs().items() if info["pid"] and name != CONTROLLER}
    before, begun = {name: _cpu_seconds(_family(pid)) for name, pid in pids.items()}, time.monotonic()
    time.sleep(_INTERVAL_SECONDS)
    families = {name: _family(pid) for name, pid in pids.items()}
    seconds = time.monotonic() - begun
    return {
        name: TaskUsage(max(0.0, _cpu_seconds(family) - before[name]) / seconds, sum(map(_memory, family)))
        for name, family in families.items()
        if family
    }


def _family(pid: int) -> Sequence[psutil.Process]:
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def _cpu_seconds(processes: Sequence[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        with suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def _memory(process: psutil.Process) -> int:
    """The proportional set size, in which a shared page counts once; the resident size where it cannot be read."""
    with suppress(psutil.Error):
        info = process.memory_full_info()
        return int(getattr(info, "pss", info.rss))
    return 0
