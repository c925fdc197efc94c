"""The cost of a cluster's machines: in the preview, against the budget, and while they exist. `prices.csv` has the prices of
machines, disks and addresses. Pure.

A price that the table does not have is unknown, never 0. A spot instance counts as on demand, which is the most that it can cost.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ...agent.control.end_policy import spent
from ...agent.model.run_state import RunState
from ...errors import SpecError
from ...outputs import CostSummary
from ...plan.inventory import Inventory, RunCost
from ...plan.plan import Plan, starts_new_run
from ...plan.scheduler import Machine
from ...spec.cluster import ClusterSpec
from ...spec.ec2 import NEW, PUBLIC
from ...units import counted, dollars, text_of_seconds
from .machine.model import Ec2Machine, ec2_machine

_NEW_DISK = "gp3"
_DIGITS = 6

_END_SECONDS = 60.0
"""What the end of a run needs beside `stop_grace_period` and `idle_timeout`: uploads, and the manager ends last."""

ENDING_SECONDS = 420.0
"""How long a machine may outlive its lifetime: the manager waits for the other machines and for the upload of the record."""

_HOUR = 3600.0
_HOURS_A_MONTH = 720.0
"""The length of a month for EBS. https://aws.amazon.com/ebs/pricing/"""

_SIZES = {"nano": 1 / 16, "micro": 1 / 8, "small": 1 / 4, "medium": 1 / 2, "large": 1.0, "xlarge": 2.0}
_XLARGE = re.compile(r"([0-9]+)xlarge")


@dataclass(frozen=True)
class PriceTable:
    """The prices of one day."""

    date: str
    rows: Mapping[str, Mapping[str, float]]
    """Name of a row (an instance type, a family, `ebs gp3`, `efs`, …) to region to USD."""


@dataclass(frozen=True)
class Amount:
    """A sum of money, parts of which may be unknown."""

    usd: float = 0.0
    """The known part."""
    unknown: tuple[str, ...] = ()
    """One text for each machine with an unknown price: the parts without a price."""
    is_maximum: bool = False
    """True where `usd` may be more than the bill."""

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.usd + other.usd, (*self.unknown, *other.unknown), self.is_maximum or other.is_maximum)

    @property
    def known(self) -> float | None:
        """The sum in USD; None where a part is unknown."""
        return None if self.unknown else round(self.usd, 4)

    def text(self, per: str = "") -> str:
        """The sum as text: `at most $1.23/h` for `per="/h"`."""
        number = f"{dollars(self.usd)}{per}"
        if not self.unknown:
            return f"at most {number}" if self.is_maximum else number
        names = ", ".join(sorted(set(self.unknown)))
        bound = "" if self.is_maximum else "at least "
        return f"{bound}{number}, plus {counted(len(self.unknown), 'machine')} with unknown prices ({names})"


@cache
def price_table() -> PriceTable:
    """The table of this package; it is read at the first call."""
    lines = files(__package__).joinpath("prices.csv").read_text(encoding="utf-8").splitlines()
    date = next(line for line in lines if line.startswith("# at:")).partition(":")[2].strip()
    header, *rows = (line.split(",") for line in lines if not line.startswith("#"))
    prices = {
        name: {region: float(cell) for region, cell in zip(header[1:], cells, strict=True) if cell}
        for name, *cells in rows
    }
    return PriceTable(date, prices)


def instance_price(instance_type: str, region: str) -> float | None:
    """USD per hour on demand; None where the table does not have it."""
    rows = price_table().rows
    family, _, size = instance_type.partition(".")
    if size and instance_type in rows:
        return rows[instance_type].get(region)
    large = rows.get(family, {}).get(region)
    multiple = _XLARGE.fullmatch(size)
    factor = 2.0 * int(multiple[1]) if multiple else _SIZES.get(size)
    return large * factor if large is not None and factor else None


def storage_price(row: str, gib: float, region: str) -> float | None:
    """USD per hour for so much storage of a kind that AWS bills by the month; None where the table does not have it."""
    month = price_table().rows.get(row, {}).get(region)
    return None if month is None else month * gib / _HOURS_A_MONTH


def hourly_cost(
    instance_type: str,
    region: str,
    *,
    spot: bool = False,
    disks: Iterable[tuple[str, int]] = (),
    public_ip: bool = True,
) -> Amount:
    """The cost of one machine per hour: the instance, its disks (the kind and the GiB of each), its public address."""
    parts = [(instance_type, instance_price(instance_type, region))]
    parts += [(f"{kind} disk", storage_price(f"ebs {kind}", gib, region)) for kind, gib in disks]
    parts += [("public address", price_table().rows["ipv4"].get(region))] if public_ip else []
    missing = list(dict.fromkeys(name for name, usd in parts if usd is None))
    usd = sum(usd for _, usd in parts if usd is not None)
    return Amount(usd, (" and ".join(missing),) if missing else (), spot)


def total(amounts: Iterable[Amount]) -> Amount:
    """The sum of amounts."""
    return sum(amounts, Amount())


