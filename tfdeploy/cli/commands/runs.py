"""`tfdeploy runs`: the runs of a cluster, or of all clusters, with what had changed and how they ended."""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ... import receipts, registry
from ...agent.record import Record
from ...paths import cluster_folder
from ...registry import Entry
from ...report.run_history import RunSummary, StoredRun, columns, summaries
from ..common import print_json, print_message, print_result
from ..output import print_table
from ..parallel import call_in_parallel
from ..select import ClusterQuery, select_cluster
from ..snapshot import take_snapshot

_SECONDS = 30.0
"""Time limit of all observations together."""

_METRIC_SECONDS = 10.0
"""Time limit of reading the metrics of all runs. What was read is stored, so that the next call continues."""


def runs(
    query: ClusterQuery,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="The runs of all clusters of this computer.", show_default=False)
    ] = False,
) -> None:
    """Show the runs of a cluster, the newest first, also after `pulumi destroy`.

    CHANGED names what differs from the run before it: arguments, variables of the environment, and the number of tasks. TOOK is the
    time from `pulumi up` to the end of the last task.
    """
    rows = summaries(collect_runs(_stacks() if everything else [select_cluster(query)]))
    if query.as_json:
        print_json([row.to_dict() for row in rows])
    else:
        _print(rows, everything, query.wide)


def collect_runs(stacks: Sequence[Entry]) -> list[StoredRun]:
    """All runs of these clusters, and of earlier ones of their stacks."""
    records = call_in_parallel({place: partial(_records, entry) for place, entry in enumerate(stacks)}, _SECONDS)
    deadline = time.monotonic() + _METRIC_SECONDS
    runs: list[StoredRun] = []
    for place, result in records.items():
        entry = stacks[place]
        if isinstance(result, Exception):
            print_message(f"{entry.title}: {result}. Only the runs of destroyed clusters are shown.")
        folders = _archives(entry) if isinstance(result, Exception) else result
        runs += _runs(entry, folders, deadline)
    return runs


def _stacks() -> list[Entry]:
    """The last cluster of each stack's resource."""
    return list({entry.stack_key: entry for entry in reversed(registry.entries())}.values())


def _records(entry: Entry) -> list[tuple[Entry, Path, str]]:
    """The records of a cluster and of earlier ones of its stack, the current one first, each with the id of its current run."""
    snapshot = take_snapshot(entry, events=0)
    state = snapshot.run_state
    archives = _archives(entry)
    if entry.ended or state is None:
        return archives
    return [(entry, Path(snapshot.observed.record_folder), state.spec.id), *archives]


def _archives(entry: Entry) -> list[tuple[Entry, Path, str]]:
    entries = {cluster_folder(other.cluster): other for other in registry.entries()}
    return [(entries.get(path.parents[1].name, entry), path, "") for path in registry.stored_records(entry)]


def _runs(title: Entry, records: Sequence[tuple[Entry, Path, str]], deadline: float) -> Iterator[StoredRun]:
    """The runs of these records. A record of another version is skipped with a message."""
    for entry, folder, current in records:
        record = Record(folder, stores_matches=True)
        if not record.is_readable():
            print_message(f"{folder}: this version of tfdeploy cannot read the record.")
            continue
        for run_id in record.runs():
            state = record.load(run_id)
            if state is not None:
                values = record.metrics(state, dict(entry.expected.metrics), max(0.0, deadline - time.monotonic()))
                metrics = {name: values.get(name) for name in entry.expected.metrics}
                receipt = receipts.read(entry.cluster, run_id)
                backend = entry.cluster["backend"]
                yield StoredRun(title.stack_key, title.title, backend, state, metrics, receipt, run_id == current)


def _print(rows: Sequence[RunSummary], everything: bool, wide: bool) -> None:
    if not rows:
        print_result("There are no runs. `pulumi up` submits one.")
        return
    now = time.time()
    shown = columns(rows, everything)
    print_table([{**dict.fromkeys(shown, ""), **row.cells(now)} for row in rows], shown, wide)
    newest = {row.key: row for row in reversed(rows)}
    for row in rows:
        if row.is_current and row is not newest[row.key]:
            print_message(f"{row.cluster}: the current run is {row.run}.")
