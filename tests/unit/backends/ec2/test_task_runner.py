"""One observation of a cluster on EC2: what it writes, and that a preview writes nothing; a run and the cost of its machines."""

import datetime
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit import props
from tests.unit.backends.ec2 import fleets
from tests.unit.backends.ec2.fleets import CLUSTER, instance
from tfdeploy.agent.record.record import RecordView, ViewRequest
from tfdeploy.agent.run_spec import RunSpec
from tfdeploy.agent.run_state import RunState
from tfdeploy.backends.base import ObservedMachines, ObservedState, RunProps
from tfdeploy.backends.docker.task_runner import DockerTaskRunner
from tfdeploy.backends.ec2 import record_bucket, task_runner
from tfdeploy.backends.ec2.aws import account, api
from tfdeploy.backends.ec2.backend import BACKEND
from tfdeploy.backends.ec2.price import costs
from tfdeploy.errors import BackendError, Unreachable

NOW = 1_000_000_000.0


@pytest.mark.parametrize("is_preview", [True, False])
def test_only_what_is_no_preview_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_preview: bool) -> None:
    asked: list[Any] = []
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(api, "instances", lambda *_: [instance("mnist-ps-m0", state="stopped")])
    monkeypatch.setattr(record_bucket, "download", asked.append)
    state = BACKEND.runner.observe(CLUSTER, "", ViewRequest(), is_preview)
    assert state.machines.statuses == {"mnist-ps-m0": "stopped"}
    monkeypatch.setattr(api, "instances", lambda *_: [])
    monkeypatch.setattr(api, "transition_reasons", lambda *_: {})
    BACKEND.runner.observe(CLUSTER, "", ViewRequest(), is_preview)
    assert (tmp_path / "state").exists() != is_preview
    assert asked == ([] if is_preview else [CLUSTER])


@pytest.fixture
def submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[RunProps]:
    """What docker's task runner gets; it submits nothing."""
    runs: list[RunProps] = []
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(DockerTaskRunner, "submit_run", lambda _, props: runs.append(props))
    return runs


def run(**args: Any) -> RunProps:
    return {**props.run_props(), "cluster": CLUSTER, "run": fleets.plan(workers=1, **args).run.to_dict()}


def test_a_run_with_a_budget_gets_the_cost_of_all_machines(
    submitted: list[RunProps], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_795_262_400.0
    monkeypatch.setattr(time, "time", lambda: now)
    machine = replace(instance("mnist-worker-m0"), launched=now - 3600)
    earlier = replace(machine, instance_id="i-earlier", launched=now - 3 * 3600)
    monkeypatch.setattr(api, "instances", lambda *_: [earlier])
    costs.save_plan(CLUSTER, fleets.spec(workers=1), fleets.plan(workers=1))
    BACKEND.runner.observe(CLUSTER, "", ViewRequest())
    monkeypatch.setattr(api, "instances", lambda *_: [machine])
    ended = datetime.datetime.fromtimestamp(now - 2 * 3600, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S GMT")
    monkeypatch.setattr(api, "transition_reasons", lambda *_: {"i-earlier": f"User initiated ({ended})"})
    BACKEND.runner.submit_run(run(ec2={"budget": 20}))
    [made] = submitted
    spec = RunSpec.from_dict(made["run"])
    assert spec.budget == 20
    assert spec.cost_per_hour == pytest.approx(0.1008 + 100 * 0.08 / 720 + 0.005)
    assert spec.cost_before == pytest.approx(2 * spec.cost_per_hour), "an hour of each machine"
    assert spec.cost_to_end == pytest.approx(spec.cost_per_hour * (10 + 900 + 60) / 3600), (
        "grace, idle_timeout, a minute"
    )


def test_a_machine_that_is_no_longer_planned_costs_the_run_nothing_more(
    submitted: list[RunProps], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pulumi deletes it after the run was submitted."""
    now = 1_795_262_400.0
    monkeypatch.setattr(time, "time", lambda: now)
    machines = [
        replace(instance(f"mnist-worker-m{index}"), instance_id=f"i-{index}", launched=now - 3600) for index in (0, 1)
    ]
    monkeypatch.setattr(api, "instances", lambda *_: machines)
    for workers in (2, 1):
        costs.save_plan(CLUSTER, fleets.spec(workers=workers), fleets.plan(workers=workers))
        BACKEND.runner.submit_run(run(ec2={"budget": 20}))
    before, after = (RunSpec.from_dict(made["run"]) for made in submitted)
    assert after.cost_per_hour == before.cost_per_hour / 2
    assert after.cost_before == before.cost_before


def test_a_run_without_a_budget_asks_nobody(submitted: list[RunProps], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "instances", lambda *_: pytest.fail("EC2 was asked"))
    BACKEND.runner.submit_run(run())
    assert RunSpec.from_dict(submitted[0]["run"]).cost_per_hour == 0


def test_a_run_with_a_budget_is_not_submitted_while_its_cost_is_not_known(
    submitted: list[RunProps], monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: Any) -> None:
        raise Unreachable("EC2 does not respond")

    monkeypatch.setattr(api, "instances", silent)
    with pytest.raises(BackendError, match="EC2 does not respond"):
        BACKEND.runner.submit_run(run(ec2={"budget": 20}))
    assert submitted == []


@pytest.fixture
def observed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ObservedState]:
    """Observes a run of which docker's task runner and the bucket report this."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(account, "of", lambda _: nullcontext())
    monkeypatch.setattr(account, "store", lambda _: None)
    monkeypatch.setattr(account, "account_id", lambda _: "123456789012")
    monkeypatch.setattr(record_bucket, "download", lambda _: False)
    monkeypatch.setattr(task_runner, "CHECK_SECONDS", 0.0)

    def observe(state: RunState, missing: str = "", silent: float | None = None) -> ObservedState:
        machines = ObservedMachines(others="gone" if silent else "connected")
        view = RecordView(at=NOW, run_state=state)
        found = ObservedState(NOW, view, silent, None, machines=machines, problems=["no route"] if silent else ())
        monkeypatch.setattr(DockerTaskRunner, "observe", lambda *_: found)
        monkeypatch.setattr(record_bucket, "missing", lambda _: missing)
        return BACKEND.runner.observe(CLUSTER, "", ViewRequest())

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
