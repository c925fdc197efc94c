"""From the end of a job until everything has stopped, and from a printed line until it is in the record."""

import time
from pathlib import Path

from . import mnist
from .engine import CLUSTER, UP, Project, project, workplace
from .observed import Cluster, alive, output, reader, task_processes
from .pairs import log
from .processes import until
from .table import Row, limit

_TRAININGS = 3
_STEPS = 500
_LINES = 200
_SECONDS = 180.0
_HOSTNAMES = [f"worker-{index}" for index in range(mnist.WORKERS)]


def run() -> list[Row]:
    """Both limits."""
    return [
        limit("a run's end to everything stopped, 1 ps + 2 workers (worst of the runs)", _endings(), 2, " s"),
        limit("a printed line to the record (worst of the lines)", _latencies(), 0.25, " s"),
    ]


def _endings() -> list[float]:
    """Short trainings, each to its end, each in its own cluster."""
    command = ["python", *mnist.command(_STEPS)]
    config = {"tfdeploy:ps": 1, "tfdeploy:workers": mnist.WORKERS, "tfdeploy:command": command}
    seconds: list[float] = []
    for number in range(1, _TRAININGS + 1):
        with workplace() as place, project(place, CLUSTER, "ends", config) as made:
            mnist.lay_out(made.code)
            seconds.append(_ending(made))
        log(f"end of a run {number}/{_TRAININGS}: {seconds[-1]:.3f} s")
    return seconds


def _ending(made: Project) -> float:
    """Seconds from the last word of the last worker until no launcher, and nothing that one started, is left."""
    call = made.start(*UP)
    until(lambda: mnist.steps(_last_output(made.home)), "a first training step", Cluster(made.home), call)
    processes = task_processes(made.home)
    until(lambda: not any(map(alive, processes)), "the end of all tasks", call)
    stopped = time.monotonic()
    call.finish(_SECONDS)
    return stopped - mnist.over(_last_output(made.home))


def _last_output(home: Path) -> list[str]:
    return [output(home, hostname).decode() for hostname in _HOSTNAMES]


def _latencies() -> list[float]:
    """For each line with the time when it was printed, the seconds until the record had it."""
    config = {
        "tfdeploy:workers": 1,
        "tfdeploy:command": ["python", "clock.py"],
        "tfdeploy:wait": "0",
    }
    latencies: list[float] = []
    with workplace() as place, project(place, CLUSTER, "lines", config) as made:
        made.ship("clock.py")
        made.pulumi(*UP)
        lines = reader(made.home, "worker-0")

        def take() -> bool:
            latencies.extend(time.monotonic() - float(line.content) for line in lines.more())
            return len(latencies) >= _LINES

        until(take, "all lines", Cluster(made.home))
    log(f"line to record: {max(latencies):.3f} s at worst")
    return latencies[:_LINES]
