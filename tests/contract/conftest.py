"""One project on each backend in turn."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docker.project import DockerProject
from tests.ec2.project import Ec2Project
from tests.integration.conftest import Project
from tfdeploy.backends.base import BACKENDS


@pytest.fixture(params=BACKENDS)
def project(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project with its stack."""
    found: Project
    if request.param == "docker":
        found = DockerProject(
            tmp_path / "project", request.getfixturevalue("engine"), request.getfixturevalue("python_image")
        )
    elif request.param == "ec2":
        box = request.getfixturevalue("box")
        for name, value in box.environment.items():
            monkeypatch.setenv(name, value)
        found = Ec2Project(tmp_path / "project", box, request.getfixturevalue("box_image"))
    else:
        found = Project(tmp_path / "project")
    monkeypatch.setenv("XDG_STATE_HOME", str(found.folder / "state"))
    found.write('command=["python", "train.py"], code="code", workers=1')
    found.init()
    yield found
    found.clean()
