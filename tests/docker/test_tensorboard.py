"""TensorBoard in a container of its own: on the overlay at its stable name, and where the image does not have it."""

import json
from typing import Any

from tests.docker.project import DockerProject
from tests.engine.cli import DockerFailed
from tests.integration.conftest import ROOT
from tests.waiting import until

ASK = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())"


def curves(project: DockerProject) -> dict[str, Any]:
    """What TensorBoard says at its name on the cluster's network: run to its scalars; nothing while it does not answer."""
    where = f"http://{project.job().tasks['tensorboard-0'].address}/data/plugin/scalars/tags"
    try:
        found: dict[str, Any] = json.loads(project.inside("tensorboard-0", "python3", "-c", ASK, where))
    except DockerFailed:
        return {}
    return found


def test_it_shows_the_curves_of_a_run_that_is_over(project: DockerProject, tensorflow_image: str) -> None:
    code = ROOT / "programs" / "mnist" / "train"
    project.write(
        f'command=["python", "train.py", "--steps=100"], code={str(code)!r}, ps=1, workers=1, tensorboard=True, '
        f"image={tensorflow_image!r}"
    )
    project.up()
    project.until_running("tensorboard-0")
    outputs = project.looked()
    assert (outputs["state"], outputs["endpoints"]["tensorboard-0"]) == ("succeeded", "tensorboard-0:6006")
    run = project.job().run["id"]

    def shown() -> bool:
        return {"loss", "accuracy"} <= set(curves(project).get(run, {}))

    until(shown, "the run's curves")
    assert project.up().steps().keys() == {"unchanged"}
    project.destroy()


def test_an_image_without_it_says_so_and_the_job_does_not_fail(project: DockerProject) -> None:
    project.write('command=["python", "-c", "print(1)"], workers=1, tensorboard=True')
    project.up()
    until(lambda: project.sees()["tensorboard-0"] == "failed (exit 1)", "TensorBoard failed")
    outputs = project.looked()
    assert outputs["state"] == "succeeded"
    assert "TensorBoard is not installed here" in "".join(outputs["logs"]["tensorboard-0"])
    project.destroy()
