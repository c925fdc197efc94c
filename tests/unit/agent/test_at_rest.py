"""Whose program may still run on a machine that does not respond: a task that is removed, or of a run that has ended."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.props import task_props
from tests.unit.simulation import World
from tfdeploy.agent.control import reconcile
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.agent.record.record import RecordView
from tfdeploy.backends import controller_calls
from tfdeploy.backends.docker.engine.controller_client import ControllerClient


class Cut:
    """A run of three workers; the machine of worker-1 is cut off after 100 s, and 20 s pass."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **args: Any) -> None:
        self.world = World(workers=3, success="worker-0", **args)
        self.world.come()
        self.world.wait(100)
        self.launcher = self.world.launchers.pop("worker-1")
        self.world.wait(20)
        monkeypatch.setattr(controller_calls, "view", self._view)
        self._client = ControllerClient(None, task_props()["cluster"])  # type: ignore[arg-type]

    def _view(self, *_: object) -> RecordView:
        state = RunState.from_dict(json.loads(json.dumps(self.world.job.to_dict())))
        return RecordView(self.world.now, state)

    def remove(self, hostname: str) -> None:
        """What `delete_unlisted` asks the controller for."""
        self.world.note(reconcile.remove_tasks(self.world.job, [hostname]))
        self.world.settle()

    def back(self) -> None:
        self.world.launchers["worker-1"] = self.launcher
        self.world.settle()

    def silent(self, hostname: str = "worker-1") -> float | None:
        """For how long its launcher is silent, where its program may run."""
        return self._client.former_launcher(hostname).silent


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Cut:
    return Cut(monkeypatch)


def test_a_removed_task_whose_machine_was_silent_is_waited_for_when_it_is_added_again(cut: Cut) -> None:
    cut.remove("worker-1")
    cut.world.give(workers=2, success="worker-0")
    assert cut.silent() == 20.0
    cut.world.give(workers=3, success="worker-0")
    cut.world.wait(10)
    assert cut.silent() == 30.0, "another launcher has not reported yet"
    cut.world.come("worker-1")
    assert cut.silent() == 0.0


def test_a_task_of_an_ended_run_is_waited_for_until_its_launcher_reports_that_nothing_runs(cut: Cut) -> None:
    cut.world.exit("worker-0")
    assert cut.world.verdict().startswith("succeeded")
    cut.world.wait(10)
    assert cut.silent() == 30.0
    assert [cut.silent(name) for name in ("worker-0", "worker-2")] == [0.0, 0.0], "these have stopped"
    cut.back()
    assert cut.silent() == 0.0


def test_a_task_that_the_next_run_lacks_is_waited_for_until_its_launcher_reports_that_nothing_runs(cut: Cut) -> None:
    before = cut.world.job
    spec = replace(before.spec, tasks=[task for task in before.spec.tasks if task.hostname != "worker-1"])
    cut.world.job = RunState(spec, cut.world.now)
    reconcile.inherit_fences(cut.world.job, before)
    assert cut.silent() == 20.0
    cut.back()
    assert cut.silent() == 0.0


def test_a_task_that_has_succeeded_is_at_rest_and_the_clock_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = Cut(monkeypatch)
    cut.world.exit("worker-2")
    cut.world.wait(30)
    assert cut.silent("worker-2") == 0.0
    cut.remove("worker-1")
    reconcile.shift_clock(cut.world.job, 3600.0)
    cut.world.now += 3600.0
    assert cut.silent() == 50.0
