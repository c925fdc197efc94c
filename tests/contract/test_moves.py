"""A run moves from this computer to each backend, and back: the same run, from its newest checkpoint, and nothing is left behind.

Machines of EC2 are in `tests/ec2/test_moves.py`, between containers and this computer.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.contract.moving import MovingDockerProject, MovingKubernetesProject
from tests.engine.images import PYTHON
from tests.integration.conftest import Project
from tests.integration.moving import (
    FAILS_ELSEWHERE,
    Moving,
    MovingProject,
    assert_continuous,
    assert_goes_on,
    continued_at,
)
from tests.kubernetes.rights import least_rights
from tfdeploy.agent.model import events


@pytest.fixture(params=["toy", "docker", pytest.param("kubernetes", marks=pytest.mark.full)])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def project(
    backend: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Moving]:
    folder = tmp_path / "project"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    with ExitStack() as stack:
        made: Moving
        if backend == "docker":
            engine, image = (request.getfixturevalue(name) for name in ("engine", "python_image"))
            made = MovingDockerProject(folder, engine, image)
        elif backend == "kubernetes":
            kubeconfig = stack.enter_context(least_rights(request.getfixturevalue("kube"), "moves"))
            made = MovingKubernetesProject(folder, kubeconfig, PYTHON)
        else:
            made = MovingProject(folder)
        yield made
        made.clean()


def assert_left(project: Moving, backend: str) -> None:
    assert not project.has_place(backend)
    if isinstance(project, MovingDockerProject | MovingKubernetesProject):
        project.assert_nothing_left()


def test_a_run_moves_there_and_back_and_nothing_is_left_behind(project: Moving, backend: str) -> None:
    project.begin_on("local")
    first = project.run_at("local").spec.id
    project.until_step("local", 12)
    project.configure(backend)
    preview = project.call("preview", "--stack", project.stack).output
    assert f"the run moves from local to {backend}: it is stopped there, and continues from its newest" in preview
    assert "to return: `pulumi config set tfdeploy:backend local && pulumi up`" in preview

    updated = project.move_to(backend)
    project.trains_on(backend)
    assert project.run_at(backend).spec.id == first, "the same content is the same run"
    assert_goes_on(updated, backend, project.lines_at(backend))
    assert not project.has_place("local"), "its processes and folders are gone"
    assert (project.prefixes(), project.registered_backend()) == ({f"test-{backend}"}, backend)

    project.move_to("local")
    assert_left(project, backend)
    assert (project.prefixes(), project.registered_backend()) == ({"test"}, "local")
    lines = project.lines_at("local")
    assert len(continued_at(lines)) == 3
    assert_continuous(lines)
    kinds = [event.kind for event in project.record_at("local").events(first)]
    assert kinds.count(events.RECORD_RESTORED) == 2
    assert [run["run"] for run in project.listed("runs")] == [first]
    assert project.shown()["state"] == "running"
    retained = list((project.folder / "state/tfdeploy/retained").glob("*/*"))
    assert retained, "what may be the only copy of a checkpoint is kept"
    assert all((archive / "train").exists() for archive in retained), retained
    assert not any((archive / "record").exists() for archive in retained), "it is kept when the cluster is destroyed"
    assert project.up().touched() == set(), "another update changes nothing"
    Project.destroy(project)


def test_a_run_that_does_not_train_there_returns_with_the_record_of_both_places(project: Moving, backend: str) -> None:
    """The record of its first stay is emptied before the continuation is given to the controller."""
    project.begin_on("local", script=FAILS_ELSEWHERE)
    first = project.run_at("local").spec.id
    project.until_step("local", 12)
    failed = project.move_to(backend, fails=True)
    assert f"the run does not train on {backend}: it is failed: worker-0 failed (exit 3)" in failed.output
    assert "this machine is too small" in failed.output
    assert "What is on local is not deleted" in failed.output
    assert project.prefixes() == {"test", f"test-{backend}"}
    assert f"does not train on {backend}" in project.up(fails=True).output, "nothing is deleted by trying again"

    project.move_to("local")
    assert_left(project, backend)
    assert (project.run_at("local").spec.id, project.run_at("local").moves) == (first, 2)
    lines = project.lines_at("local")
    assert "this machine is too small" in lines, "the record has what was there"
    assert_continuous([line for line in lines if "too small" not in line])
    assert len(continued_at(lines)) == 2
    Project.destroy(project)


@pytest.mark.parametrize("backend", ["docker"], indirect=True)
def test_an_image_that_does_not_exist_leaves_the_run_on_this_machine(project: MovingDockerProject) -> None:
    project.image = "tfdeploy.invalid/no-such-image:1"
    project.begin_on("local")
    project.until_step("local", 7)
    failed = project.move_to("docker", fails=True)
    assert "no-such-image" in failed.output
    assert project.run_at("local").result is None
    assert (project.prefixes(), project.registered_backend()) == ({"test"}, "local"), "nothing was created"
    project.move_to("local")
    assert project.left() == {}
    assert len(continued_at(project.lines_at("local"))) == 1
    Project.destroy(project)
