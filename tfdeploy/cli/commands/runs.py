"""`tfdeploy runs`: the runs in the records of a cluster, or of all clusters, with what had changed and how they ended."""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from ... import registry
from ...agent.record.output_search import Found
from ...agent.record.record import Record, RecordView
from ...backends.parallel_calls import call_in_parallel
from ...paths import cluster_folder
from ...registry import Entry
from ...report.progress import first_progress, with_goals
from ...report.run_history import StoredRun, columns, summaries
from ..cluster_selection import ClusterQuery, select_cluster
from ..output import print_json, print_message, print_result, print_table
from ..parser import Parser
from ..snapshot import Snapshot, take_snapshot

_SECONDS = 30.0
"""Time limit of all observations together."""

_METRIC_SECONDS = 10.0
"""Time limit of reading the metrics of all runs. What was read is stored, so that the next call continues."""


_Source = tuple[Entry, Path, Snapshot | None]
"""The cluster of a record, its folder, and what was observed of the cluster if it exists."""


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


def _unobserved(entry: Entry, reason: Exception) -> list[_Source]:
    print_message(f"{entry.title}: {reason}. Its runs are shown as this computer observed them last.")
    return [(entry, registry.present_record(entry), None), *_archives(entry)]


def _sources(entry: Entry) -> list[_Source]:
    """The records of a cluster and of earlier ones of its stack, the current one first."""
    if entry.ended:
        return _archives(entry)
    snapshot = take_snapshot(entry, events=0)
    if snapshot.run_state is None:
        return _archives(entry)
    return [(entry, Path(snapshot.observed.record_folder), snapshot), *_archives(entry)]


def _archives(entry: Entry) -> list[_Source]:
    entries = {cluster_folder(other.cluster): other for other in registry.entries()}
    folders = registry.stored_records(entry)
    return [(entries.get(folder.parents[1].name, entry), folder, None) for folder in folders]


def _recorded(title: Entry, source: _Source, deadline: float) -> Iterator[StoredRun]:
    """The runs of a record. One of another version is skipped with a message."""
    entry, folder, snapshot = source
    record = Record(folder, is_copy=True)
    if not record.is_readable():
        print_message(f"{folder}: this version of tfdeploy cannot read the record.")
        return
    for run_id in record.runs():
        state = record.load(run_id)
        if state is None:
            continue
        now = snapshot.report.state if snapshot and run_id == snapshot.report.run else ""
        if snapshot is not None and now and state.result is None:
            # What its controller has found is not searched again.
            found: RecordView | Found = snapshot.observed.view
        else:
            found = record.search(state, seconds=max(0.0, deadline - time.monotonic()))
        is_partial = isinstance(found, Found) and not found.is_at_end
        metrics = {name: None if is_partial else found.metrics.get(name) for name in state.spec.metrics}
        speed = first_progress(with_goals(found.progress, {})).rate
        where = entry.cluster["backend"]
        yield StoredRun(title.stack_key, title.title, where, state, metrics, folder, speed, now)


def _print(rows: Sequence[StoredRun], everything: bool, wide: bool) -> None:
    if not rows:
        print_result("There are no runs. `pulumi up` submits one.")
        return
    now = time.time()
    shown = columns(rows, everything)
    print_table([{**dict.fromkeys(shown, ""), **row.cells(now)} for row in rows], shown, wide)
    newest = {row.key: row for row in reversed(rows)}
    for row in rows:
        if row.now and row is not newest[row.key]:
            print_message(f"{row.cluster}: the current run is {row.spec.id}.")
