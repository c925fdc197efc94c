"""Clusters of one user on one machine at the same time: two stacks of one program, and another program."""

import copy
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.conftest import Project
from tests.programs.program import Program
from tests.waiting import until
from tfdeploy.agent.model.run_state import TaskState
from tfdeploy.agent.record.record import Record

ENDLESS = "100000000"


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[tuple[Program, Program, Project]]:
    """Two stacks of the program for Marathon, which train until they are deleted, and a program without TensorFlow."""
    first = Program(tmp_path / "user", "marathon_mnist")
    second = copy.copy(first)
    second.stack = "second"
    second.init()
    for program in (first, second):
        program.set("train_steps", ENDLESS)
        program.configure(ps=1, workers=1, wait="0")
    other = Project(tmp_path / "other", "other")
    other.write('command=["python", "train.py"], code="code", workers=2', "print('done')")
    other.folder, other.env = first.folder, first.env
    other.init()
    yield first, second, other
    first.clean()


def last_step(program: Project) -> int:
    """The last step that the chief told of."""
    told = re.findall(r"^step (\d+) loss", program.log("worker-0", "mnist"), re.MULTILINE)
    return int(told[-1]) if told else 0


def recorded(program: Project) -> list[TaskState]:
    """The tasks of its cluster as they are now."""
    job = Record(program.places("mnist").record).current()
    assert job is not None
    return [*job.tasks.values()]


def end(program: Project) -> None:
    """`pulumi destroy`, while others go on."""
    done = program.call("destroy", "--yes", "--skip-preview", "--stack", program.stack)
    assert done.exit_code == 0, done.output


@pytest.mark.full
def test_three_clusters_run_at_once_and_the_end_of_one_is_nothing_to_the_others(
    clusters: tuple[Program, Program, Project],
) -> None:
    first, second, other = clusters
    calls = [program.start("up", "--yes", "--skip-preview", "--stack", program.stack) for program in clusters]
    for call in calls:
        output, _ = call.communicate()
        assert call.returncode == 0, output
    for program in (first, second):
        until(lambda program=program: last_step(program) > 0, f"{program.stack} trains")  # type: ignore[misc]
    assert other.outputs()["state"] == "succeeded"
    tasks = [task for program in (first, second) for task in recorded(program)]
    assert [task.state for task in tasks] == ["running"] * 4
    assert len({task.address for task in tasks}) == 4

    end(first)
    seen = last_step(second)
    until(lambda: last_step(second) > seen, "the second goes on")
    started = re.findall("^variable global_step on /job:ps/", second.log("worker-0", "mnist"), re.MULTILINE)
    assert len(started) == 1, "it has never started again"
    end(second)
    other.destroy()
