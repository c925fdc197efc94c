"""The cost of a cluster's machines: in the preview, against the budget, and while they exist.

`ledger.json` in the cluster's folder stores the observed instances, because EC2 forgets an instance about an hour after its end.
"""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ....agent.files import write_whole
from ....errors import SpecError
from ....paths import make_private, read_json
from ....plan.inventory import Inventory
from ....plan.plan import Plan, starts_new_run
from ....plan.scheduler import Machine
from ....spec.cluster import ClusterSpec
from ....spec.ec2 import PUBLIC
from ....units import dollars, text_of_seconds
from ...base import ClusterRef, MachineCost, ObservedCost
from ..aws import api
from ..machine import ssh
from ..machine.machines import planned_instance
from ..machine.model import Instance
from . import cost_ledger, prices
from .cost_ledger import Ledger, LedgerEntry

_FILE = "ledger.json"
_NEW_DISK = "gp3"


_END_SECONDS = 60.0
"""What the end of a run needs beside `stop_grace_period` and `idle_timeout`: uploads, and the manager ends last."""


def refuse(cluster: ClusterRef, spec: ClusterSpec, plan: Plan, inventory: Inventory) -> None:
    """Check the plan against its budget.

    Raises:
        SpecError: the machines may cost more; or they have cost as much, and the update would create machines, begin a run, or give the
            present one this budget.
    """
    needed, budget = plan.needed_machines, spec.ec2.budget
    if needed and budget:
        where = f"{spec.name}: ec2.budget"
        prices.refuse_over_budget(where, _hourly_cost(spec, plan), spec.ec2.max_lifetime, budget)
        if not all(machine.exists for machine in needed) or _needs_money(plan, inventory):
            spent = cost_ledger.spent(_read(cluster).entries, ssh.region(cluster), time.time()).usd
            rest = _cost_to_end(_hourly_cost(spec, plan), spec.stop_grace_period, spec.ec2.idle_timeout)
            if spent + rest >= budget:
                used = f"the machines of this cluster have cost {dollars(spent)} already, and {dollars(rest)} is needed to end a run"
                raise SpecError(where, f"is {dollars(budget)}, and {used}", "Raise the budget, or remove it.")


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
        prices.cost_line(_hourly_cost(spec, plan), spec.ec2.max_lifetime),
        f"cost after the machines are terminated: {billed_after}",
    ]
    if spec.ec2.idle_timeout:
        lines.append(
            f"idle_timeout: a machine terminates itself after {text_of_seconds(spec.ec2.idle_timeout)} without a task"
        )
    return lines


def save_plan(cluster: ClusterRef, spec: ClusterSpec, plan: Plan) -> None:
    """Store what the plan knows of the machines that `pulumi up` creates: EC2 does not report their disks with them."""
    needed = plan.needed_machines
    planned = {machine.name: _billable_machine(spec, machine) for machine in needed}
    ledger = _read(cluster)
    billed_after = tuple(_billed_after(spec, needed)) if needed else ledger.billed_after
    limited = replace(ledger, lifetime=spec.ec2.max_lifetime, idle=spec.ec2.idle_timeout)
    _write(cluster, ledger, replace(limited, planned=planned, billed_after=billed_after))


def record_observation(cluster: ClusterRef, instances: Sequence[Instance]) -> None:
    """Add the existing instances to the ledger, and the end of those that no longer exist."""
    ledger = _read(cluster)
    live = [_entry(ledger, instance) for instance in instances]
    reasons = api.transition_reasons(ssh.region(cluster), cost_ledger.vanished(ledger, live))
    _write(cluster, ledger, cost_ledger.updated(ledger, live, reasons, time.time()))


def not_created(cluster: ClusterRef) -> dict[str, str]:
    """The machines of the last plan of this computer of which no observation has seen an instance, and that as their status."""
    ledger = _read(cluster)
    return dict.fromkeys(ledger.planned.keys() - {entry.machine for entry in ledger.entries}, "not created")


def current_cost(cluster: ClusterRef) -> ObservedCost:
    """The cost as of the last observation."""
    region, ledger, now = ssh.region(cluster), _read(cluster), time.time()
    live = [entry for entry in ledger.entries if entry.ended is None]
    hourly = prices.total(prices.hourly_cost(entry.billable, region) for entry in live)
    spent = cost_ledger.spent(ledger.entries, region, now)
    most = cost_ledger.final_cost(ledger.entries, region)
    names = dict.fromkeys(entry.machine for entry in ledger.entries)
    return ObservedCost(
        {
            "currency": prices.CURRENCY,
            "per_hour": hourly.known,
            "maximum": most.known if most else None,
            "spent": spent.known,
            "summary": f"{hourly.text('/h')} now, {spent.text()} so far",
            "prices_date": prices.price_table().date,
            "billed_after": list(ledger.billed_after),
        },
        {name: _machine_cost(ledger.entries, name, region, now) for name in names},
    )


