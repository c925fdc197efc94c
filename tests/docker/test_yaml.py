"""The packaged component on a Swarm: the life of a cluster whose program is in YAML."""

import json
from collections.abc import Callable

import pytest

from tests.docker.project import DockerProject

pytestmark = pytest.mark.full

OUTPUTS = ("state", "run", "logs", "tasks")


def write(project: DockerProject, script: str) -> None:
    """Write the program, and what its tasks run."""
    (project.program / "__main__.py").unlink(missing_ok=True)
    properties = {
        "backend": "docker",
        "command": ["python", "train.py"],
        "code": "code",
        "workers": 2,
        "restart": {"maximum": 0},
        "container": {"image": project.image, "retainVolumes": False},
        "docker": {"cleanupImage": project.image},
    }
    resources = {"test": {"type": "tfdeploy:TensorFlowCluster", "properties": properties}}
    outputs = {name: f"${{test.{name}}}" for name in OUTPUTS}
    text = f"name: {project.name}\nruntime: yaml\nresources: {json.dumps(resources)}\noutputs: {json.dumps(outputs)}\n"
    (project.program / "Pulumi.yaml").write_text(text)  # JSON is YAML
    (project.program / "code").mkdir(exist_ok=True)
    (project.program / "code" / "train.py").write_text(script)


def test_the_life_of_a_cluster(docker_projects: Callable[[str], DockerProject]) -> None:
    project = docker_projects("yaml")
    write(project, "print('first')")
    project.init()
    project.up()
    first = project.outputs()
    assert (first["state"], first["logs"]) == ("succeeded", {"worker-0": ["first"], "worker-1": ["first"]})
    assert project.up().touched() == set()

    write(project, "print('second')")
    assert project.up().touched() == {"test-run"}
    second = project.outputs()
    assert second["logs"]["worker-0"] == ["second"]
    assert second["run"] != first["run"]

    write(project, "raise SystemExit(3)")
    failed = project.up(fails=True)
    assert "error: test: the run failed: worker-" in failed.output
    assert "Traceback" not in failed.output
    assert project.outputs()["run"] == second["run"]
    project.up(env={"TFDEPLOY_WAIT": "0"})
    assert project.outputs()["state"] == "failed"

    done = project.call("destroy", "--yes", "--skip-preview", "--stack", project.stack)
    assert done.exit_code == 0, done.output
    assert project.left() == {}
