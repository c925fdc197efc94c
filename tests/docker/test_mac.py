"""A cluster on a Swarm is driven from a Mac: nothing that only Linux has is used there."""

import json

import pytest

from tests.docker.project import DockerProject
from tests.mac import ENVIRONMENT
from tests.verbs import Verbs

pytestmark = pytest.mark.full


def test_docker_is_driven_from_a_mac(project: DockerProject) -> None:
    project.env.update(ENVIRONMENT)
    project.write('command=["python", "train.py"], code="code", workers=1', "print('trained')")
    preview = project.call("preview", "--stack", project.stack)
    assert preview.exit_code == 0, preview.output
    project.up()
    assert project.outputs()["state"] == "succeeded"

    verbs = Verbs(project.program, project.env)
    code, out, error = verbs.call("status", "--json")
    assert code == 0, error
    assert json.loads(out)[0]["state"] == "succeeded"
    for command in (["ls"], ["logs", "worker-0"], ["events"], ["explain"], ["wait"], ["report"], ["ls", "--leftovers"]):
        code, out, error = verbs.call(*command)
        assert code == 0, (command, out, error)

    done = project.call("destroy", "--yes", "--skip-preview", "--stack", project.stack)
    assert done.exit_code == 0, done.output
    assert project.left() == {}