def for_run(cluster: ClusterRef, grace: float) -> dict[str, float]:
    """The fields of `RunSpec` about cost, as of the last observation. Unknown prices, and instances that only another computer has
    observed, are not counted. A machine that is no longer planned still exists at this moment, and is
    deleted next: it costs no more. `grace` is what the tasks of the run have to end."""
    region, ledger = ssh.region(cluster), _read(cluster)
    staying = [entry for entry in ledger.entries if entry.ended is None and entry.machine in ledger.planned]
    hourly = prices.total(prices.hourly_cost(entry.billable, region) for entry in staying)
    spent = cost_ledger.spent_before(ledger.entries, staying, region, time.time())
    rest = _cost_to_end(hourly, grace, ledger.idle)
    return {"cost_per_hour": hourly.usd, "cost_before": spent.usd, "cost_to_end": rest}


def _cost_to_end(hourly: prices.Amount, grace: float, idle: float) -> float:
    """What machines cost from the end of a run until they have terminated themselves. With an `idle` of 0 they do not."""
    return prices.cost_over(hourly, grace + idle + _END_SECONDS).usd


def _machine_cost(entries: Iterable[LedgerEntry], name: str, region: str, now: float) -> MachineCost:
    """The price of the present instance of a machine, and the cost of all its instances."""
    instances = [entry for entry in entries if entry.machine == name]
    live = prices.total(prices.hourly_cost(entry.billable, region) for entry in instances if entry.ended is None)
    return {"per_hour": live.known, "spent": cost_ledger.spent(instances, region, now).known}


def _hourly_cost(spec: ClusterSpec, plan: Plan) -> prices.Amount:
    return prices.total(
        prices.hourly_cost(_billable_machine(spec, machine), machine.region) for machine in plan.needed_machines
    )


def _billed_after(spec: ClusterSpec, machines: Sequence[Machine]) -> list[str]:
    volumes = (volume for machine in machines for volume in planned_instance(machine).request.volumes)
    volume_ids = list(dict.fromkeys(volume.volume_id for volume in volumes if volume.volume_id))
    keep_record, keep_files = spec.ec2.retain_record, spec.container.retain_volumes
    return prices.billed_after_machines(machines[0].region, spec.ec2.efs, keep_record, keep_files, volume_ids)


def _billable_machine(spec: ClusterSpec, machine: Machine) -> prices.BillableMachine:
    """The user's own volumes are not counted: they exist without the machine."""
    request = planned_instance(machine).request
    root = prices.Disk(request.spec.root_volume_type, request.spec.root_volume_size)
    new_disks = (prices.Disk(_NEW_DISK, volume.size) for volume in request.volumes if not volume.volume_id)
    public_ip = spec.ec2.connectivity == PUBLIC
    return prices.BillableMachine(machine.kind, request.spot, (root, *new_disks), public_ip)


def _entry(ledger: Ledger, instance: Instance) -> LedgerEntry:
    """An instance as EC2 reports it, with the disks of the plan that this computer made."""
    planned = ledger.planned.get(instance.machine)
    disks = planned.disks if planned and planned.instance_type == instance.instance_type else None
    billable = prices.BillableMachine(instance.instance_type, instance.spot, disks, bool(instance.public_ip))
    return LedgerEntry(instance.instance_id, instance.machine, billable, instance.launched, ledger.lifetime)


def _file(cluster: ClusterRef) -> Path:
    return ssh.folder(cluster) / _FILE


def _read(cluster: ClusterRef) -> Ledger:
    """The stored ledger; an empty one where none is stored.

    Raises:
        SpecError: the file is damaged, or of another version.
    """
    try:
        return read_json(_file(cluster), Ledger.from_dict)
    except FileNotFoundError:
        return Ledger(())


def _write(cluster: ClusterRef, before: Ledger, after: Ledger) -> None:
    if after != before:
        make_private(ssh.folder(cluster))
        write_whole(_file(cluster), json.dumps(after.to_dict(), indent=1))
