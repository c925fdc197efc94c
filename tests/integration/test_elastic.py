"""docs/how-to/elastic.md: its program, paced, trains while `pulumi up` changes the number of workers, and while workers are killed."""

import re
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import psutil

from tests.elastic_program import paced_program
from tests.integration.conftest import Project
from tests.waiting import until
from tfdeploy.agent.record.record import Record

ARGUMENTS = (
    "command=['python', 'train.py'], code='code', ps=1, elastic={'max': 4}, wait='0', env={'STEPS': '1000000000'}"
)


def steps(project: Project, hostname: str) -> list[int]:
    """The global steps that a worker has printed."""
    return [int(step) for step in re.findall(r"^step (\d+)$", project.log(hostname), re.MULTILINE)]


def has_more(project: Project, hostname: str, lines: int) -> bool:
    """Whether a worker has printed more than so many steps."""
    return len(steps(project, hostname)) > lines


def until_trains(project: Project, *hostnames: str) -> None:
    """Wait until each of these workers has printed a further step."""
    known = {name: len(steps(project, name)) for name in hostnames}
    for name in hostnames:
        until(partial(has_more, project, name, known[name]), f"a further step of {name}", seen=project.shown)


def kill(project: Project, hostname: str) -> None:
    """Kill a worker's program, and wait until another process is in its place."""
    killed = project.child(hostname)
    killed.kill()

    def restarted() -> bool:
        with suppress(IndexError, psutil.NoSuchProcess):  # while there is none
            return project.child(hostname) != killed
        return False

    until(restarted, f"another process of {hostname}", seen=project.shown)


def set_workers(project: Project, workers: int) -> None:
    """`pulumi config set tfdeploy:workers N`."""
    call = project.call("config", "set", "tfdeploy:workers", str(workers), "--stack", project.stack)
    assert call.exit_code == 0, call.output


MEASURED_LINES = 10
"""A phase is measured until worker-0 has printed so many further lines."""


@dataclass
class Throughput:
    """The global steps per second between two moments of a training, by the times of what worker-0 has printed."""

    project: Project
    begin: float = 0.0
    """When all workers trained for the first time."""
    ends: list[tuple[str, float]] = field(default_factory=list)

    def end(self, phase: str) -> None:
        """A phase ends now, and the next one begins."""
        self.ends.append((phase, time.time()))

    def measure(self, phase: str) -> None:
        """A phase in which nothing changes: it ends when there are enough lines."""
        lines = len(steps(self.project, "worker-0")) + MEASURED_LINES
        until(partial(has_more, self.project, "worker-0", lines), "further steps of worker-0", seen=self.project.shown)
        self.end(phase)

    def _log(self) -> list[tuple[float, int]]:
        """When worker-0 printed which step."""
        record = Record(self.project.places().record)
        run = record.current()
        assert run is not None
        lines = record.log(run.spec.id, "worker-0").tail(1_000_000)
        found = ((line.at, re.fullmatch(r"step (\d+)", line.text)) for line in lines)
        return [(at, int(match[1])) for at, match in found if match]

    def table(self) -> tuple[str, list[float]]:
        """A line for each phase; the steps per second of each."""
        log, begin, rates = self._log(), self.begin, []
        rows = [f"{'phase':<28}{'seconds':>9}{'from step':>11}{'to step':>11}{'steps/s':>9}"]
        for phase, end in self.ends:
            first, low = [item for item in log if item[0] <= begin][-1]
            last, high = [item for item in log if item[0] <= end][-1]
            rates.append((high - low) / (last - first) if last > first else 0.0)
            rows.append(f"{phase:<28}{last - first:>9.1f}{low:>11,}{high:>11,}{rates[-1]:>9.0f}")
            begin = end
        return "\n".join(rows), rates


def test_the_number_of_workers_changes_while_the_training_goes_on(project: Project) -> None:
    project.write(ARGUMENTS, paced_program())
    processes: dict[str, psutil.Process] = {}
    throughput, before = Throughput(project), 0
    for workers in (2, 4, 1, 3):
        set_workers(project, workers)
        if workers == 4:
            preview = project.call("preview", "--stack", project.stack)
            assert "+ worker-2, worker-3  workers 2 -> 4  (no restart: the other tasks continue)" in preview.output
        project.up()
        names = [f"worker-{index}" for index in range(workers)]
        until_trains(project, *names)
        if before:
            throughput.end(f"{before} -> {workers} workers (pulumi up)")
        throughput.begin, before = throughput.begin or time.time(), workers
        throughput.measure(f"{workers} workers")
        rows = {row["hostname"]: row["status"] for row in project.shown()["tasks"]}
        assert rows == {"ps-0": "running", **dict.fromkeys(names, "running")}
        processes = processes or {name: project.child(name) for name in ("ps-0", "worker-0")}
        assert {name: project.child(name) for name in processes} == processes, "one of them was restarted"
    for name in ("worker-1", "worker-0"):
        kill(project, name)
        until_trains(project, name)
        throughput.end(f"{name} is killed")
        throughput.measure(f"{workers} workers")
    until_trains(project, "worker-2")
    table, rates = throughput.table()
    print(f"\n{table}")
    assert min(rates) > 0
    for name in names:
        done = steps(project, name)
        assert done == sorted(set(done)), f"the step of {name} went back"
    assert project.child("ps-0") == processes["ps-0"]
    project.destroy()
