"""The ledger of a cluster: which instances were observed, since when and until when, and what they have cost. Pure.

Each observation adds to it. A terminated instance counts until the time that EC2 reports. Where EC2 no longer reports it, it counts
until the end of its lifetime, when it terminated itself at the latest.
"""

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ....agent.json_data import JsonData
from .prices import ENDING_SECONDS, LEAST_SECONDS, Amount, BillableMachine, cost_over, hourly_cost, total

_MOMENT = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")


@dataclass(frozen=True)
class LedgerEntry(JsonData):
    """One instance. Times are in seconds since 1970."""

    instance_id: str
    machine: str
    billable: BillableMachine
    launched: float
    lifetime: float = 0.0
    """Seconds after which it terminates itself; 0 for never."""
    ended: float | None = None
    """None while it exists."""
    ended_at_latest: bool = False
    """True where `ended` is an upper bound, because EC2 did not report the time."""


@dataclass(frozen=True)
class Ledger(JsonData):
    """All observed instances, and the last plan, which knows what EC2 does not report of new ones."""

    entries: tuple[LedgerEntry, ...]
    planned: Mapping[str, BillableMachine] = field(default_factory=dict)
    """The machines of the last plan, by name."""
    lifetime: float = 0.0
    billed_after: tuple[str, ...] = ()
    """What AWS still bills when the machines are terminated."""
    idle: float = 0.0
    """Seconds without a task after which a machine terminates itself; 0 for never."""


def end_time(reason: str) -> float | None:
    """The time in a `StateTransitionReason`, such as `User initiated (2026-11-21 14:05:11 GMT)`; None without one.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Instance.html
    """
    moment = _MOMENT.search(reason)
    if moment is None:
        return None
    try:
        return datetime.datetime.fromisoformat(f"{moment[1]}+00:00").timestamp()
    except ValueError:
        return None


def vanished(ledger: Ledger, live: Sequence[LedgerEntry]) -> list[str]:
    """The ids of instances that existed at the last observation and are not in `live`."""
    live_ids = {entry.instance_id for entry in live}
    return [entry.instance_id for entry in ledger.entries if entry.ended is None and entry.instance_id not in live_ids]


def updated(ledger: Ledger, live: Sequence[LedgerEntry], reasons: Mapping[str, str], now: float) -> Ledger:
    """The ledger after an observation at `now`: `live` exist, `reasons` is EC2's `StateTransitionReason` of others by id."""
    live_by_id = {entry.instance_id: entry for entry in live}
    known_ids = {entry.instance_id for entry in ledger.entries}
    entries = [
        _still_live(entry, live_by_id[entry.instance_id])
        if entry.instance_id in live_by_id
        else _ended(entry, reasons.get(entry.instance_id, ""), now)
        for entry in ledger.entries
    ]
    new = (entry for entry in live_by_id.values() if entry.instance_id not in known_ids)
    return replace(ledger, entries=(*entries, *new))


def _still_live(entry: LedgerEntry, observed: LedgerEntry) -> LedgerEntry:
    """The first observation counts, except for what EC2 and the plan add later: the address and the disks."""
    public_ip = entry.billable.public_ip or observed.billable.public_ip
    disks = observed.billable.disks if entry.billable.disks is None else entry.billable.disks
    billable = replace(entry.billable, public_ip=public_ip, disks=disks)
    return replace(entry, billable=billable, ended=None, ended_at_latest=False)


def _ended(entry: LedgerEntry, reason: str, now: float) -> LedgerEntry:
    reported = end_time(reason)
    if reported is not None:
        return replace(entry, ended=max(reported, entry.launched), ended_at_latest=False)
    return entry if entry.ended is not None else replace(entry, ended=_latest_end(entry, now), ended_at_latest=True)


def _latest_end(entry: LedgerEntry, now: float) -> float:
    latest = max(now, entry.launched)
    return min(latest, entry.launched + entry.lifetime + ENDING_SECONDS) if entry.lifetime else latest


def spent(entries: Sequence[LedgerEntry], region: str, now: float) -> Amount:
    """The cost of these instances until `now`."""
    return total(_spent(entry, region, now) for entry in entries)


def spent_before(entries: Sequence[LedgerEntry], staying: Sequence[LedgerEntry], region: str, now: float) -> Amount:
    """The cost of these instances until `now`, to which a controller adds what the staying ones cost from then on: theirs is without
    the shortest time that AWS bills, of which the rest would count twice."""
    ended = spent([entry for entry in entries if entry not in staying], region, now)
    ages = ((hourly_cost(entry.billable, region), max(now - entry.launched, 0.0)) for entry in staying)
    return total([ended, *(cost_over(hourly, age) for hourly, age in ages)])


def final_cost(entries: Sequence[LedgerEntry], region: str) -> Amount | None:
    """The most that these instances cost until all have terminated themselves; None where one never does."""
    live = [entry for entry in entries if entry.ended is None]
    if not all(entry.lifetime for entry in live):
        return None
    latest = max((entry.launched + entry.lifetime + ENDING_SECONDS for entry in live), default=0.0)
    return spent(entries, region, latest)


def _spent(entry: LedgerEntry, region: str, now: float) -> Amount:
    until = _latest_end(entry, now) if entry.ended is None else entry.ended
    cost = cost_over(hourly_cost(entry.billable, region), max(until - entry.launched, LEAST_SECONDS))
    return replace(cost, is_maximum=cost.is_maximum or entry.ended_at_latest)
