"""A real engine in swarm mode, and projects on it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.docker.project import DockerProject


@pytest.fixture
def project_on(
    tmp_path: Path, python_image: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], DockerProject]]:
    """Makes a project on an engine."""
    made: list[DockerProject] = []

    def make(host: str) -> DockerProject:
        made.append(DockerProject(tmp_path / "project", host, python_image))
        monkeypatch.setenv("XDG_STATE_HOME", str(made[-1].folder / "state"))
        return made[-1]

    yield make
    for project in made:
        project.clean()


@pytest.fixture
def project(project_on: Callable[[str], DockerProject], engine: str) -> DockerProject:
    """One project with its stack."""
    found = project_on(engine)
    found.write('command=["python", "train.py"], code="code", workers=1')
    found.init()
    return found
