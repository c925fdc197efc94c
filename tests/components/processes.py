"""Processes, as the kernel sees them."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

from tfdeploy.agent.launch.process import start_time


def alive(pid: int) -> bool:
    """Whether there is such a process; one that only waits to be reaped is none."""
    return bool(start_time(pid))


@contextmanager
def halted(pid: int) -> Iterator[None]:
    """A process that exists, but does nothing."""
    process = psutil.Process(pid)  # refuses 0, and another process of this number
    process.suspend()
    try:
        yield
    finally:
        with suppress(psutil.NoSuchProcess):
            process.resume()
