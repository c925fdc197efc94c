"""A run moves between backends, driven by the real engine: its record, its curve and its newest checkpoint move with it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.conftest import ROOT
from tests.integration.moving import MovingProject, assert_continuous, assert_goes_on, continued_at
from tests.toy_backend.backend import BACKEND as TOY
from tests.toy_backend.backend import discover
from tests.verbs import Verbs
from tests.waiting import until
from tfdeploy.agent.model.run_state import STOP_REQUESTED, STOPPED

ACCURACY = {"accuracy": r"MNIST accuracy: (\S+)"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingProject]:
    folder = tmp_path / "project"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    project = MovingProject(folder)
    yield project
    project.clean()
    for cluster in discover():
        TOY.runner.delete_all(cluster.cluster, "", {"volumes": False, "record": False})


def test_a_run_that_the_user_has_stopped_continues_where_it_moves_to(project: MovingProject) -> None:
    project.begin_on("local")
    first = project.run_at("local").spec.id
    project.until_step("local", 12)
    code, _, err = Verbs(project.program, project.env).call("stop", "--yes", "--cluster", "test")
    assert code == 0, err
    result, last = project.run_at("local").result, project.steps_at("local")[-1]
    assert result is not None
    assert (result.state, result.cause) == (STOPPED, STOP_REQUESTED)

    updated = project.move_to("toy")
    assert not project.has_place("local")
    run, lines = project.run_at("toy"), project.lines_at("toy")
    assert (run.spec.id, run.result) == (first, None)
    starts = continued_at(lines)
    assert (starts[0], len(starts)) == (0, 2)
    assert starts[1] > last - 10, "from the newest checkpoint"
    assert_goes_on(updated, "toy", lines)
    assert_continuous(lines)
    project.destroy()


@pytest.mark.full
def test_tensorflow_continues_from_the_newest_checkpoint(project: MovingProject) -> None:
    train = ROOT / "programs/mnist/train"
    command = ["python", "train.py", "--steps=4000", "--save_steps=50", "--train_dir={train_dir}"]
    project.begin_on("local", f"command={command}, code={str(train)!r}, ps=1, workers=2, metrics={ACCURACY}, wait='1'")

    def last_step(backend: str) -> int:
        steps = [int(match[1]) for line in project.lines_at(backend) if (match := re.match(r"step (\d+) of", line))]
        return max(steps, default=0)

    until(lambda: last_step("local") > 150, "150 steps")
    project.configure("toy")
    project.up(env={"TFDEPLOY_WAIT": "10m"})
    lines = project.lines_at("toy")
    assert project.outputs()["state"] == "succeeded"
    assert float(project.outputs()["metrics"]["accuracy"]) > 0.8
    resumed = next(index for index, line in enumerate(lines) if "resumed at step" in line)
    before = [int(match[1]) for line in lines[:resumed] if (match := re.match(r"step (\d+) of", line))]
    assert int(lines[resumed].split()[-1]) >= before[-1] - 50, "it continues from the newest checkpoint"
    assert not project.has_place("local")
    project.destroy()
