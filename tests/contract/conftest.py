"""One project on each backend in turn: the machines are created once, each test has a run of its own."""

from collections.abc import Iterator

import pytest

from tests.docker.project import DockerProject
from tests.ec2.project import Ec2Project
from tests.integration.conftest import Project


@pytest.fixture(scope="module", params=["local", "docker", pytest.param("ec2", marks=pytest.mark.full)])
def one_project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The project that all tests of a module use, with its stack."""
    folder = tmp_path_factory.mktemp(request.param) / "project"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        found: Project
        if request.param == "docker":
            engine, image = (request.getfixturevalue(name) for name in ("engine", "python_image"))
            found = DockerProject(folder, engine, image)
        elif request.param == "ec2":
            box, image = (request.getfixturevalue(name) for name in ("box", "box_image"))
            for name, value in box.environment.items():
                patch.setenv(name, value)
            found = Ec2Project(folder, box, image)
        else:
            found = Project(folder)
        found.write('command=["python", "train.py"], code="code", workers=1')
        found.init()
        yield found
        found.clean()


@pytest.fixture
def project(one_project: Project) -> Project:
    """The project; its tasks count their starts from zero."""
    for path in (one_project.folder / "counter").iterdir():
        path.unlink()
    return one_project
