"""The training is stopped; the cluster remains."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.clusters import cluster_ref
from tests.unit.cases import plan
from tests.unit.cli.calling import call, program, registered
from tests.unit.report.test_update_wait import Looks, sight
from tests.unit.simulation import World, running
from tfdeploy.agent.record.record import RecordView
from tfdeploy.backends.base import ObservedState
from tfdeploy.cli import snapshot
from tfdeploy.cli.commands import stop
from tfdeploy.errors import BackendError, NotFound, SpecError

CLUSTER = cluster_ref("local", "/nowhere")
LOGIN = "file:///mine"


class Stage:
    """A cluster that looks like this, one look after the other, and what was asked of it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.stopped: list[str] = []
        self._patch = monkeypatch

    def looks(self, *sights: ObservedState) -> None:
        access = SimpleNamespace(stop_training=lambda cluster: self.stopped.append(cluster["id"]))
        looks = Looks(sights)
        self._patch.setattr(snapshot, "load", lambda name: looks)
        self._patch.setattr(stop, "access", lambda backend: access)

    def call(self, *options: str) -> Any:
        return call(["stop", "--cwd", str(self.folder), "--stack", "dev", *options])


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    program(tmp_path, monkeypatch, LOGIN)
    monkeypatch.setattr(stop, "_POLL_SECONDS", 0.0)
    registered(CLUSTER, {"workers": 1, "tensorboard": True}, begun=1.0, login=LOGIN)
    return Stage(tmp_path, monkeypatch)


def world() -> World:
    return running(workers=1, tensorboard=True)


def sights_of_a_stop() -> Sequence[ObservedState]:
    made = world()
    before = sight(made)
    made.launchers["worker-0"].running = True
    ending = replace(before)
    made.stop(auxiliary=False)
    return before, ending, sight(made)


def test_it_waits_until_the_training_has_stopped_and_names_how_to_continue(stage: Stage) -> None:
    stage.looks(*sights_of_a_stop())
    done = stage.call("--yes")
    run = plan(workers=1, tensorboard=True).run.id
    assert stage.stopped == [CLUSTER["id"]]
    assert done.stdout == (
        f'The run {run} was stopped. It stays stopped. `resume_from="{run}"` starts a run from its last checkpoint; '
        "another `run_id` starts from the beginning.\n"
    )
    assert "its tasks get SIGTERM" in done.stderr


def test_without_a_terminal_and_yes_nothing_is_stopped(stage: Stage) -> None:
    stage.looks(*sights_of_a_stop())
    with pytest.raises(SpecError, match="--yes"):
        stage.call()
    assert stage.stopped == []


def test_a_run_that_ends_by_itself_meanwhile_was_not_stopped(stage: Stage) -> None:
    made = world()
    before = sight(made)
    made.exit("worker-0")
    stage.looks(before, sight(made))
    said = stage.call("--yes").stdout
    assert "had already ended: succeeded" in said
    assert "was stopped" not in said


def test_a_run_submitted_during_the_question_is_not_stopped(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sight(world())
    other = sight(World(workers=1, run_id="other"))
    stage.looks(before, other)
    monkeypatch.setattr(stop, "ask_to_confirm", lambda *_: None)
    with pytest.raises(NotFound, match="no longer has the run"):
        stage.call()
    assert stage.stopped == []


def test_a_run_that_has_ended_is_left_as_it_is(stage: Stage) -> None:
    made = world()
    made.exit("worker-0")
    stage.looks(sight(made))
    assert "has already ended: succeeded" in stage.call("--yes").stdout
    assert stage.stopped == []


def test_the_workers_of_a_run_that_has_succeeded_are_stopped_while_they_have_time_left(stage: Stage) -> None:
    made = running(workers=2)
    made.exit("worker-0")
    before = sight(made)
    made.stop(auxiliary=False)
    stage.looks(before, before, sight(made))
    done = stage.call("--yes")
    assert stage.stopped == [CLUSTER["id"]]
    assert "has already succeeded: its tasks that still run get SIGTERM" in done.stderr
    assert done.stdout.endswith("were stopped. The run remains succeeded.\n")


def test_what_cannot_be_stopped_is_an_error(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    made = world()
    stage.looks(replace(sight(made), view=RecordView(made.now)))
    with pytest.raises(NotFound, match="has no run yet"):
        stage.call("--yes")
    stage.looks(sight(made))
    monkeypatch.setattr(stop, "_MARGIN_SECONDS", -100.0)
    with pytest.raises(BackendError, match="have not stopped yet"):
        stage.call("--yes")


def test_another_logins_training_needs_its_id(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.looks(*sights_of_a_stop())
    monkeypatch.setenv("PULUMI_BACKEND_URL", "file:///other")
    with pytest.raises(NotFound, match="To select that cluster"):
        stage.call("--yes")
    assert stage.call("--yes", "--cluster", CLUSTER["id"]).exit_code == 0
