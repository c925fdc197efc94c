"""How the runs of a record went, and what each cost; stored in their receipts, because records lose runs, and prices are only known
while a cluster exists."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from .. import receipts
from ..agent import events
from ..agent.record.record import Record
from ..agent.run_state import RunState, moves_after
from ..backends.base import ClusterRef, ObservedState
from ..receipts import Receipt, RunOutcome
from ..spec.backends import BACKENDS
from .run_history import outcome_of
from .stored_progress import speed

Billed = tuple[float, float, float | None]
"""When an instance began and ended, in seconds since 1970, and its price per hour in USD."""


@dataclass(frozen=True)
class RecordSource:
    """A record, and what is known beside it."""

    cluster: ClusterRef
    record: Record
    patterns: Mapping[str, str]
    """Name of a metric to its pattern."""
    current: str = ""
    """The id of the current run, if the cluster exists."""
    billed: Sequence[Billed] = field(default_factory=tuple)
    observed: Mapping[str, str] = field(default_factory=dict)
    """The metrics of the current run as its controller has them; they are not read again while it runs."""


def observed_source(cluster: ClusterRef, observed: ObservedState, patterns: Mapping[str, str]) -> RecordSource:
    """The record of a cluster that was just observed."""
    run, record = observed.view.run_state, Record(Path(observed.record_folder), stores_matches=True)
    current, billed = run.spec.id if run else "", observed.machines.cost.billed
    return RecordSource(cluster, record, patterns, current, billed, observed.view.metrics)


def store_outcomes(source: RecordSource, seconds: float) -> None:
    """Store how the runs of a record went, where a receipt does not have that yet. It takes little more than `seconds`: what is missing
    is left to the next call. A run that cannot be read is left out."""
    deadline = time.monotonic() + seconds
    for run_id, receipt in receipts.read_all(source.cluster).items():
        if time.monotonic() <= deadline:
            with suppress(Exception):  # no update fails because a former run cannot be read
                state = source.record.load(run_id)
                if state is not None and not _is_complete(source, _same_run(receipt.outcome, state)):
                    stored_outcome(source, state, receipt, deadline)


def stored_outcome(source: RecordSource, state: RunState, receipt: Receipt | None, deadline: float) -> RunOutcome:
    """How a run went. Where its receipt does not have that yet, and time is left, it is stored there, with the speed."""
    earlier = receipt.outcome if receipt else None
    went = outcome(source, state, deadline, earlier)
    if receipt is None or went is earlier or _is_complete(source, _same_run(earlier, state)):
        return went
    if time.monotonic() > deadline:  # some metrics may not have been read
        return went
    latest = went
    with suppress(Exception):  # a run whose output cannot be read is shown without its speed
        latest = replace(went, steps_per_second=speed(source.record, state))
        receipts.write_outcome(source.cluster, state.spec.id, latest)
    return latest


def _same_run(earlier: RunOutcome | None, state: RunState) -> RunOutcome | None:
    """What the receipt has of this run; it is that of another one where the record was lost."""
    return earlier if earlier is not None and earlier.submitted == state.submitted_at else None


def _is_complete(source: RecordSource, earlier: RunOutcome | None) -> bool:
    """Whether nothing changes any more of what is known of a run, and nothing more can be observed."""
    if earlier is None or not earlier.is_final:
        return False
    cost = earlier.stays[-1] if earlier.stays else earlier.cost
    return cost is not None or not source.billed


def outcome(source: RecordSource, state: RunState, deadline: float, earlier: RunOutcome | None = None) -> RunOutcome:
    """How a run went. `earlier` is what its receipt has: what cannot be observed any more is taken from there."""
    record, run_id = source.record, state.spec.id
    stored = _same_run(earlier, state)
    happened = record.events(run_id) if moves_after(state) else ()
    moves = [event for event in happened if event.kind == events.RUN_MOVED]
    if stored is not None and len(stored.stays) > 1 + len(moves):
        return stored  # this is the record of a place that the run has left
    if run_id == source.current and state.result is None:
        values = source.observed
    else:
        values = record.metrics(state, dict(source.patterns), max(0.0, deadline - time.monotonic()))
    former = stored or RunOutcome(0.0)
    metrics = {name: values.get(name, former.metrics.get(name)) for name in source.patterns}
    latest = outcome_of(state, metrics, run_id == source.current)
    latest = replace(latest, steps_per_second=former.steps_per_second)
    last = _last_stay(source, run_id, latest, stored, moves)
    if not moves:
        return replace(latest, cost=last)
    # What each stay before the last move cost was stored when the run left.
    costs = [*_known_stays(stored), *[None] * len(moves)][: len(moves)]
    billed = [cost if _is_billed(move.origin) else 0.0 for cost, move in zip(costs, moves, strict=True)]
    stays = (*billed, last)
    return replace(latest, stays=stays, cost=round(sum(cost or 0.0 for cost in stays), 4) or None)


def _resumptions(record: Record, run_id: str) -> int:
    """How often a run was resumed since its last move, if it has moved."""
    kinds = [event.kind for event in record.events(run_id)]
    begin = len(kinds) - kinds[::-1].index(events.RUN_MOVED) if events.RUN_MOVED in kinds else 0
    return kinds[begin:].count(events.RUN_RESUMED)


def _last_stay(
    source: RecordSource, run_id: str, latest: RunOutcome, stored: RunOutcome | None, moves: Sequence[events.Event]
) -> float | None:
    """What a run cost since its submission, or since its last move."""
    stays = _known_stays(stored)
    begin, end = moves[-1].at if moves else latest.submitted, time.time() if latest.ended is None else latest.ended
    if moves and (end <= begin or not _is_billed(moves[-1].place)):
        return 0.0  # a run that had ended before moves with its record
    if len(stays) == 1 + len(moves) and (not source.billed or _is_complete(source, stored)):
        return stays[-1]
    # Other runs were between the two parts of a run that was resumed; a run that moves is resumed once, when it arrives.
    is_whole = not source.billed or _resumptions(source.record, run_id) <= min(1, len(moves))
    return run_cost(source.billed, begin, end) if is_whole else None


def _known_stays(stored: RunOutcome | None) -> tuple[float | None, ...]:
    return (stored.stays or (stored.cost,)) if stored else ()


def _is_billed(backend: str) -> bool:
    return backend not in BACKENDS or BACKENDS[backend].is_billed


def run_cost(billed: Sequence[Billed], begin: float, end: float) -> float | None:
    """What instances cost in this time, in USD; None where there was none, or the price of one is unknown."""
    spans = [(min(until, end) - max(since, begin), price) for since, until, price in billed]
    used = [(seconds / 3600.0, price) for seconds, price in spans if seconds > 0]
    costs = [hours * price for hours, price in used if price is not None]
    return round(sum(costs), 4) if costs and len(costs) == len(used) else None
