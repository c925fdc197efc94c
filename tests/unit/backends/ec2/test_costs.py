"""What a cluster on EC2 costs: told at preview, refused above the budget, remembered from look to look."""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit import cases
from tests.unit.backends.ec2.fleets import CLUSTER, GPUS, instance, plan, spec
from tfdeploy.agent.run_state import RunResult, RunState
from tfdeploy.backends.ec2.aws import api
from tfdeploy.backends.ec2.machine import ssh
from tfdeploy.backends.ec2.machine.model import Instance
from tfdeploy.backends.ec2.price import costs
from tfdeploy.backends.ec2.price.prices import BillableMachine, Disk, hourly_cost
from tfdeploy.errors import SpecError
from tfdeploy.plan.plan import Plan

NOON = 1_795_262_400.0
HOUR = 3600.0
PAIR: dict[str, Any] = {"ps": 1, "workers": 1}
SMALL_USD = 0.1008 + 100 * 0.08 / 720 + 0.005
PS = instance("mnist-ps-m0", is_manager=True, launched=NOON)
WORKER = instance("mnist-worker-m0", launched=NOON)


class Aws:
    """A clock, and what EC2 says of instances that have ended."""

    def __init__(self) -> None:
        self.now = NOON
        self.endings: dict[str, str] = {}
        self.asked: list[list[str]] = []

    def time(self) -> float:
        return self.now

    def tell(self, region: str, instance_ids: Sequence[str]) -> Mapping[str, str]:
        self.asked.append(list(instance_ids))
        return self.endings


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Aws:
    made = Aws()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(time, "time", made.time)
    monkeypatch.setattr(api, "transition_reasons", made.tell)
    return made


def lines(*there: Instance, **args: Any) -> tuple[str, str]:
    """The lines of a preview about the cost: of the machines, and of what is billed after them."""
    asked = {**PAIR, **args}
    cost, after, ends = costs.plan_lines(spec(**asked), plan(*there, **asked))
    assert ends == "idle_timeout: a machine terminates itself after 15m without a task"
    return cost, after


def look(aws: Aws, hours: float, *there: Instance) -> dict[str, Any]:
    aws.now = NOON + hours * HOUR
    costs.record_observation(CLUSTER, there)
    cost = costs.current_cost(CLUSTER)
    return {**(cost.total or {}), "machines": cost.machines}


def refuse(made: Plan, current: RunState | None = None, **args: Any) -> None:
    """Refuse the plan if it is above its budget; `current` is the run that exists."""
    asked = spec(**args)
    costs.refuse(CLUSTER, asked, made, cases.inventory(asked, *made.machines, run=current))


def made(**args: Any) -> None:
    """What `pulumi up` remembers of the plan that it makes."""
    asked = {**PAIR, **args}
    costs.save_plan(CLUSTER, spec(**asked), plan(**asked))


def test_a_preview_has_the_cost_per_hour_its_maximum_and_what_is_billed_after_the_machines() -> None:
    cost, after = lines()
    assert cost.startswith("cost: $0.23/h, at most $16.86 until max_lifetime (72h); prices of ")
    prefix = "cost after the machines are terminated: the record in S3, also after `pulumi destroy`, "
    assert after.startswith(prefix)
    assert lines(PS, WORKER) == (cost, after)


def test_disks_files_volumes_and_lifetime_count() -> None:
    own = {"worker": {"ec2": {"ebs_volumes": ["7200GiB:/scratch", "vol-0a1b2c3d:/data"], "root_volume_size": "820GiB"}}}
    cost, after = lines(jobs=own, ec2={"efs": "new", "max_lifetime": "1h30m", "retain_record": False})
    assert cost.startswith(f"cost: ${2 * SMALL_USD + 0.8 + 0.08:.2f}/h, at most ")
    assert "(1h30m); " in cost
    assert "the file system (EFS)" in after
    assert "record in S3, until `pulumi destroy`" in after
    assert after.endswith("; your volume vol-0a1b2c3d")


