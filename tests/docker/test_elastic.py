"""Workers of an elastic cluster come and go on the machines' network, and the others continue. The contract has the overlay network."""

import re
from functools import partial

import pytest

from tests.docker.project import GATED, DockerProject
from tests.elastic_program import paced_program
from tests.tensorflow_env import ONE_THREAD
from tests.waiting import until

JOB = (
    "command=['python', 'train.py'], code='code', ps=1, workers={workers}, elastic={{'max': 4}}, wait='0', "
    "env={{'COUNTER': __import__('os').environ['COUNTER']}}, container={{'network': 'host'}}"
)


def told(project: DockerProject, hostname: str) -> str:
    """The addresses of workers with which a task's program was started last."""
    lines = [line.text for line in project.look(10_000).view.logs[hostname] if "begins" in line.text]
    return lines[-1].rpartition("--worker_hosts=")[2] if lines else ""


@pytest.mark.full
def test_workers_are_added_and_removed_on_the_machines_network(project: DockerProject) -> None:
    for workers in (2, 4, 1, 3):
        project.write(JOB.format(workers=workers), GATED)
        project.up()
        names = [f"worker-{index}" for index in range(workers)]
        project.until_running("ps-0", *names)
    until(lambda: project.counts() == {"ps-0": 1, "worker-0": 1, "worker-1": 2, "worker-2": 2, "worker-3": 1}, "starts")
    hosts = until(lambda: told(project, "worker-2"), "the start of worker-2")
    assert hosts == told(project, "worker-0")
    assert len(set(hosts.split(","))) == 4
    assert len({host.rpartition(":")[0] for host in hosts.split(",")}) == 1
    project.open()
    project.up(env={"TFDEPLOY_WAIT": "10m"})
    assert project.outputs()["state"] == "succeeded"
    project.destroy()


def steps(project: DockerProject, hostname: str) -> list[int]:
    """The global steps that a worker has printed."""
    lines = project.look(100_000).view.logs.get(hostname, [])
    return [int(match[1]) for line in lines if (match := re.fullmatch(r"step (\d+)", line.text))]


def has_more(project: DockerProject, hostname: str, lines: int) -> bool:
    """Whether a worker has printed more than so many steps."""
    return len(steps(project, hostname)) > lines


@pytest.mark.full
def test_tensorflow_finds_workers_with_names_that_did_not_exist_before(
    project: DockerProject, tensorflow_volume: str
) -> None:
    for workers in (1, 3, 1, 2):
        project.write(
            f"command=['python', 'train.py'], code='code', ps=1, workers={workers}, elastic={{'max': 3}}, wait='0', "
            f"env={ {**ONE_THREAD, 'STEPS': '1000000000'} }, container={{'volumes': [{tensorflow_volume!r}]}}",
            paced_program(),
        )
        project.up()
        names = [f"worker-{index}" for index in range(workers)]
        for name in names:
            until(partial(has_more, project, name, len(steps(project, name))), f"a further step of {name}")
    for name in names:
        done = steps(project, name)
        assert done == sorted(set(done)), f"the step of {name} is lower than before"
    assert [project.job().tasks[name].attempt for name in ("ps-0", "worker-0")] == [1, 1]
    project.destroy()
