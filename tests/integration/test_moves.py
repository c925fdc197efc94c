"""A run moves between backends, driven by the real engine: its record, its curve and its newest checkpoint move with it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.conftest import ROOT, Call
from tests.integration.moving import ARGUMENTS, TRAINS, MovingProject, assert_continuous, continued_at
from tests.toy_backend.backend import BACKEND as TOY
from tests.toy_backend.backend import BROKEN, discover
from tests.verbs import Verbs
from tests.waiting import until
from tfdeploy.agent import events
from tfdeploy.agent.run_state import MOVED, STOP_REQUESTED, STOPPED

ACCURACY = {"accuracy": r"MNIST accuracy: (\S+)"}


def assert_printed(updated: Call, lines: list[str]) -> None:
    """The update names the first step that it has observed at the new place."""
    match = re.search(r"test: the run continues at step ([\d,]+) on toy\.", updated.output)
    assert match, updated.output
    last = max(int(match[1]) for line in lines if (match := re.match(r"step (\d+)", line)))
    assert continued_at(lines)[-1] <= int(match[1].replace(",", "")) <= last


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[MovingProject]:
    folder = tmp_path / "project"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    project = MovingProject(folder, getattr(request, "param", "project"))
    yield project
    project.clean()
    for cluster in discover():
        TOY.runner.delete_all(cluster.cluster, "", {"volumes": False, "record": False})


def test_a_run_moves_there_and_back_and_nothing_is_left_behind(project: MovingProject) -> None:
    project.begin_on("local")
    first = project.run_at("local").spec.id
    project.until_step("local", 12)
    project.configure("toy")
    preview = project.call("preview", "--stack", project.stack).output
    assert "the run moves from local to toy: it is stopped there, and continues from its newest checkpoint" in preview
    assert "to return: `pulumi config set tfdeploy:backend local && pulumi up`" in preview

    updated = project.move_to("toy")
    assert project.run_at("toy").spec.id == first, "the same content is the same run"
    assert_printed(updated, project.lines_at("toy"))
    assert not project.has_place("local"), "its processes and folders are gone"
    assert (project.prefixes(), project.registered_backend()) == ({"test-toy"}, "toy")
    project.until_step("toy", project.steps_at("toy")[-1] + 10)

    project.move_to("local")
    assert not project.has_place("toy")
    assert (project.prefixes(), project.registered_backend()) == ({"test"}, "local")
    lines = project.lines_at("local")
    assert sum(line.startswith("continues at step") for line in lines) == 3
    assert_continuous(lines)
    moved = [
        (event.origin, event.place, event.count > 0)
        for event in project.record_at("local").events(first)
        if event.kind == events.RUN_MOVED
    ]
    assert moved == [("local", "toy", True), ("toy", "local", True)]
    assert [
        event["sentence"].partition(": it was at step")[0] for event in project.listed("events") if "origin" in event
    ] == [
        "run moved from local to toy",
        "run moved from toy to local",
    ]
    assert [run["run"] for run in project.listed("runs")] == [first]
    assert project.shown()["state"] == "running"
    retained = list((project.folder / "state/tfdeploy/retained").glob("*/*"))
    assert len(retained) == 2, "each place that was left"
    assert all((archive / "train").exists() for archive in retained), (
        "what may be the only copy of a checkpoint is kept"
    )
    assert not any((archive / "record").exists() for archive in retained), "it is kept when the cluster is destroyed"
    assert project.up().touched() == set(), "another update changes nothing"
    project.destroy()


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
    assert_printed(updated, lines)
    assert_continuous(lines)
    project.destroy()


@pytest.mark.parametrize("project", [BROKEN], indirect=True)
def test_a_place_that_fails_leaves_the_run_where_it_is(project: MovingProject) -> None:
    project.begin_on("local")
    project.until_step("local", 7)
    failed = project.move_to("toy", fails=True)
    assert "creates no controller" in failed.output
    assert "to return: `pulumi config set tfdeploy:backend local && pulumi up`" in failed.output
    assert project.run_at("local").result is None, "it is stopped only when the other controller responds"
    assert (project.prefixes(), project.registered_backend()) == ({"test", "test-toy"}, "local")
    project.move_to("local")
    assert not project.has_place("toy")
    lines = project.lines_at("local")
    assert sum(line.startswith("continues at step") for line in lines) == 1, "it was never stopped"
    project.destroy()


FAILS_THERE = """\
import os
if "toys" in os.environ["TFDEPLOY_TRAIN_DIR"]:
    print("this machine is too small", flush=True)
    raise SystemExit(3)
"""


def test_a_run_that_fails_at_the_new_place_goes_back_and_continues(project: MovingProject) -> None:
    project.begin_on("local", ARGUMENTS, FAILS_THERE + TRAINS)
    project.until_step("local", 12)
    failed = project.move_to("toy", fails=True)
    assert "the run does not train on toy: it is failed: worker-0 failed (exit 3)" in failed.output
    assert "this machine is too small" in failed.output
    assert "What is on local is not deleted" in failed.output
    result = project.run_at("local").result
    assert result is not None
    assert (result.state, result.cause) == (STOPPED, MOVED)
    assert project.prefixes() == {"test", "test-toy"}
    assert "does not train on toy" in project.up(fails=True).output, "nothing is deleted by trying again"

    project.move_to("local")
    assert not project.has_place("toy")
    assert project.registered_backend() == "local"
    lines = [line for line in project.lines_at("local") if "too small" not in line]
    assert_continuous(lines)
    assert sum(line.startswith("continues at step") for line in lines) == 2
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
