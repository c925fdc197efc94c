"""`tfdeploy runs`: the runs of a cluster, or of all clusters, with what had changed and how they ended."""

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated

from ... import receipts, registry
from ...agent.record.record import Record
from ...agent.run_spec import RunSpec
from ...backends.base import ClusterRef
from ...paths import cluster_folder
from ...receipts import Receipt, RunOutcome
from ...registry import Entry
from ...report.run_history import UNFINISHED, StoredRun, columns, summaries
from ...report.run_outcomes import RecordSource, observed_source, stored_outcome
from ..common import print_json, print_message, print_result
from ..option import Option
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
        bool, Option("--all", "-a", help="The runs of all clusters of this computer.", show_default=False)
    ] = False,
) -> None:
    """Show the runs of a cluster, the newest first.

    They are shown after `pulumi destroy` too.
    CHANGED names what differs from the run before it: arguments, variables of the environment, and the number of tasks. TOOK is the
    time from `pulumi up` to the end of the last task, and COST what the machines cost in this time, where that is known.
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
    """All runs of these clusters, and of earlier ones of their stacks: those in records, and those of which only receipts are left."""
    records = call_in_parallel({place: partial(_sources, entry) for place, entry in enumerate(stacks)}, _SECONDS)
    deadline = time.monotonic() + _METRIC_SECONDS
    runs: list[StoredRun] = []
    for place, result in records.items():
        entry = stacks[place]
        if isinstance(result, Exception):
            print_message(f"{entry.title}: {result}. Its runs are shown as this computer observed them last.")
        recorded = list(_recorded(entry, _archives(entry) if isinstance(result, Exception) else result, deadline))
        runs += [*recorded, *_unrecorded(entry, {(run.cluster_id, run.spec.id) for run in recorded})]
    return runs


def _sources(entry: Entry) -> list[RecordSource]:
    """The records of a cluster and of earlier ones of its stack, the current one first."""
    if entry.ended:
        return _archives(entry)
    snapshot = take_snapshot(entry, events=0)
    if snapshot.run_state is None:
        return _archives(entry)
    return [observed_source(entry.cluster, snapshot.observed, entry.expected.metrics), *_archives(entry)]


def _archives(entry: Entry) -> list[RecordSource]:
    entries = {cluster_folder(other.cluster): other for other in registry.entries()}
    owners = {path: entries.get(path.parents[1].name, entry) for path in registry.stored_records(entry)}
    return [
        RecordSource(owner.cluster, Record(path, stores_matches=True), owner.expected.metrics)
        for path, owner in owners.items()
    ]


def _recorded(title: Entry, sources: Sequence[RecordSource], deadline: float) -> Iterator[StoredRun]:
    """The runs of these records. A record of another version is skipped with a message."""
    for source in sources:
        record, cluster = source.record, source.cluster
        if not record.is_readable():
            print_message(f"{record.folder}: this version of tfdeploy cannot read the record.")
            continue
        for run_id in record.runs():
            state, receipt = record.load(run_id), receipts.read(cluster, run_id)
            if state is not None:
                went, is_current = stored_outcome(source, state, receipt, deadline), run_id == source.current
                yield _run(title, cluster, state.spec, went, receipt, is_current, str(record.folder))


def _unrecorded(title: Entry, recorded: Collection[tuple[str, str]]) -> Iterator[StoredRun]:
    """The runs that no record has any more. `recorded` are the others, each by the id of its cluster and its own."""
    for entry in registry.entries():
        if entry.stack_key == title.stack_key:
            for run_id, receipt in receipts.read_all(entry.cluster).items():
                spec, went = receipt.spec, receipt.outcome
                if spec is not None and went is not None and (entry.cluster["id"], run_id) not in recorded:
                    if entry.ended and went.ended is None:  # its end was not observed
                        went = replace(went, result=UNFINISHED)
                    yield _run(title, entry.cluster, spec, went, receipt)


def _run(
    title: Entry,
    cluster: ClusterRef,
    spec: RunSpec,
    went: RunOutcome,
    receipt: Receipt | None,
    is_current: bool = False,
    folder: str = "",
) -> StoredRun:
    return StoredRun(
        title.stack_key, title.title, cluster["id"], cluster["backend"], spec, went, receipt, is_current, folder
    )


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
