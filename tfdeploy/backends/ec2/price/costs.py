"""The cost of a cluster's machines: in the preview, against the budget, and while they exist."""

from collections.abc import Sequence

from ....agent.control.end_policy import spent
from ....agent.model.run_state import RunState
from ....errors import SpecError
from ....outputs import CostSummary
from ....plan.inventory import Inventory, RunCost
from ....plan.plan import Plan, starts_new_run
from ....plan.scheduler import Machine
from ....spec.cluster import ClusterSpec
from ....spec.ec2 import NEW, PUBLIC
from ....units import dollars, text_of_seconds
from ..machine.machines import ec2_machine
from ..machine.model import Ec2Machine
from . import prices
from .prices import Amount

_NEW_DISK = "gp3"
_DIGITS = 6

_END_SECONDS = 60.0
"""What the end of a run needs beside `stop_grace_period` and `idle_timeout`: uploads, and the manager ends last."""


def refuse(spec: ClusterSpec, plan: Plan, inventory: Inventory, so_far: float) -> None:
    """Check the plan against its budget; `so_far` is what the machines of the cluster have cost.

    Raises:
        SpecError: the machines may cost more; or they have cost as much, and the update would create machines, begin a run, or give the
            present one this budget.
    """
    needed, budget = plan.needed_machines, spec.ec2.budget
    if needed and budget:
        where = f"{spec.name}: ec2.budget"
        hourly = _hourly_cost(spec, needed)
        _refuse_over_budget(where, hourly, spec.ec2.max_lifetime, budget)
        if not all(machine.exists for machine in needed) or _needs_money(plan, inventory):
            rest = _cost_to_end(spec, hourly)
            if so_far + rest >= budget:
                used = f"the machines of this cluster have cost {dollars(so_far)} already, and {dollars(rest)} is needed to end a run"
                raise SpecError(where, f"is {dollars(budget)}, and {used}", "Raise the budget, or remove it.")


def _refuse_over_budget(where: str, hourly: Amount, lifetime: float, budget: float) -> None:
    """The maximum cost is larger than the budget, or cannot be computed."""
    most = prices.maximum_cost(hourly, lifetime)
    if most is None:
        wrong = f"is {dollars(budget)}, but without a max_lifetime the cost of the machines has no limit"
        raise SpecError(where, wrong, 'Set a max_lifetime, such as "72h", or remove the budget.')
    if most.unknown:
        names = ", ".join(sorted(set(most.unknown)))
        wrong = f"is {dollars(budget)}, but the price table of {prices.price_table().date} has no price for: {names}"
        raise SpecError(where, wrong, "Choose another type or region, or remove the budget.")
    if most.usd > budget:
        wrong = (
            f"is {dollars(budget)}, but the machines may cost {dollars(most.usd)} "
            f"({hourly.text('/h')} until max_lifetime, {text_of_seconds(lifetime)})"
        )
        raise SpecError(where, wrong, "Use fewer or smaller machines or a shorter max_lifetime, or raise the budget.")


def _needs_money(plan: Plan, inventory: Inventory) -> bool:
    run = inventory.run
    if run is None or starts_new_run(plan, inventory):
        return True
    return run.result is None and run.spec.budget != plan.run.budget


def plan_lines(spec: ClusterSpec, plan: Plan) -> list[str]:
    """The lines of a preview about cost; none where the plan needs no machine."""
    needed = plan.needed_machines
    if not needed:
        return []
    billed_after = "; ".join(_billed_after(spec, needed))
    lines = [
        _cost_line(_hourly_cost(spec, needed), spec.ec2.max_lifetime),
        f"cost after the machines are terminated: {billed_after}",
    ]
    if spec.ec2.idle_timeout:
        lines.append(
            f"idle_timeout: a machine terminates itself after {text_of_seconds(spec.ec2.idle_timeout)} without a task"
        )
    return lines


def _cost_line(hourly: Amount, lifetime: float) -> str:
    most = prices.maximum_cost(hourly, lifetime)
    limit = "no maximum without max_lifetime"
    if most is not None:
        number = Amount(most.usd, most.unknown).text()
        limit = f"{number if most.unknown else f'at most {number}'} until max_lifetime ({text_of_seconds(lifetime)})"
    spot = ", spot counted as on-demand" if hourly.is_maximum else ""
    return f"cost: {hourly.text('/h')}, {limit}; prices of {prices.price_table().date}{spot}"


