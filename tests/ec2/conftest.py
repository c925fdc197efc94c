"""Projects on EC2 in a box."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.box.cloud import Box
from tests.ec2.preparing import logged_in, moto_server
from tests.ec2.project import Ec2Project


@pytest.fixture
def ec2_projects(
    tmp_path: Path, box: Box, box_image: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Ec2Project]]:
    """Makes projects by name; this process asks the box too."""
    made: list[Ec2Project] = []
    for name, value in box.environment.items():
        monkeypatch.setenv(name, value)

    def make(name: str) -> Ec2Project:
        made.append(Ec2Project(tmp_path / name, box, box_image, name))
        monkeypatch.setenv("XDG_STATE_HOME", str(made[-1].folder / "state"))
        return made[-1]

    yield make
    for project in made:
        project.clean()


@pytest.fixture
def project(ec2_projects: Callable[[str], Ec2Project]) -> Ec2Project:
    """One project with its stack."""
    found = ec2_projects("project")
    found.write('command=["python", "train.py"], code="code", workers=1')
    found.init()
    return found


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[str]:
    """Where moto answers as AWS, without machines."""
    with moto_server() as endpoint:
        yield endpoint


@pytest.fixture
def moto_account(moto_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An account in which nothing may be made."""
    with logged_in(moto_endpoint, tmp_path, monkeypatch):
        yield
