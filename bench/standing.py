"""What the measured cluster shows of itself from outside: its record, and its processes."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import psutil

from tfdeploy.agent.lines import Reader
from tfdeploy.agent.record import Record
from tfdeploy.backends.local.supervisor import marked

from .engine import BenchError

T = TypeVar("T")

_NO_TASKS = ("supervisor.supervisord", "keep")


def output(home: Path, hostname: str) -> bytes:
    """All that a task of the present run printed on stdout, from the record; empty as long as there is none."""
    record = Record(home / "record")
    job = record.current()
    if job is None:
        return b""
    stream = record.log(job.run["id"], hostname).streams["stdout"]
    return stream.span(stream.start, stream.end)


def reader(home: Path, hostname: str) -> Reader:
    """Reads the lines of a task of the present run as they come into the record."""
    record = Record(home / "record")
    return Reader(record.log(until(record.current, "a run in the record").run["id"], hostname))


def keeper(home: Path) -> psutil.Process:
    """The process of the cluster's keeper."""
    return next(process for process in marked(home) if "keep" in process.cmdline())


def task_processes(home: Path) -> list[psutil.Process]:
    """The launchers and all that they started: every process of the cluster but supervisord and keeper."""
    found = []
    for process in marked(home):
        with suppress(psutil.Error):
            if not set(_NO_TASKS) & set(process.cmdline()):
                found.append(process)
    return found


def alive(process: psutil.Process) -> bool:
    """Whether it runs; one that has ended and was not yet asked for its exit code does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def until(condition: Callable[[], T | None], what: str, seconds: float = 180.0) -> T:
    """The first true value of `condition`.

    Raises:
        BenchError: there was none within `seconds`.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.01)
    raise BenchError(f"{what}: not within {seconds:g} s")