def planned_cost(spec: ClusterSpec, machines: Sequence[Machine]) -> CostSummary:
    """What the plan knows of the output `cost`."""
    hourly = _hourly_cost(spec, machines)
    most = prices.maximum_cost(hourly, spec.ec2.max_lifetime)
    return {
        "currency": "USD",
        "per_hour": hourly.known,
        "maximum": most.known if most else None,
        "prices_date": prices.price_table().date,
        "billed_after": _billed_after(spec, machines),
        "idle_timeout": spec.ec2.idle_timeout,
        "max_lifetime": spec.ec2.max_lifetime,
    }


def run_cost(spec: ClusterSpec, machines: Sequence[Machine]) -> RunCost:
    """The fields of `RunSpec` about the cost of these machines, the same in whatever order. The controller counts it."""
    hourly = _hourly_cost(spec, machines)
    rest = round(_cost_to_end(spec, hourly), _DIGITS)
    return {
        "cost_per_hour": round(hourly.usd, _DIGITS),
        "cost_is_maximum": hourly.is_maximum,
        "unpriced": sorted(hourly.unknown),
        "cost_to_end": rest,
    }


def observed_cost(run: RunState | None, now: float, exist: bool) -> CostSummary:
    """What the record knows of the output `cost`; `exist` is whether any machine exists. A controller last ran at `now`: it ends with
    the machines."""
    if run is None:
        return {} if exist else {"per_hour": 0.0}
    unpriced, is_maximum = tuple(run.spec.unpriced), run.spec.cost_is_maximum
    hourly = Amount(run.spec.cost_per_hour, unpriced, is_maximum) if exist else Amount()
    so_far = Amount(spent(run, now), unpriced, is_maximum)
    return {
        "per_hour": hourly.known,
        "spent": so_far.known,
        "summary": f"{hourly.text('/h')} now, {so_far.text()} so far",
    }


def _cost_to_end(spec: ClusterSpec, hourly: Amount) -> float:
    """What machines cost from the end of a run until they have terminated themselves. With an `idle_timeout` of 0 they do not."""
    return prices.cost_over(hourly, spec.stop_grace_period + spec.ec2.idle_timeout + _END_SECONDS).usd


def _hourly_cost(spec: ClusterSpec, machines: Sequence[Machine]) -> Amount:
    return prices.total(_machine_cost(spec, ec2_machine(machine)) for machine in machines)


def _billed_after(spec: ClusterSpec, machines: Sequence[Machine]) -> list[str]:
    """What AWS still bills when the machines are terminated."""
    region, efs, lines = machines[0].region, spec.ec2.efs, []
    if efs == NEW:
        lines.append(
            f"the file system (EFS), {_until(spec.container.retain_volumes)}, {prices.monthly_price('efs', region)}"
        )
    elif efs:
        lines.append(f"your file system {efs}, {prices.monthly_price('efs', region)}")
    lines.append(f"the record in S3, {_until(spec.ec2.retain_record)}, {prices.monthly_price('s3', region)}")
    volumes = (volume for machine in machines for volume in ec2_machine(machine).request.volumes)
    return [*lines, *dict.fromkeys(f"your volume {volume.volume_id}" for volume in volumes if volume.volume_id)]


def _until(is_retained: bool) -> str:
    return "also after `pulumi destroy`" if is_retained else "until `pulumi destroy`"


def _machine_cost(spec: ClusterSpec, machine: Ec2Machine) -> Amount:
    """The user's own volumes are not counted: they exist without the machine."""
    request = machine.request
    disks = [(request.spec.root_volume_type, request.spec.root_volume_size)]
    disks += [(_NEW_DISK, volume.size) for volume in request.volumes if not volume.volume_id]
    public_ip = spec.ec2.connectivity == PUBLIC
    return prices.hourly_cost(machine.kind, machine.region, spot=request.spot, disks=disks, public_ip=public_ip)
