"""What a cluster on EC2 costs: told at preview, refused above the budget, counted by the controller."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from tests.unit import cases
from tests.unit.backends.ec2.fleets import GPUS, instance, plan, spec
from tfdeploy.agent.model.run_state import RunResult, RunState
from tfdeploy.backends.ec2.machine.model import MachineState
from tfdeploy.backends.ec2.price import costs
from tfdeploy.backends.ec2.price.prices import hourly_cost
from tfdeploy.errors import SpecError
from tfdeploy.plan.plan import Plan, make_plan

NOON = 1_795_262_400.0
HOUR = 3600.0
PAIR: dict[str, Any] = {"ps": 1, "workers": 1}
SMALL_USD = 0.1008 + 100 * 0.08 / 720 + 0.005
PS = instance("mnist-ps-m0", is_manager=True)
WORKER = instance("mnist-worker-m0")


def lines(*there: MachineState, **args: Any) -> tuple[str, str]:
    """The lines of a preview about the cost: of the machines, and of what is billed after them."""
    asked = {**PAIR, **args}
    cost, after, ends = costs.plan_lines(spec(**asked), plan(*there, **asked))
    assert ends == "idle_timeout: a machine terminates itself after 15m without a task"
    return cost, after


def refuse(made: Plan, current: RunState | None = None, spent: float = 0.0, **args: Any) -> None:
    """Refuse the plan if it is above its budget; `current` is the run that exists, and `spent` what the machines have cost."""
    asked = spec(**args)
    costs.refuse(asked, made, cases.inventory(asked, *made.machines, run=current), spent)


def run(hours: float, **args: Any) -> RunState:
    """A run on the planned machines, which have cost $1 before it; it counts from noon plus so many hours."""
    asked = {**PAIR, **args}
    priced = replace(plan(**asked).run, **costs.run_cost(spec(**asked), plan(**asked).machines))
    return RunState(priced, 1.0, cost_before=1.0, cost_since=NOON + hours * HOUR)


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
    assert "your file system fs-0a1b2c3d, $0.30 per GiB and month; " in lines(ec2={"efs": "fs-0a1b2c3d"})[1]
    unknown = lines(ec2={"root_volume_type": "io2"})[0]
    assert ", plus 2 machines with unknown prices (io2 disk) until max_lifetime (72h); " in unknown
    assert lines(ec2={"max_lifetime": "never"})[0].startswith("cost: $0.23/h, no maximum without max_lifetime; ")


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


def test_a_used_up_budget_creates_no_machine() -> None:
    within = {**PAIR, "ec2": {"budget": 2, "max_lifetime": "4h"}}
    current = RunState(plan(PS, WORKER, **within).run, NOON)
    refuse(plan(PS, WORKER, **within), current, 2.34, **within)
    with pytest.raises(SpecError) as error:
        refuse(plan(PS, **within), current, 2.34, **within)
    assert str(error.value) == (
        "mnist: ec2.budget: is $2.00, and the machines of this cluster have cost $2.34 already, and $0.063 is needed to end a run. "
        "Raise the budget, or remove it."
    )
    more = {**within, "ec2": {"budget": 2.5, "max_lifetime": "4h"}}
    refuse(plan(PS, **more), current, 2.34, **more)
    barely = {**within, "ec2": {"budget": 2.4, "max_lifetime": "4h"}}
    with pytest.raises(SpecError, match="needed to end"):
        refuse(plan(PS, **barely), current, 2.34, **barely)


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
def test_a_used_up_budget_begins_no_run_and_is_not_given_to_one_that_trains(change: str, is_refused: bool) -> None:
    """All machines exist. The present run is stopped by its controller, and an update without a change reports that."""
    within = {**PAIR, "ec2": {"budget": 2, "max_lifetime": "4h"}}
    current = RunState(plan(PS, WORKER, **within).run, NOON)
    if change.startswith("another budget"):
        current.spec = replace(current.spec, budget=9.0)
    if change.endswith("the end"):
        current.result = RunResult("succeeded", "tasks_succeeded", NOON)
    asked = {**within, "run_id": "again"} if change == "another run" else within
    with pytest.raises(SpecError, match="have cost") if is_refused else nullcontext():
        refuse(plan(PS, WORKER, **asked), None if change == "no run" else current, 2.34, **asked)


def test_what_was_spent_is_the_price_of_the_machines_for_the_time_of_the_run_and_what_they_cost_before() -> None:
    assert costs.observed_cost(run(0), NOON + 10 * HOUR, exist=True) == {
        "per_hour": pytest.approx(2 * SMALL_USD, abs=1e-4),
        "spent": pytest.approx(1 + 2 * 10 * SMALL_USD, abs=1e-4),
        "summary": "$0.23/h now, $3.34 so far",
    }
    assert costs.observed_cost(run(0), NOON + 10 * HOUR, exist=False)["summary"] == "$0.00/h now, $3.34 so far"


def test_with_spot_instances_what_was_spent_is_the_most() -> None:
    found = costs.observed_cost(run(0, ec2={"spot": True}), NOON + 10 * HOUR, exist=True)
    assert found["summary"] == "at most $0.23/h now, at most $3.34 so far"


def test_before_the_first_run_nothing_is_known_of_what_was_spent() -> None:
    assert costs.observed_cost(None, NOON, exist=True) == {}
    assert costs.observed_cost(None, NOON, exist=False) == {"per_hour": 0.0}


def test_a_type_without_a_price_is_unknown() -> None:
    found = costs.observed_cost(run(0, ec2={"root_volume_type": "io2"}), NOON + HOUR, exist=True)
    assert (found["per_hour"], found["spent"]) == (None, None)
    assert found["summary"].startswith(
        "at least $0.21/h, plus 2 machines with unknown prices (io2 disk) now, at least $1.21, "
    )


def test_the_plan_knows_the_price_the_maximum_and_the_limits() -> None:
    planned = costs.planned_cost(spec(**PAIR), plan(**PAIR).machines)
    assert planned["per_hour"] == pytest.approx(2 * SMALL_USD, abs=1e-4)
    assert planned["maximum"] == pytest.approx(16.86, abs=1e-2)
    assert planned["billed_after"][0].startswith("the record in S3")
    assert (planned["currency"], planned["idle_timeout"], planned["max_lifetime"]) == ("USD", 900.0, 72 * HOUR)
    endless = {**PAIR, "ec2": {"max_lifetime": "never"}}
    assert costs.planned_cost(spec(**endless), plan(**endless).machines)["maximum"] is None


def test_the_controller_gets_the_price_and_what_is_needed_to_end_a_run() -> None:
    found = costs.run_cost(spec(**PAIR), plan(**PAIR).machines)
    grace, idle, end = 10, 900, 60
    assert found["cost_per_hour"] == pytest.approx(2 * SMALL_USD, abs=1e-6)
    assert found["cost_to_end"] == pytest.approx(2 * SMALL_USD * (grace + idle + end) / HOUR, abs=1e-6)
    assert costs.run_cost(spec(**PAIR), plan(**PAIR).machines[::-1]) == found
    made = make_plan(spec(**PAIR), cases.inventory(spec(**PAIR), *plan(**PAIR).machines, run_cost=found))
    assert made.run.cost_per_hour == found["cost_per_hour"]


def test_machines_with_gpus_have_their_price() -> None:
    cost, _ = lines(jobs={"worker": {"ec2": {"instance_type": GPUS.name}}})
    worker = hourly_cost(GPUS.name, "us-west-2", disks=[("gp3", 100)])
    assert cost.startswith(f"cost: ${SMALL_USD + worker.usd:.2f}/h, ")