def cost_over(hourly: Amount, seconds: float) -> Amount:
    """The cost of a period, from the cost per hour."""
    return Amount(hourly.usd * seconds / _HOUR, hourly.unknown, hourly.is_maximum)


def maximum_cost(hourly: Amount, lifetime: float) -> Amount | None:
    """The most that machines cost until they terminate themselves after `lifetime` seconds; None without a lifetime (0)."""
    return cost_over(hourly, lifetime + ENDING_SECONDS) if lifetime else None


def monthly_price(row: str, region: str) -> str:
    """The price of storage as text."""
    month = price_table().rows[row].get(region)
    return "price unknown" if month is None else f"{dollars(month)} per GiB and month"


def refuse(spec: ClusterSpec, plan: Plan, inventory: Inventory, so_far: float) -> None:
    """Check the plan against its budget; `so_far` is what the machines of the cluster have cost.

    Raises:
        SpecError: the machines may cost more; or they have cost as much, and the update would create machines, begin a run, or give the
            present one this budget.
    """
    needed, budget = plan.needed_machines, spec.ec2.budget
    if needed and budget:
        where = f"{spec.name}: ec2.budget"
        hourly = _cluster_cost(spec, needed)
        _refuse_over_budget(where, hourly, spec.ec2.max_lifetime, budget)
        if not all(machine.exists for machine in needed) or _needs_money(plan, inventory):
            rest = _cost_to_end(spec, hourly)
            if so_far + rest >= budget:
                used = f"the machines of this cluster have cost {dollars(so_far)} already, and {dollars(rest)} is needed to end a run"
                raise SpecError(where, f"is {dollars(budget)}, and {used}", "Raise the budget, or remove it.")


def _refuse_over_budget(where: str, hourly: Amount, lifetime: float, budget: float) -> None:
    """The maximum cost is larger than the budget, or cannot be computed."""
    most = maximum_cost(hourly, lifetime)
    if most is None:
        wrong = f"is {dollars(budget)}, but without a max_lifetime the cost of the machines has no limit"
        raise SpecError(where, wrong, 'Set a max_lifetime, such as "72h", or remove the budget.')
    if most.unknown:
        names = ", ".join(sorted(set(most.unknown)))
        wrong = f"is {dollars(budget)}, but the price table of {price_table().date} has no price for: {names}"
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
        _cost_line(_cluster_cost(spec, needed), spec.ec2.max_lifetime),
        f"cost after the machines are terminated: {billed_after}",
    ]
    if spec.ec2.idle_timeout:
        lines.append(
            f"idle_timeout: a machine terminates itself after {text_of_seconds(spec.ec2.idle_timeout)} without a task"
        )
    return lines


def _cost_line(hourly: Amount, lifetime: float) -> str:
    most = maximum_cost(hourly, lifetime)
    limit = "no maximum without max_lifetime"
    if most is not None:
        number = Amount(most.usd, most.unknown).text()
        limit = f"{number if most.unknown else f'at most {number}'} until max_lifetime ({text_of_seconds(lifetime)})"
    spot = ", spot counted as on-demand" if hourly.is_maximum else ""
    return f"cost: {hourly.text('/h')}, {limit}; prices of {price_table().date}{spot}"


def planned_cost(spec: ClusterSpec, machines: Sequence[Machine]) -> CostSummary:
    """What the plan knows of the output `cost`."""
    hourly = _cluster_cost(spec, machines)
    most = maximum_cost(hourly, spec.ec2.max_lifetime)
    return {
        "currency": "USD",
        "per_hour": hourly.known,
        "maximum": most.known if most else None,
        "prices_date": price_table().date,
        "billed_after": _billed_after(spec, machines),
        "idle_timeout": spec.ec2.idle_timeout,
        "max_lifetime": spec.ec2.max_lifetime,
    }


def run_cost(spec: ClusterSpec, machines: Sequence[Machine]) -> RunCost:
    """The fields of `RunSpec` about the cost of these machines, the same in whatever order. The controller counts it."""
    hourly = _cluster_cost(spec, machines)
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
    return cost_over(hourly, spec.stop_grace_period + spec.ec2.idle_timeout + _END_SECONDS).usd


def _cluster_cost(spec: ClusterSpec, machines: Sequence[Machine]) -> Amount:
    return total(_machine_cost(spec, ec2_machine(machine)) for machine in machines)


def _billed_after(spec: ClusterSpec, machines: Sequence[Machine]) -> list[str]:
    """What AWS still bills when the machines are terminated."""
    region, efs, lines = machines[0].region, spec.ec2.efs, []
    if efs == NEW:
        lines.append(f"the file system (EFS), {_until(spec.container.retain_volumes)}, {monthly_price('efs', region)}")
    elif efs:
        lines.append(f"your file system {efs}, {monthly_price('efs', region)}")
    lines.append(f"the record in S3, {_until(spec.ec2.retain_record)}, {monthly_price('s3', region)}")
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
    return hourly_cost(machine.kind, machine.region, spot=request.spot, disks=disks, public_ip=public_ip)