def test_spot_and_addresses_are_counted_as_requested() -> None:
    assert lines(jobs={"worker": {"ec2": {"spot": True}}})[0].endswith(", spot counted as on-demand")
    assert lines(ec2={"connectivity": "private"})[0].startswith(f"cost: ${2 * SMALL_USD - 0.01:.2f}/h, ")


def test_where_no_machine_shall_stand_nothing_is_told_and_no_budget_is_broken() -> None:
    made = plan(**PAIR)
    over = replace(made, unneeded=frozenset(machine.name for machine in made.machines))
    assert costs.plan_lines(spec(**PAIR), over) == []
    refuse(over, **PAIR, ec2={"budget": 0.01, "max_lifetime": "never"})


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            {"ec2": {"budget": 16}},
            "mnist: ec2.budget: is $16.00, but the machines may cost $16.86 ($0.23/h until max_lifetime, 72h).",
        ),
        (
            {"ec2": {"budget": 99, "max_lifetime": "never"}},
            "mnist: ec2.budget: is $99.00, but without a max_lifetime the cost ",
        ),
        (
            {"ec2": {"budget": 99, "root_volume_type": "io2"}},
            "mnist: ec2.budget: is $99.00, but the price table of 2026-01-19 has no price for: io2 disk.",
        ),
    ],
)
def test_a_plan_above_its_budget_is_refused(args: dict[str, Any], said: str) -> None:
    asked = {**PAIR, **args}
    with pytest.raises(SpecError) as error:
        refuse(plan(**asked), **asked)
    assert str(error.value).startswith(said)


def test_a_plan_within_its_budget_is_not() -> None:
    refuse(plan(**PAIR), **PAIR, ec2={"budget": 17})
    refuse(plan(**PAIR, ec2={"root_volume_type": "io2"}), **PAIR)


def test_a_used_up_budget_creates_no_machine(aws: Aws) -> None:
    within = {**PAIR, "ec2": {"budget": 2, "max_lifetime": "4h"}}
    made()
    look(aws, 9, PS, WORKER)
    aws.now = NOON + 10 * HOUR
    current = RunState(plan(PS, WORKER, **within).run, NOON)
    refuse(plan(PS, WORKER, **within), current, **within)
    with pytest.raises(SpecError) as error:
        refuse(plan(PS, **within), current, **within)
    assert str(error.value) == (
        "mnist: ec2.budget: is $2.00, and the machines of this cluster have cost $2.34 already, and $0.063 is needed to end a run. "
        "Raise the budget, or remove it."
    )
    more = {**within, "ec2": {"budget": 2.5, "max_lifetime": "4h"}}
    refuse(plan(PS, **more), current, **more)
    barely = {**within, "ec2": {"budget": 2.4, "max_lifetime": "4h"}}
    with pytest.raises(SpecError, match="needed to end"):
        refuse(plan(PS, **barely), current, **barely)


@pytest.mark.parametrize(
    ("change", "is_refused"),
    [
        ("nothing", False),
        ("no run", True),
        ("another run", True),
        ("another budget", True),
        ("another budget after the end", False),
    ],
)
def test_a_used_up_budget_begins_no_run_and_is_not_given_to_one_that_trains(
    aws: Aws, change: str, is_refused: bool
) -> None:
    """All machines exist. The present run is stopped by its controller, and an update without a change reports that."""
    within = {**PAIR, "ec2": {"budget": 2, "max_lifetime": "4h"}}
    made()
    look(aws, 10, PS, WORKER)
    current = RunState(plan(PS, WORKER, **within).run, NOON)
    if change.startswith("another budget"):
        current.spec = replace(current.spec, budget=9.0)
    if change.endswith("the end"):
        current.result = RunResult("succeeded", "tasks_succeeded", NOON)
    asked = {**within, "run_id": "again"} if change == "another run" else within
    with pytest.raises(SpecError, match="have cost") if is_refused else nullcontext():
        refuse(plan(PS, WORKER, **asked), None if change == "no run" else current, **asked)


