"""One project on each backend in turn: the machines are created once, each test has a run of its own."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

import pytest

from tests.docker.project import DockerProject
from tests.ec2.project import Ec2Project
from tests.engine.images import PYTHON
from tests.integration.conftest import WAITS, Project
from tests.kubernetes.project import KubernetesProject
from tests.kubernetes.rights import least_rights
from tests.toy_backend.project import ToyProject

NEIGHBOURS = ("local", "docker", "kubernetes")
"""The backends on which another login has a cluster with the same project, stack and name, at the same place."""


@contextmanager
def neighbour(project: Project) -> Iterator[None]:
    """Another login's cluster with the same words trains meanwhile; in the end it has never been touched."""
    folder = project.folder.parent / "neighbour"
    image = getattr(project, "image", "")
    other: Project
    if isinstance(project, DockerProject):
        other = DockerProject(folder, project.host, image)
    elif isinstance(project, KubernetesProject):
        other = KubernetesProject(folder, Path(project.env["KUBECONFIG"]), image)
    else:
        other = Project(folder)
    other.name = project.name
    other.env["XDG_STATE_HOME"] = project.env["XDG_STATE_HOME"]
    counter = f'env={{"COUNTER": {str(folder / "counter")!r}}}'
    other.write(f'command=["python", "train.py"], code="code", workers=1, {counter}', WAITS)
    other.init()
    try:
        other.up(env={"TFDEPLOY_WAIT": "0"})
        mine = other.ref()
        other.until_running("worker-0")
        yield
        assert other.ref() == mine
        assert other.counts() == {"worker-0": 1}
        (folder / "counter/.gate").touch()
        other.up()
        assert (other.outputs()["state"], other.counts()) == ("succeeded", {"worker-0": 1})
        other.destroy()
    finally:
        (folder / "counter/.gate").touch()
        other.clean()


@pytest.fixture(
    scope="module",
    params=["local", "docker", "toy", *(pytest.param(name, marks=pytest.mark.full) for name in ("kubernetes", "ec2"))],
)
def one_project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The project that all tests of a module use, with its stack."""
    folder = tmp_path_factory.mktemp(request.param) / "project"
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
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
        elif request.param == "kubernetes":
            kubeconfig = stack.enter_context(least_rights(request.getfixturevalue("kube"), "contract"))
            found = KubernetesProject(folder, kubeconfig, PYTHON)
        elif request.param == "toy":
            found = ToyProject(folder)
        else:
            found = Project(folder)
        found.write('command=["python", "train.py"], code="code", workers=1')
        found.init()
        with neighbour(found) if request.param in NEIGHBOURS else nullcontext():
            yield found
            found.clean()


@pytest.fixture
def project(one_project: Project) -> Project:
    """The project; its tasks count their starts from zero."""
    for path in (one_project.folder / "counter").iterdir():
        path.unlink()
    return one_project
