"""One observation of a cluster on EC2: what it writes, and that a preview writes nothing; what a run has cost."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.backends.ec2 import fleets
from tests.unit.backends.ec2.fleets import CLUSTER, instance
from tfdeploy.agent.model.run_state import LauncherReport, RunState
from tfdeploy.agent.record.record import RecordView, ViewRequest
from tfdeploy.backends.base import ObservedMachines, ObservedState
from tfdeploy.backends.docker.task_runner import DockerTaskRunner
from tfdeploy.backends.ec2 import record_bucket, task_runner
from tfdeploy.backends.ec2.aws import account, api
from tfdeploy.backends.ec2.backend import BACKEND

NOW = 1_000_000_000.0


@pytest.fixture
def observed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ObservedState]:
    """Observes a run of which docker's task runner and the bucket report this."""
    monkeypatch.setattr(account, "of", lambda _: nullcontext())
    monkeypatch.setattr(account, "store", lambda _: None)
    monkeypatch.setattr(account, "account_id", lambda _: "123456789012")
    monkeypatch.setattr(record_bucket, "download", lambda _: False)
    monkeypatch.setattr(task_runner, "CHECK_SECONDS", 0.0)

    def observe(
        state: RunState, missing: str = "", silent: float | None = None, is_preview: bool = False
    ) -> ObservedState:
        machines = ObservedMachines(others="gone" if silent else "connected")
        view = RecordView(at=NOW, run_state=state)
        found = ObservedState(NOW, view, silent, None, machines=machines, problems=["no route"] if silent else ())
        monkeypatch.setattr(DockerTaskRunner, "observe", lambda *_: found)
        monkeypatch.setattr(record_bucket, "missing", lambda _: missing)
        return BACKEND.runner.observe(CLUSTER, "", ViewRequest(), is_preview)

    return observe


def run_state(**changed: Any) -> RunState:
    return replace(RunState(fleets.plan(workers=1).run, NOW), **changed)


def test_it_is_said_that_the_record_is_not_in_the_bucket(observed: Callable[..., ObservedState]) -> None:
    assert observed(run_state()).not_stored == ""
    assert "is not complete" in observed(run_state(), "3 of the objects do not exist").not_stored
    refused = observed(run_state(upload_problem="PUT: 403 AccessDenied")).not_stored
    assert "(PUT: 403 AccessDenied)" in refused
    assert "`pulumi up --refresh`" in refused


def test_why_machines_have_ended_is_what_their_tasks_were_told(observed: Callable[..., ObservedState]) -> None:
    state = run_state()
    assert observed(state, silent=NOW).problems == ["no route"]
    for task in state.tasks.values():
        task.reason, task.machine_ends = "max_lifetime of 3600 s is over", True
    assert observed(state, silent=NOW).problems == ["max_lifetime of 3600 s is over"]


@pytest.mark.parametrize("silent", [None, NOW - 3600])
def test_what_a_run_has_cost_ends_with_the_last_sign_of_life(
    observed: Callable[..., ObservedState], silent: float | None
) -> None:
    state = run_state(cost_before=1.0, cost_since=NOW - 2 * 3600)
    state.spec = replace(state.spec, cost_per_hour=3.0)
    assert (observed(state, silent=silent).cost or {})["spent"] == (4.0 if silent else 7.0)


@pytest.mark.parametrize("is_preview", [False, True])
def test_only_a_machine_that_had_a_task_is_gone(observed: Callable[..., ObservedState], is_preview: bool) -> None:
    """The other one is that of an update to more workers, which has failed before."""
    state = run_state()
    state.tasks["worker-0"].report = LauncherReport(machine="mnist-m0")
    found = observed(state, silent=NOW, is_preview=is_preview)
    assert (found.machines.status("mnist-m0"), found.machines.status("mnist-m1")) == ("gone", "not created")
    assert found.cost is not None
    assert found.cost["per_hour"] == 0.0


@pytest.mark.parametrize("is_preview", [True, False])
def test_only_what_is_no_preview_writes(state_folder: Path, monkeypatch: pytest.MonkeyPatch, is_preview: bool) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(api, "instances", lambda *_: [instance("mnist-ps-m0", state="stopped")])
    monkeypatch.setattr(record_bucket, "download", asked.append)
    found = BACKEND.runner.observe(CLUSTER, "", ViewRequest(), is_preview)
    assert found.machines.statuses == {"mnist-ps-m0": "stopped"}
    monkeypatch.setattr(api, "instances", lambda *_: [])
    BACKEND.runner.observe(CLUSTER, "", ViewRequest(), is_preview)
    assert state_folder.exists() != is_preview
    assert asked == ([] if is_preview else [CLUSTER])