def test_what_was_spent_is_kept_from_look_to_look(aws: Aws) -> None:
    made()
    found = look(aws, 10, PS, WORKER)
    assert found["currency"] == "USD"
    assert found["per_hour"] == pytest.approx(2 * SMALL_USD, abs=1e-4)
    assert found["spent"] == pytest.approx(2 * 10 * SMALL_USD, abs=1e-4)
    assert found["maximum"] == pytest.approx(16.86, abs=1e-2)
    assert found["machines"]["mnist-ps-m0"] == {
        "per_hour": pytest.approx(SMALL_USD, abs=1e-4),
        "spent": pytest.approx(10 * SMALL_USD, abs=1e-4),
    }
    assert found["summary"] == "$0.23/h now, $2.34 so far"
    assert found["billed_after"][0].startswith("the record in S3")
    assert aws.asked == [[]]


def test_a_machine_that_went_counts_until_its_end_and_its_successor_beside_it(aws: Aws) -> None:
    made()
    look(aws, 1, PS, WORKER)
    aws.endings = {WORKER.instance_id: "User initiated (2026-11-21 14:00:00 GMT)"}
    found = look(aws, 10, PS)
    assert aws.asked[-1] == [WORKER.instance_id]
    assert found["spent"] == pytest.approx((10 + 2) * SMALL_USD, abs=1e-4)
    assert found["machines"]["mnist-worker-m0"]["per_hour"] == 0
    anew = replace(WORKER, instance_id="i-anew", launched=NOON + 10 * HOUR)
    found = look(aws, 11, PS, anew)
    assert aws.asked[-1] == []
    assert found["machines"]["mnist-worker-m0"]["spent"] == pytest.approx(3 * SMALL_USD, abs=1e-4)
    assert json.loads((ssh.folder(CLUSTER) / "ledger.json").read_text())["entries"][1]["ended_at_latest"] is False


def test_when_all_are_gone_what_they_cost_is_still_told(aws: Aws) -> None:
    made()
    look(aws, 10, PS, WORKER)
    found = look(aws, 200)
    assert (found["per_hour"], found["summary"].partition(" so far")[0]) == (0, "$0.00/h now, at most $16.86")
    assert found["maximum"] == found["spent"]


def test_machines_that_never_end_have_no_maximum(aws: Aws) -> None:
    made(ec2={"max_lifetime": "never"})
    assert look(aws, 1, PS)["maximum"] is None


def test_of_machines_that_another_computer_made_the_disks_are_unknown(aws: Aws) -> None:
    found = look(aws, 1, PS)
    assert (found["per_hour"], found["spent"]) == (None, None)
    assert found["summary"].startswith("at least $0.11/h, plus 1 machine with unknown prices (disks) now, ")
    made()
    assert look(aws, 1, PS)["per_hour"] == pytest.approx(SMALL_USD, abs=1e-4)


def test_a_type_without_a_price_is_unknown(aws: Aws) -> None:
    made()
    found = look(aws, 1, PS, replace(WORKER, instance_type="x99.large"))
    assert (found["per_hour"], found["machines"]["mnist-worker-m0"]["spent"]) == (None, None)
    assert found["machines"]["mnist-ps-m0"]["spent"] == pytest.approx(SMALL_USD, abs=1e-4)


def test_before_anything_stands_nothing_is_spent(aws: Aws) -> None:
    assert (costs.current_cost(CLUSTER).total or {})["spent"] == 0
    assert not (ssh.folder(CLUSTER) / "ledger.json").exists()


def test_machines_with_gpus_have_their_price() -> None:
    cost, _ = lines(jobs={"worker": {"ec2": {"instance_type": GPUS.name}}})
    worker = hourly_cost(BillableMachine(GPUS.name, disks=(Disk("gp3", 100),)), "us-west-2")
    assert cost.startswith(f"cost: ${SMALL_USD + worker.usd:.2f}/h, ")
