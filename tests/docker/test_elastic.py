"""TensorFlow trains on with workers that come and go. The contract has the tasks that are not touched."""

import re
from functools import partial

import pytest

from tests.docker.project import DockerProject
from tests.elastic_program import paced_program
from tests.tensorflow_env import ONE_THREAD
from tests.waiting import until


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
