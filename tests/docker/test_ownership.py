"""Whose cluster it is: two logins with the same three words on one Swarm, another computer, a lost state, a name by hand."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.docker.project import GATED, DockerProject
from tests.waiting import until
from tfdeploy.backends.docker.backend import BACKEND

JOB = (
    'command=["python", "train.py"], code="code", workers=1, wait="0", '
    'env={"COUNTER": __import__("os").environ["COUNTER"]}, secrets={"KEY": "a secret"}'
)
SERVICES = ("controller", "worker-0")

Login = Callable[[str], DockerProject]


@pytest.fixture
def login(tmp_path: Path, engine: str, python_image: str) -> Iterator[Login]:
    """Makes logins of the same project and stack, each with its own state of Pulumi and its own home folder."""
    made: list[DockerProject] = []

    def make(name: str) -> DockerProject:
        project = DockerProject(tmp_path / name, engine, python_image)
        project.name = made[0].name if made else project.name
        project.write(JOB, GATED)
        project.init()
        made.append(project)
        return project

    yield make
    for project in made:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_STATE_HOME", str(project.folder / "state"))
            project.clean()


def running(project: DockerProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait until the task of a login's cluster runs, as that login observes it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(project.folder / "state"))
    project.until_running("worker-0")


def objects(project: DockerProject) -> dict[str, set[str]]:
    """What the cluster has on the engine, by kind."""
    return {kind: {*names.split()} for kind, names in project.left().items()}


def test_another_computer_with_the_same_state_goes_on_with_the_cluster_and_the_stack_may_be_renamed(
    login: Login, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    laptop = login("laptop")
    laptop.up()
    running(laptop, monkeypatch)
    before = objects(laptop)
    desktop = {"XDG_STATE_HOME": str(tmp_path / "desktop"), "HOME": str(tmp_path / "home")}
    assert laptop.up(env=desktop).steps().keys() == {"unchanged"}
    assert laptop.up("--refresh", env=desktop).steps().keys() == {"unchanged"}
    assert objects(laptop) == before
    assert list((tmp_path / "desktop/tfdeploy/docker").glob("test-*/record"))

    done = laptop.call("stack", "rename", "renamed", "--stack", laptop.stack)
    assert done.exit_code == 0, done.output
    laptop.stack = "renamed"
    laptop.up()
    assert objects(laptop) == before, "labels alone change"
    (discovered,) = [
        one for one in BACKEND.discovery.discover(laptop.host) if one.cluster["id"] == laptop.ref("test")["id"]
    ]
    assert discovered.cluster["stack"] == "renamed"
    assert laptop.counts() == {"worker-0": 1}
    laptop.destroy()


def test_a_lost_state_touches_nothing_and_adopt_takes_the_cluster_over(
    login: Login, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = login("before"), login("after")
    before.up()
    running(before, monkeypatch)
    hers, lost, former = objects(before), before.cluster["id"], before.job().tasks["worker-0"].report.instance

    said = after.call("preview", "--stack", after.stack).output
    assert f"exists: {lost}, created by {before.cluster['owner']} since " in said
    assert f"`tfdeploy ls --leftovers --delete --cluster {lost}`" in said
    assert objects(before) == hers

    after.write(f'{JOB}, adopt="{lost}"', GATED)
    after.up()
    assert after.cluster["id"] == lost
    running(after, monkeypatch)

    def is_settled() -> bool:
        # The launcher of the former update is stopped, and the controller takes it for running until then.
        task = after.job().tasks["worker-0"]
        return task.report.instance != former and task.state == "running"

    until(is_settled, "the worker of the new update runs", seen=after.sees)
    names = {*before.docker("service", "ls", "--format", "{{.Name}}", *before.filters()).split()}
    assert names == {after.service(hostname) for hostname in SERVICES}, "there is one cluster"
    (network,) = objects(after)["network"]
    subnet = after.docker("network", "inspect", "--format", "{{(index .IPAM.Config 0).Subnet}}", network)
    accepted = after.preview(f'{JOB}, adopt="{lost}", container={{"subnet": "{subnet}"}}', GATED)
    assert "overlaps" not in accepted, "the cluster is adopted, and the argument may remain"
    after.write(f'{JOB}, adopt="{lost}"', GATED)
    again = after.up()
    assert again.steps().keys() == {"unchanged"}, again.output
    after.destroy()
    assert objects(before) == {}
