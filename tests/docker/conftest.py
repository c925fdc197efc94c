"""A real engine in swarm mode, and projects on it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.docker.project import DockerProject


@pytest.fixture
def docker_projects(
    tmp_path: Path, engine: str, python_image: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], DockerProject]]:
    """Makes projects by name."""
    made: list[DockerProject] = []

    def make(name: str) -> DockerProject:
        made.append(DockerProject(tmp_path / name, engine, python_image, name))
        return made[-1]

    yield make
    for project in made:
        monkeypatch.setenv("XDG_STATE_HOME", str(project.folder / "state"))
        project.clean()


@pytest.fixture
def project(docker_projects: Callable[[str], DockerProject], monkeypatch: pytest.MonkeyPatch) -> DockerProject:
    """One project with its stack."""
    found = docker_projects("project")
    monkeypatch.setenv("XDG_STATE_HOME", str(found.folder / "state"))
    found.write('command=["python", "train.py"], code="code", workers=1')
    found.init()
    return found
