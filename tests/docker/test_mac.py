"""A cluster on a Swarm is driven from a Mac: nothing that only Linux has is used there."""

import pytest

from tests.docker.project import DockerProject
from tests.mac import ENVIRONMENT

pytestmark = pytest.mark.full


def test_docker_is_driven_from_a_mac(project: DockerProject) -> None:
    project.env.update(ENVIRONMENT)
    project.write('command=["python", "train.py"], code="code", workers=1', "print('trained')")
    preview = project.call("preview", "--stack", project.stack)
    assert preview.exit_code == 0, preview.output
    project.up()
    assert project.outputs()["state"] == "succeeded"

    assert project.shown()["state"] == "succeeded"
    for command in (["ls"], ["logs", "worker-0"], ["events"], ["explain"], ["wait"], ["report"], ["ls", "--leftovers"]):
        project.tfdeploy(*command)
    project.destroy()
