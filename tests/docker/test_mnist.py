"""The main job in containers: real TensorFlow on a real engine, on both networks."""

import pytest

from tests.docker.project import DockerProject
from tests.integration.conftest import ROOT


@pytest.mark.parametrize("network", ["overlay", "host"])
def test_mnist_trains_in_three_containers(project: DockerProject, tensorflow_image: str, network: str) -> None:
    code = ROOT / "programs" / "mnist" / "train"
    project.write(
        f'command=["python", "train.py", "--steps=400"], code={str(code)!r}, ps=1, workers=2, network={network!r}, '
        f'image={tensorflow_image!r}, metrics={{"accuracy": r"MNIST accuracy: (\\S+)"}}'
    )
    project.up()
    outputs = project.outputs()
    assert outputs["state"] == "succeeded"
    assert outputs["metrics"]["accuracy"] > 0.88
    names = project.docker("service", "ls", "--format", "{{.Name}}").splitlines()
    assert {project.service(name) for name in ("ps-0", "worker-0", "worker-1", "keeper")} <= set(names)
    project.destroy()
