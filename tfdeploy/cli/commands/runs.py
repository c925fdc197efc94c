"""`tfdeploy runs`: the runs in the records of a cluster, or of all clusters, with what had changed and how they ended."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ... import registry
from ...agent.record.record import Record
from ...agent.run_state import RunState
from ...backends.parallel_calls import call_in_parallel
from ...paths import cluster_folder
from ...registry import Entry
from ...report.run_history import StoredRun, columns, outcome_of, summaries
from ..common import print_json, print_message, print_result
from ..output import print_table
from ..parser import Parser
from ..select import ClusterQuery, select_cluster
from ..snapshot import take_snapshot

_SECONDS = 30.0
"""Time limit of all observations together."""

_METRIC_SECONDS = 10.0
"""Time limit of reading the metrics of all runs. What was read is stored, so that the next call continues."""


def add_arguments(parser: Parser) -> None:
    """Its options and arguments."""
    text = "The runs of all clusters of this computer."
    parser.add_argument("--all", "-a", action="store_true", dest="everything", help=text)


def runs(query: ClusterQuery, everything: bool = False) -> None:
    """Show the runs of a cluster, the newest first.

    They are shown after `pulumi destroy` too, as long as the record is there.
    CHANGED names what differs from the run before it: arguments, variables of the environment, and the number of tasks. TOOK is the
    time from `pulumi up` to the end of the last task.
    """
    # The last cluster of each stack's resource is the first of its entries.
    last = {entry.stack_key: entry for entry in reversed(registry.entries())} if everything else {}
    clusters = list(last.values()) if everything else [select_cluster(query)]
    rows = summaries(collect_runs(clusters))
    if query.as_json:
        print_json([row.to_dict() for row in rows])
    else:
        _print(rows, everything, query.wide)


@dataclass(frozen=True)
class _StoredRecord:
    """A record on this computer, and what is known beside it."""

    entry: Entry
    """The cluster that it is of."""
    folder: Path
    current: str = ""
    """The id of the current run, if the cluster exists."""
    observed: Mapping[str, str] = field(default_factory=dict)
    """The metrics of the current run as its controller has them; they are not read again while it runs."""


def collect_runs(stacks: Sequence[Entry]) -> list[StoredRun]:
    """All runs in the records of these clusters, and of earlier ones of their stacks."""
    found = call_in_parallel({place: partial(_sources, entry) for place, entry in enumerate(stacks)}, _SECONDS)
    deadline = time.monotonic() + _METRIC_SECONDS
    runs: list[StoredRun] = []
    for place, result in found.items():
        entry = stacks[place]
        for source in _unobserved(entry, result) if isinstance(result, Exception) else result:
            runs += _recorded(entry, source, deadline)
    return runs


def _unobserved(entry: Entry, reason: Exception) -> list[_StoredRecord]:
    print_message(f"{entry.title}: {reason}. Its runs are shown as this computer observed them last.")
    return [_StoredRecord(entry, registry.present_record(entry)), *_archives(entry)]


def _sources(entry: Entry) -> list[_StoredRecord]:
    """The records of a cluster and of earlier ones of its stack, the current one first."""
    if entry.ended:
        return _archives(entry)
    snapshot = take_snapshot(entry, events=0)
    if snapshot.run_state is None:
        return _archives(entry)
    observed = snapshot.observed
    current = _StoredRecord(entry, Path(observed.record_folder), snapshot.run_state.spec.id, observed.view.metrics)
    return [current, *_archives(entry)]


def _archives(entry: Entry) -> list[_StoredRecord]:
    entries = {cluster_folder(other.cluster): other for other in registry.entries()}
    return [_StoredRecord(entries.get(path.parents[1].name, entry), path) for path in registry.stored_records(entry)]


def _recorded(title: Entry, source: _StoredRecord, deadline: float) -> Iterator[StoredRun]:
    """The runs of a record. One of another version is skipped with a message."""
    record = Record(source.folder, stores_matches=True)
    if not record.is_readable():
        print_message(f"{record.folder}: this version of tfdeploy cannot read the record.")
        return
    for run_id in record.runs():
        state = record.load(run_id)
        if state is not None:
            is_current = run_id == source.current
            went = outcome_of(state, _metrics(record, source, state, deadline), is_current)
            where = source.entry.cluster["backend"]
            yield StoredRun(title.stack_key, title.title, where, state.spec, went, record.folder, is_current)


def _metrics(record: Record, source: _StoredRecord, state: RunState, deadline: float) -> dict[str, str | None]:
    patterns = dict(source.entry.expected.metrics)
    values = source.observed
    if state.spec.id != source.current or state.result is not None:
        values = record.metrics(state, patterns, max(0.0, deadline - time.monotonic()))
    return {name: values.get(name) for name in patterns}


def _print(rows: Sequence[StoredRun], everything: bool, wide: bool) -> None:
    if not rows:
        print_result("There are no runs. `pulumi up` submits one.")
        return
    now = time.time()
    shown = columns(rows, everything)
    print_table([{**dict.fromkeys(shown, ""), **row.cells(now)} for row in rows], shown, wide)
    newest = {row.key: row for row in reversed(rows)}
    for row in rows:
        if row.is_current and row is not newest[row.key]:
            print_message(f"{row.cluster}: the current run is {row.spec.id}.")
