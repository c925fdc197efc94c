"""The measured cluster as observed from outside: its record, and its processes."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tfdeploy.agent.model.run_state import RunState
from tfdeploy.agent.record.output import Reader
from tfdeploy.agent.record.output_lines import PIPES
from tfdeploy.agent.record.record import Record
from tfdeploy.backends.local.supervisor import marked
from tfdeploy.report.events import result_text

from .processes import BenchError, last_lines, until

_BOTH = ("stdout", "stderr")


@dataclass(frozen=True)
class Cluster:
    """The job of a cluster on this machine, which must not fail."""

    home: Path

    def check(self) -> None:
        """Raise BenchError when it has failed."""
        job = Record(self.home / "record").current()
        if job is not None:
            refuse_failed(job, self.tail())

    def tail(self) -> str:
        """The last lines of each task."""
        job = Record(self.home / "record").current()
        if job is None:
            return "no job has begun"
        return "\n".join(
            f"{name} printed at last:\n{last_lines(output(self.home, name, *_BOTH).decode(errors='replace'))}"
            for name in job.tasks
        )


def refuse_failed(run: RunState, printed: str) -> None:
    """Raise BenchError, with what the tasks `printed`, when a job has failed."""
    if run.result is not None and run.result.state == "failed":
        raise BenchError(f"the run failed: {result_text(run.result)}\n{printed}")


def output(home: Path, hostname: str, *names: str) -> bytes:
    """All that a task of the present run printed, on stdout unless streams are named; empty as long as there is none."""
    record = Record(home / "record")
    job = record.current()
    if job is None:
        return b""
    log = record.log(job.spec.id, hostname)
    pipes = [pipe for pipe, name in PIPES.items() if name in (names or ("stdout",))]
    return b"".join(map(log.printed, pipes))


def reader(home: Path, hostname: str) -> Reader:
    """Reads the lines of a task of the present run as they arrive in the record."""
    record = Record(home / "record")
    return Reader(record.log(until(record.current, "a run in the record").spec.id, hostname))


def controller(home: Path) -> psutil.Process:
    """The process of the cluster's controller."""
    return next(process for process in marked(home) if "controller" in process.cmdline())


def task_processes(home: Path) -> list[psutil.Process]:
    """The launchers and all that they started."""
    processes = []
    for process in marked(home):
        with suppress(psutil.Error):
            if "launch" in process.cmdline():
                processes += [process, *process.children(recursive=True)]
    return processes


def alive(process: psutil.Process) -> bool:
    """Whether it runs; one that has ended and was not yet asked for its exit code does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def busy_seconds(processes: list[psutil.Process]) -> float:
    """The processor time that they have used."""
    return float(sum(times.user + times.system for times in (process.cpu_times() for process in processes)))
