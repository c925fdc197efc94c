"""The main job in containers: real TensorFlow on a real engine, with TensorBoard beside it, and on both networks."""

import json
from typing import Any

import pytest

from tests.docker.project import DockerProject
from tests.engine.cli import DockerFailed
from tests.integration.conftest import ROOT
from tests.mnist_model import stored_model
from tests.tensorflow_env import ONE_THREAD
from tests.waiting import until

CODE = str(ROOT / "programs" / "mnist" / "train")
ASK = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())"


def trains(steps: int, volume: str) -> str:
    """The arguments of the job."""
    return (
        f'command=["python", "train.py", "--steps={steps}"], code={CODE!r}, ps=1, workers=2, env={ONE_THREAD}, '
        f'container={{"volumes": [{volume!r}]}}, metrics={{"accuracy": r"MNIST accuracy: (\\S+)"}}'
    )


def curves(project: DockerProject) -> dict[str, Any]:
    """What TensorBoard says at its name on the cluster's network: run to its scalars; nothing while it does not answer."""
    where = f"http://{project.job().tasks['tensorboard-0'].address}/data/plugin/scalars/tags"
    try:
        found: dict[str, Any] = json.loads(project.inside("tensorboard-0", "python3", "-c", ASK, where))
    except DockerFailed:
        return {}
    return found


def test_mnist_trains_in_three_containers_and_tensorboard_shows_its_curves(
    project: DockerProject, tensorflow_volume: str
) -> None:
    project.write(trains(400, tensorflow_volume) + ", tensorboard=True")
    project.up()
    outputs = project.outputs()
    assert outputs["state"] == "succeeded"
    assert outputs["metrics"]["accuracy"] > 0.88
    names = project.docker("service", "ls", "--format", "{{.Name}}").splitlines()
    tasks = ("ps-0", "worker-0", "worker-1", "tensorboard-0", "controller")
    assert {project.service(name) for name in tasks} <= set(names)

    project.until_running("tensorboard-0")
    assert outputs["endpoints"]["tensorboard-0"] == "tensorboard-0:6006"
    run = project.job().spec.id

    def shown() -> bool:
        return {"loss", "accuracy"} <= set(curves(project).get(run, {}))

    until(shown, "the run's curves")
    assert project.up().steps().keys() == {"unchanged"}
    project.destroy()
    trained = stored_model(project.folder / "state")
    assert trained.accuracy == pytest.approx(outputs["metrics"]["accuracy"], abs=0.0001)
    assert trained.step >= 400
