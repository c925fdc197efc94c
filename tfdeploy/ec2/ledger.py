"""What a cluster's machines have cost so far: which were seen, since when, and until when. Pure.

Each look adds to it. A machine that has ended is billed until the time that EC2 tells; where it no longer tells, until the end of
the lifetime that the machine ended itself by, which is the most that it can have cost.
"""

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from .prices import ENDING_SECONDS, LEAST_SECONDS, Amount, Disk, Rented, over, per_hour, total

_TOLD = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")


@dataclass(frozen=True)
class Entry:
    """One instance. Times are in seconds since 1970."""

    instance_id: str
    machine: str
    rented: Rented
    launched: float
    lifetime: float = 0.0
    """Seconds after which it ends itself; 0 for never."""
    ended: float | None = None
    """None while it lives."""
    most: bool = False
    """Whether `ended` is a bound, and not told."""


@dataclass(frozen=True)
class Ledger:
    """All instances that were seen, and what the last plan said of those that it makes."""

    entries: tuple[Entry, ...] = ()
    planned: Mapping[str, Rented] = field(default_factory=dict)
    """Machine to what it is made of."""
    lifetime: float = 0.0
    after: tuple[str, ...] = ()
    """What bills on after the machines."""


def ended_at(reason: str) -> float | None:
    """When an instance ended, from EC2's `StateTransitionReason`, `User initiated (2026-11-21 14:05:11 GMT)`; None where it tells none.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Instance.html
    """
    found = _TOLD.search(reason)
    if found is None:
        return None
    try:
        return datetime.datetime.fromisoformat(f"{found[1]}+00:00").timestamp()
    except ValueError:
        return None


def missing(ledger: Ledger, live: Sequence[Entry]) -> list[str]:
    """The ids of those that lived at the last look and no longer do: EC2 is asked for their end."""
    there = {entry.instance_id for entry in live}
    return [entry.instance_id for entry in ledger.entries if entry.ended is None and entry.instance_id not in there]


def merged(ledger: Ledger, live: Sequence[Entry], reasons: Mapping[str, str], now: float) -> Ledger:
    """The ledger after a look at `now`: `live` are there, `reasons` is what EC2 tells of the end of others, by id."""
    seen = {entry.instance_id: entry for entry in live}
    known = {entry.instance_id for entry in ledger.entries}
    kept = [
        _again(entry, seen[entry.instance_id])
        if entry.instance_id in seen
        else _gone(entry, reasons.get(entry.instance_id, ""), now)
        for entry in ledger.entries
    ]
    return replace(ledger, entries=(*kept, *(entry for entry in seen.values() if entry.instance_id not in known)))


def _again(entry: Entry, seen: Entry) -> Entry:
    """What was known of it at first stands, but for what comes late: its address, and its disks."""
    address = entry.rented.public_ip or seen.rented.public_ip
    disks = seen.rented.disks if entry.rented.disks is None else entry.rented.disks
    return replace(entry, rented=replace(entry.rented, public_ip=address, disks=disks), ended=None, most=False)


def _gone(entry: Entry, reason: str, now: float) -> Entry:
    told = ended_at(reason)
    if told is not None:
        return replace(entry, ended=max(told, entry.launched), most=False)
    return entry if entry.ended is not None else replace(entry, ended=_bound(entry, now), most=True)


def _bound(entry: Entry, now: float) -> float:
    """The latest time that it can have stood until."""
    latest = max(now, entry.launched)
    return min(latest, entry.launched + entry.lifetime + ENDING_SECONDS) if entry.lifetime else latest


def spent(entries: Sequence[Entry], region: str, now: float) -> Amount:
    """What these have cost until `now`."""
    return total(_spent(entry, region, now) for entry in entries)


def at_end(entries: Sequence[Entry], region: str) -> Amount | None:
    """The most that these will have cost when all have ended themselves; None where one that lives never does."""
    live = [entry for entry in entries if entry.ended is None]
    if not all(entry.lifetime for entry in live):
        return None
    latest = max((entry.launched + entry.lifetime + ENDING_SECONDS for entry in live), default=0.0)
    return spent(entries, region, latest)


def _spent(entry: Entry, region: str, now: float) -> Amount:
    until = _bound(entry, now) if entry.ended is None else entry.ended
    found = over(per_hour(entry.rented, region), max(until - entry.launched, LEAST_SECONDS))
    return replace(found, most=found.most or entry.most)


def to_dict(ledger: Ledger) -> dict[str, Any]:
    """As JSON can hold it."""
    return asdict(ledger)


def from_dict(data: Mapping[str, Any]) -> Ledger:
    """What `to_dict` made, also after JSON."""
    return Ledger(
        tuple(Entry(**{**entry, "rented": _rented(entry["rented"])}) for entry in data["entries"]),
        {name: _rented(item) for name, item in data["planned"].items()},
        data["lifetime"],
        tuple(data["after"]),
    )


def _rented(data: Mapping[str, Any]) -> Rented:
    disks = None if data["disks"] is None else tuple(Disk(**disk) for disk in data["disks"])
    return Rented(**{**data, "disks": disks})
