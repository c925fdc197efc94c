"""TensorBoard beside a real training: what it shows, what it outlives, and what it leaves alone."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import Project
from tests.integration.test_mnist import mnist_project
from tests.waiting import PATIENCE, until

SHOWN = {"accuracy", "loss"}


def answer(project: Project, path: str) -> bytes:
    """What TensorBoard says at its endpoint, by loopback and no proxy; nothing while it does not."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{project.outputs()['endpoints']['tensorboard-0']}{path}", timeout=PATIENCE) as found:
            content: bytes = found.read()
            return content
    except OSError:
        return b""


def curves(project: Project) -> dict[str, Any]:
    """Run to the names of its scalars."""
    found: dict[str, Any] = json.loads(answer(project, "/data/plugin/scalars/tags") or "{}")
    return found


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A short training, and its TensorBoard, asked for by the stack's configuration."""
    made = mnist_project(tmp_path / "mnist", "--steps=200")
    assert made.call("config", "set", "tfdeploy:tensorboard", "true", "--stack", made.stack).exit_code == 0
    yield made
    made.clean()


def places(project: Project) -> list[Path]:
    return [path for path in project.places("mnist").train.iterdir() if path.is_dir()]


def shows_the_curves_of_a_run_that_is_over(project: Project) -> None:
    until(lambda: project.looked()["tasks"][-1]["status"] == "running", "TensorBoard running")
    outputs = project.outputs()
    assert outputs["state"] == "succeeded"
    assert outputs["endpoints"]["tensorboard-0"].startswith("127.0.0.1:")
    (run,) = places(project)
    until(lambda: {*curves(project).get(run.name, {})} >= SHOWN, "the run's curves")
    assert json.loads(answer(project, "/data/runs")) == [run.name]
    assert b"<title>TensorBoard</title>" in answer(project, "/")
    assert len(json.loads(answer(project, f"/data/plugin/scalars/scalars?run={run.name}&tag=loss"))) >= 10


def comes_and_goes_while_nothing_else_changes(project: Project) -> None:
    def crew() -> list[Any]:
        return [row for row in project.outputs()["tasks"] if row["job"] != "tensorboard"]

    before, runs = crew(), places(project)
    assert project.call("config", "rm", "tfdeploy:tensorboard", "--stack", project.stack).exit_code == 0
    assert project.up().touched() == {"mnist-sweeper", "mnist-tensorboard-0", "mnist-run"}
    assert (crew(), places(project)) == (before, runs)
    assert project.call("config", "set", "tfdeploy:tensorboard", "true", "--stack", project.stack).exit_code == 0
    assert project.up().touched() == {"mnist-sweeper", "mnist-tensorboard-0", "mnist-run"}
    assert (crew(), places(project)) == (before, runs)
    until(lambda: project.looked()["tasks"][-1]["status"] == "running", "TensorBoard running again")
    until(lambda: {*curves(project).get(runs[0].name, {})} >= SHOWN, "the run's curves again")


def test_it_shows_a_training_that_is_over_and_leaves_all_else_alone(project: Project) -> None:
    project.up()
    shows_the_curves_of_a_run_that_is_over(project)
    assert project.up().steps() == {"unchanged": 8}
    assert project.up("--refresh").steps() == {"unchanged": 8}
    comes_and_goes_while_nothing_else_changes(project)
    project.destroy()
