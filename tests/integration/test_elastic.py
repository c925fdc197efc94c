"""docs/how-to/elastic.md: its program, paced, trains while `pulumi up` changes the number of workers, and while workers are killed."""

import re
from contextlib import suppress
from functools import partial

import psutil

from tests.elastic_program import paced_program
from tests.integration.conftest import Project
from tests.waiting import until

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


def test_the_number_of_workers_changes_while_the_training_goes_on(project: Project) -> None:
    project.write(ARGUMENTS, paced_program())
    processes: dict[str, psutil.Process] = {}
    for workers in (2, 4, 1, 3):
        set_workers(project, workers)
        if workers == 4:
            preview = project.call("preview", "--stack", project.stack)
            assert "+ worker-2, worker-3  workers 2 -> 4  (no restart: the other tasks continue)" in preview.output
        project.up()
        names = [f"worker-{index}" for index in range(workers)]
        until_trains(project, *names)
        rows = {row["hostname"]: row["status"] for row in project.shown()["tasks"]}
        assert rows == {"ps-0": "running", **dict.fromkeys(names, "running")}
        processes = processes or {name: project.child(name) for name in ("ps-0", "worker-0")}
        assert {name: project.child(name) for name in processes} == processes, "one of them was restarted"
    for name in ("worker-1", "worker-0"):
        kill(project, name)
        until_trains(project, name)
    until_trains(project, "worker-2")
    for name in names:
        done = steps(project, name)
        assert done == sorted(set(done)), f"the step of {name} went back"
    assert project.child("ps-0") == processes["ps-0"]
    project.destroy()
