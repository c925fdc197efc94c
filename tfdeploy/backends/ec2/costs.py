"""What a cluster's machines cost: told before they are made, refused above the budget, and kept as they come and go.

`ledger.json` in the cluster's folder remembers the machines: EC2 forgets them about an hour after their end.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...ec2 import account, ledger, prices
from ...ec2.facts import Instance
from ...errors import SpecError
from ...instances import PUBLIC
from ...placement import Machine
from ...plan import Plan
from ...quantities import text_of_seconds
from ...spec import ClusterSpec
from ..base import Cluster
from ..folders import make_private, put
from . import fleet, reach

_FILE = "ledger.json"
_NEW_DISK = "gp3"


def refuse(spec: ClusterSpec, plan: Plan) -> None:
    """A plan must not cost more than its budget.

    Raises:
        SpecError: it may.
    """
    if not _standing(plan):
        return
    found = prices.beyond(_hourly(spec, plan), spec.fleet.lifetime, spec.fleet.budget)
    if found:
        raise SpecError(f"{spec.name}: budget", *found)


def sentences(spec: ClusterSpec, plan: Plan) -> list[str]:
    """What the plan costs, and what ends the machines; none where no machine shall stand."""
    standing = _standing(plan)
    if not standing:
        return []
    told = [prices.sentence(_hourly(spec, plan), spec.fleet.lifetime, _after(spec, standing))]
    if spec.fleet.idle:
        told.append(f"a machine ends itself when no task has run on it for {text_of_seconds(spec.fleet.idle)}")
    return told


def keep_plan(cluster: Cluster, spec: ClusterSpec, plan: Plan) -> None:
    """Remember what the machines are made of that come next."""
    standing = _standing(plan)
    planned = {machine.name: _rented(spec, machine) for machine in standing}
    before = _read(cluster)
    after = tuple(_after(spec, standing)) if standing else before.after
    _write(cluster, before, replace(before, planned=planned, lifetime=spec.fleet.lifetime, after=after))


def look(cluster: Cluster, there: Sequence[Instance]) -> None:
    """Keep who is there, and the end of those who no longer are."""
    before = _read(cluster)
    live = [_entry(before, one) for one in there]
    reasons = account.endings(reach.region(cluster), ledger.missing(before, live))
    _write(cluster, before, ledger.merged(before, live, reasons, time.time()))


def told(cluster: Cluster) -> dict[str, Any]:
    """What the machines cost (`Sight.cost`), as the last look left it."""
    region, known, now = reach.region(cluster), _read(cluster), time.time()
    live = [entry for entry in known.entries if entry.ended is None]
    hourly = prices.total(prices.per_hour(entry.rented, region) for entry in live)
    spent = ledger.spent(known.entries, region, now)
    most = ledger.at_end(known.entries, region)
    return {
        "currency": prices.CURRENCY,
        "per_hour": hourly.known,
        "maximum": most.known if most else None,
        "spent": spent.known,
        "told": f"{hourly.text('/h')} now; {spent.text()} so far",
        "prices_of": prices.table().at,
        "after": list(known.after),
        "machines": {name: _row(known.entries, name, region, now) for name in _names(known.entries)},
    }


def _row(entries: Iterable[ledger.Entry], name: str, region: str, now: float) -> dict[str, float | None]:
    """One machine's price, and what all instances of that name have cost."""
    own = [entry for entry in entries if entry.machine == name]
    live = prices.total(prices.per_hour(entry.rented, region) for entry in own if entry.ended is None)
    return {"per_hour": live.known, "spent": ledger.spent(own, region, now).known}


def _names(entries: Iterable[ledger.Entry]) -> list[str]:
    return list(dict.fromkeys(entry.machine for entry in entries))


def _standing(plan: Plan) -> list[Machine]:
    return [machine for machine in plan.machines if machine.name not in plan.unneeded]


def _hourly(spec: ClusterSpec, plan: Plan) -> prices.Amount:
    return prices.total(prices.per_hour(_rented(spec, machine), machine.region) for machine in _standing(plan))


def _after(spec: ClusterSpec, machines: Sequence[Machine]) -> list[str]:
    sources = (source for machine in machines for source in fleet.plot_of(machine)["disks"])
    volumes = list(dict.fromkeys(source for source in sources if source.startswith("vol-")))
    return prices.after(machines[0].region, spec.fleet.efs, spec.fleet.keep_record, volumes)


def _rented(spec: ClusterSpec, machine: Machine) -> prices.Rented:
    plot = fleet.plot_of(machine)
    root = prices.Disk(plot["root_volume_type"], plot["root_volume_size"])
    disks = (root, *_new_disks(plot["disks"]))
    return prices.Rented(plot["instance_type"], plot["spot"], disks, spec.fleet.access == PUBLIC)


def _new_disks(sources: Iterable[str]) -> list[prices.Disk]:
    """Those that are made with a machine; the user's own are there without it."""
    sizes = (source.removesuffix("GiB") for source in sources if not source.startswith("vol-"))
    return [prices.Disk(_NEW_DISK, int(size)) for size in sizes]


def _entry(known: ledger.Ledger, one: Instance) -> ledger.Entry:
    """An instance as EC2 tells it; its disks as the plan of this computer does."""
    planned = known.planned.get(one.machine)
    disks = planned.disks if planned and planned.instance_type == one.instance_type else None
    rented = prices.Rented(one.instance_type, one.spot, disks, bool(one.public_ip))
    return ledger.Entry(one.instance_id, one.machine, rented, one.launched, known.lifetime)


def _file(cluster: Cluster) -> Path:
    return reach.of(cluster) / _FILE


def _read(cluster: Cluster) -> ledger.Ledger:
    """What is kept; nothing where nothing is."""
    try:
        data: Mapping[str, Any] = json.loads(_file(cluster).read_text())
        return ledger.from_dict(data)
    except FileNotFoundError:
        return ledger.Ledger()


def _write(cluster: Cluster, before: ledger.Ledger, now: ledger.Ledger) -> None:
    """Keep it, unless nothing has changed."""
    if now == before:
        return
    make_private(reach.of(cluster))
    put(_file(cluster), json.dumps(ledger.to_dict(now), indent=1))
