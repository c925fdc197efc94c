"""What a cluster on EC2 costs: told at preview, refused above the budget, counted by the controller; the table of prices and its
arithmetic."""

import re
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from tests.unit import cases
from tests.unit.backends.ec2.fleets import GPUS, PAIR, PS, WORKER, plan, spec
from tfdeploy.agent.model.run_state import RunResult, RunState
from tfdeploy.backends.ec2 import costs
from tfdeploy.backends.ec2.costs import Amount, hourly_cost, instance_price, monthly_price, price_table, total
from tfdeploy.backends.ec2.machine.model import MachineState
from tfdeploy.errors import SpecError
from tfdeploy.plan.plan import Plan, make_plan

NOON = 1_795_262_400.0
HOUR = 3600.0
SMALL_USD = 0.1008 + 100 * 0.08 / 720 + 0.005
OREGON = "us-west-2"
ROOT = ("gp3", 100)
STRANGE_USD = SMALL_USD - 0.1008
REGIONS = ("us-east-1", "us-east-2", "us-west-2", "eu-west-1", "eu-central-1", "ap-northeast-1")


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


def test_spot_addresses_and_other_types_are_counted_as_requested() -> None:
    assert lines(jobs={"worker": {"ec2": {"spot": True}}})[0].endswith(", spot counted as on-demand")
    assert lines(ec2={"connectivity": "private"})[0].startswith(f"cost: ${2 * SMALL_USD - 0.01:.2f}/h, ")
    worker = hourly_cost(GPUS.name, OREGON, disks=[ROOT])
    cost, _ = lines(jobs={"worker": {"ec2": {"instance_type": GPUS.name}}})
    assert cost.startswith(f"cost: ${SMALL_USD + worker.usd:.2f}/h, ")


def test_a_plan_within_its_budget_without_one_or_where_no_machine_shall_stand_is_not_refused() -> None:
    made = plan(**PAIR)
    over = replace(made, unneeded=frozenset(machine.name for machine in made.machines))
    assert costs.plan_lines(spec(**PAIR), over) == []
    refuse(plan(**PAIR), **PAIR, ec2={"budget": 17})
    refuse(plan(**PAIR, ec2={"root_volume_type": "io2"}), **PAIR)
    refuse(over, **PAIR, ec2={"budget": 0.01, "max_lifetime": "never"})


@pytest.mark.parametrize(
    ("ec2", "said"),
    [
        ({"budget": 16}, "$16.00, but the machines may cost $16.86 ($0.23/h until max_lifetime, 72h)."),
        ({"budget": 99, "max_lifetime": "never"}, "$99.00, but without a max_lifetime the cost "),
        (
            {"budget": 99, "root_volume_type": "io2"},
            "$99.00, but the price table of 2026-01-19 has no price for: io2 disk.",
        ),
    ],
)
def test_a_plan_above_its_budget_is_refused(ec2: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError) as error:
        refuse(plan(**PAIR, ec2=ec2), **PAIR, ec2=ec2)
    assert str(error.value).startswith(f"mnist: ec2.budget: is {said}")


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


@pytest.mark.parametrize(
    ("ec2", "exist", "per_hour", "spent", "summary"),
    [
        ({}, True, 2 * SMALL_USD, 1 + 20 * SMALL_USD, "$0.23/h now, $3.34 so far"),
        ({}, False, 0.0, 1 + 20 * SMALL_USD, "$0.00/h now, $3.34 so far"),
        ({"spot": True}, True, 2 * SMALL_USD, 1 + 20 * SMALL_USD, "at most $0.23/h now, at most $3.34 so far"),
        (
            {"root_volume_type": "io2"},
            True,
            None,
            None,
            "at least $0.21/h, plus 2 machines with unknown prices (io2 disk) now, at least $3.12, ",
        ),
    ],
)
def test_what_was_spent_is_the_price_of_the_machines_for_the_time_of_the_run_and_what_they_cost_before(
    ec2: dict[str, Any], exist: bool, per_hour: float | None, spent: float | None, summary: str
) -> None:
    found = costs.observed_cost(run(0, ec2=ec2), NOON + 10 * HOUR, exist=exist)
    assert found["summary"].startswith(summary)
    before = costs.observed_cost(None, NOON, exist=exist)
    assert before == ({} if exist else {"per_hour": 0.0}), "before the first run"
    assert [found["per_hour"], found["spent"]] == pytest.approx([per_hour, spent], abs=1e-4)


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


@pytest.mark.parametrize(
    ("kind", "region", "usd"),
    [
        ("m7i.large", "us-east-1", 0.1008),
        ("m7i.large", "eu-central-1", 0.12075),
        ("m7i.24xlarge", "us-east-1", 4.8384),
        ("c7g.medium", "us-east-1", 0.03625),
        ("t3.nano", "us-west-2", 0.0052),
        ("g5.xlarge", "us-west-2", 1.006),
        ("g6e.48xlarge", "us-east-1", 30.13118),
        ("p5.48xlarge", "us-east-1", 55.04),
        ("x99.large", "us-east-1", None),
        ("m7i.large", "mars-north-1", None),
        ("m7i.metal-24xl", "us-east-1", None),
        ("m7i", "us-west-2", None),
        ("g6.3xlarge", "us-east-1", None),
        ("g6.xlarge", "eu-west-1", None),
        ("", "us-east-1", None),
        ("ipv4", "us-east-1", None),
    ],
)
def test_a_type_has_the_price_that_aws_publishes_or_an_unknown_one(kind: str, region: str, usd: float | None) -> None:
    assert instance_price(kind, region) == pytest.approx(usd, abs=1e-9)


def test_the_table_is_dated_and_its_prices_can_be() -> None:
    """With a slipped digit they could not: AWS's regions differ from the first one by less than half."""
    assert re.fullmatch(r"20\d\d-[01]\d-[0-3]\d", price_table().date)
    assert {region for row in price_table().rows.values() for region in row} == set(REGIONS)
    for what, row in price_table().rows.items():
        assert all(usd > 0 and 0.99 <= usd / row["us-east-1"] <= 1.5 for usd in row.values()), what
    assert all(set(price_table().rows[what]) == set(REGIONS) for what in ("ebs gp3", "ebs gp2", "ipv4", "efs", "s3"))


def test_spot_counts_as_the_most_and_what_is_unknown_is_said_beside_what_is_known() -> None:
    spot = hourly_cost("m7i.large", OREGON, spot=True, disks=[ROOT])
    assert spot.usd == pytest.approx(SMALL_USD)
    assert spot.text("/h") == "at most $0.12/h"
    known, strange = (hourly_cost(kind, OREGON, disks=[ROOT]) for kind in ("m7i.large", "x99.large"))
    found = total([known, strange])
    assert found.usd == pytest.approx(SMALL_USD + STRANGE_USD)
    assert found.known is None
    assert found.text("/h") == "at least $0.13/h, plus 1 machine with unknown prices (x99.large)"
    three = total([strange, strange, hourly_cost("m7i.large", OREGON, disks=[("io2", 9)])])
    assert three.text("/h").endswith("/h, plus 3 machines with unknown prices (io2 disk, x99.large)")
    both = Amount(1.23, ("x99.large",), is_maximum=True)
    assert both.text() == "$1.23, plus 1 machine with unknown prices (x99.large)", "no bound is claimed"
    nothing = hourly_cost("m7i.large", "mars-north-1", disks=[ROOT])
    assert nothing == Amount(0, ("m7i.large and gp3 disk and public address",))
    assert monthly_price("s3", "mars-north-1") == "price unknown"
