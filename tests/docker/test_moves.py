"""A run moves between this machine and a Swarm, and back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docker.project import DockerProject
from tests.integration.conftest import Project
from tests.integration.moving import ARGUMENTS, Moving, assert_continuous


class MovingDockerProject(Moving, DockerProject):
    """A project whose backend is in the configuration, with the image of the tests."""

    def write(self, arguments: str, *rest: str) -> None:
        container = f"container={{'image': {self.image!r}, 'retain_volumes': False}}, docker={{'cleanup_image': {self.image!r}}}"
        Project.write(self, f"{container}, {arguments}", *rest)

    def clean(self) -> None:
        Project.clean(self)
        DockerProject.clean(self)


@pytest.fixture
def project(
    tmp_path: Path, engine: str, python_image: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MovingDockerProject]:
    project = MovingDockerProject(tmp_path / "project", engine, python_image)
    monkeypatch.setenv("XDG_STATE_HOME", str(project.folder / "state"))
    yield project
    project.clean()


def test_a_run_moves_to_containers_and_back(project: MovingDockerProject) -> None:
    project.begin_on("local")
    first = project.run_at("local").spec.id
    project.until_step("local", 12)
    project.move_to("docker")
    assert not project.has_place("local")
    assert project.run_at("docker").spec.id == first
    assert project.run_at("docker").spec.train_dir == f"/tfdeploy/train/{first}"
    before = project.look().view.run_state
    assert before is not None
    assert before.moves == 1
    project.move_to("local")
    assert project.left() == {}, "no service, no network, no volume"
    assert_continuous(project.lines_at("local"))
    assert sum(line.startswith("continues at step") for line in project.lines_at("local")) == 3
    project.until_step("local", project.steps_at("local")[-1] + 5)
    Project.destroy(project)


def test_an_image_that_does_not_exist_leaves_the_run_on_this_machine(project: MovingDockerProject) -> None:
    project.image = "tfdeploy.invalid/no-such-image:1"
    project.begin_on("local", ARGUMENTS)
    project.until_step("local", 7)
    failed = project.move_to("docker", fails=True)
    assert "no-such-image" in failed.output
    assert project.run_at("local").result is None
    assert (project.prefixes(), project.registered_backend()) == ({"test"}, "local"), (
        "refused before anything is created"
    )
    project.move_to("local")
    assert project.left() == {}
    assert sum(line.startswith("continues at step") for line in project.lines_at("local")) == 1
    Project.destroy(project)
