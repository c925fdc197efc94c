"""Processes, as the kernel sees them."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tfdeploy.agent.launch.process import start_time


def alive(pid: int) -> bool:
    """Whether there is such a process; one that only waits to be reaped is none."""
    return bool(start_time(pid))


@contextmanager
def halted(pid: int) -> Iterator[None]:
    """A process that exists, but does nothing."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
