"""The main job as the README has it: MNIST on one ps and two workers, by a real `pulumi up`, with real TensorFlow."""

import json
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.conftest import ROOT, Call, Project
from tests.waiting import until


def mnist_project(folder: Path, *flags: str) -> Project:
    """The repository's own program, in a copy, with a state of its own; its tasks have these flags besides."""
    project = Project(folder, "mnist")
    shutil.copy(ROOT / "Pulumi.yaml", project.program)
    shutil.copytree(ROOT / "programs/mnist", project.program / "programs/mnist")
    program = project.program / "programs/mnist/__main__.py"
    program.write_text(
        program.read_text().replace('"train.py"]', f"{', '.join(map(json.dumps, ('train.py', *flags)))}]")
    )
    project.init()
    return project


def last_step(project: Project) -> int:
    """The last step that worker-0 told of."""
    told = re.findall(r"^step (\d+) ", project.log("worker-0", "mnist"), re.MULTILINE)
    return int(told[-1]) if told else 0


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Project, Call]]:
    """One training, looked at by several tests."""
    project = mnist_project(tmp_path_factory.mktemp("trained") / "mnist")
    yield project, project.up()
    project.clean()


def test_the_accuracy_is_a_stack_output(trained: tuple[Project, Call]) -> None:
    project, _ = trained
    outputs = project.outputs()
    assert outputs["accuracy"] > 0.9
    assert outputs["state"] == "succeeded"
    assert project.statuses() == {"ps-0": "stopped (job finished)", "worker-0": "succeeded", "worker-1": "succeeded"}
    assert f"MNIST accuracy: {outputs['accuracy']:.4f}" in outputs["logs"]["worker-0"]
    assert re.search(
        r"^CONTAINER +MACHINE +COMMAND +HOSTNAME +STATUS +CREATED +PUBLIC IP$", outputs["status"], re.MULTILINE
    )


def test_the_variables_live_on_the_ps_and_both_workers_train(trained: tuple[Project, Call]) -> None:
    project, _ = trained
    devices = re.findall(r"variable (\S+) on (\S+)", project.log("worker-0", "mnist"))
    assert devices
    assert {device.partition("/task")[0] for _, device in devices} == {"/job:ps"}
    steps = [re.search(rf"{name} did (\d+) steps", project.log(name, "mnist")) for name in ("worker-0", "worker-1")]
    assert [found is not None and int(found.group(1)) > 50 for found in steps] == [True, True]


def test_a_second_up_has_no_resource_step_and_starts_nothing(trained: tuple[Project, Call]) -> None:
    project, _ = trained
    before = project.outputs()["tasks"]
    assert project.up().steps() == {"unchanged": 7}
    assert project.up("--refresh").steps() == {"unchanged": 7}
    assert project.outputs()["tasks"] == before


def test_pulumi_works_in_the_programs_folder_with_the_same_stack(trained: tuple[Project, Call]) -> None:
    project, _ = trained
    at_root = project.outputs()["accuracy"]
    root, project.program = project.program, project.program / "programs/mnist"
    try:
        assert project.outputs()["accuracy"] == at_root
        assert project.up().steps() == {"unchanged": 7}
    finally:
        project.program = root


def test_with_shuffled_labels_it_learns_nothing_and_the_new_run_trains_from_the_start(
    trained: tuple[Project, Call],
) -> None:
    project, _ = trained
    program = project.program / "programs/mnist/__main__.py"
    text = program.read_text()
    program.write_text(text.replace('"train.py"]', '"train.py", "--shuffle_labels", "--steps=300"]'))
    try:
        assert project.up().touched() == {"mnist-run"}
        assert project.outputs()["accuracy"] < 0.2
        assert "resumed" not in project.log("worker-0", "mnist")
    finally:
        program.write_text(text)
    assert project.up().touched() == {"mnist-run"}
    assert project.outputs()["accuracy"] > 0.9
    project.destroy()


@pytest.mark.parametrize("hostname", ["worker-1", "ps-0"])
def test_a_killed_task_comes_back_and_training_resumes_from_the_checkpoint(tmp_path: Path, hostname: str) -> None:
    project = mnist_project(tmp_path / "mnist")
    program = project.program / "programs/mnist/__main__.py"
    program.write_text(program.read_text().replace('"train.py"]', '"train.py", "--steps=3000"]'))
    try:
        project.up(env={"TFDEPLOY_WAIT": "0"})
        until(lambda: last_step(project) >= 400, "step 400")
        child = project.child(hostname, "mnist")
        child.send_signal(signal.SIGKILL)
        project.up(env={"TFDEPLOY_WAIT": "10m"})
        outputs = project.outputs()
        assert outputs["state"] == "succeeded", outputs["status"]
        assert outputs["accuracy"] > 0.9
        resumed = "worker-1" if hostname == "worker-1" else "worker-0"
        told = re.findall(r"resumed at step (\d+)", project.log(resumed, "mnist"))
        assert told
        assert all(0 < int(step) <= 3001 for step in told)
        project.destroy()
    finally:
        project.clean()
