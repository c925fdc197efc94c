"""Clusters to call the command on, and a browser."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.calling import ARGUMENTS, TRAIN, open_gate
from tests.docker.project import DockerProject
from tests.integration.conftest import Project


@pytest.fixture
def training(projects: Callable[[str], Project]) -> Iterator[Project]:
    """A project whose cluster trains until the gate is opened."""
    project = projects("training")
    project.write(ARGUMENTS, TRAIN)
    project.init()
    project.up()
    project.until_running("ps-0", "worker-0", "worker-1")
    yield project
    open_gate(project)


@pytest.fixture
def docker_project(
    tmp_path: Path, engine: str, python_image: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DockerProject]:
    """A project on a real engine, with its stack."""
    project = DockerProject(tmp_path / "docker", engine, python_image)
    monkeypatch.setenv("XDG_STATE_HOME", str(project.folder / "state"))
    project.write('command=["python", "train.py"], code="code", workers=1')
    project.init()
    yield project
    project.clean()
