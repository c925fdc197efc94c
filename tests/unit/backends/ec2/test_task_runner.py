"""One observation of a cluster on EC2: what it writes, and that a preview writes nothing; a run and the cost of its machines."""

import datetime
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit import props
from tests.unit.backends.ec2 import fleets
from tests.unit.backends.ec2.fleets import CLUSTER, instance
from tfdeploy.agent.record.record import ViewRequest
from tfdeploy.agent.run_spec import RunSpec
from tfdeploy.backends.base import RunProps
from tfdeploy.backends.docker.task_runner import DockerTaskRunner
from tfdeploy.backends.ec2 import record_bucket
from tfdeploy.backends.ec2.aws import api
from tfdeploy.backends.ec2.backend import BACKEND
from tfdeploy.backends.ec2.price import costs
from tfdeploy.errors import BackendError, Unreachable


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
