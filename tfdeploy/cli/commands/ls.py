"""`tfdeploy ls`: all clusters that this user has created from this computer."""

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ... import registry
from ...backends.backend import preload
from ...backends.base import GONE, IDENTITY
from ...backends.parallel_calls import call_in_parallel
from ...errors import NotFound, SpecError
from ...outputs import CostSummary
from ...registry import Entry
from ...report.tables import ago
from ...units import dollars, moment
from ..cluster_selection import ClusterQuery, other_login
from ..output import print_json, print_message, print_result, print_table
from ..parser import Parser, add_yes
from ..snapshot import refuse_endless_wait, take_snapshot

_SECONDS = 30.0
"""Time limit of all observations together."""

_DESTROYED, _UNKNOWN = "destroyed", "unknown"
_NONE = (
    "There are no clusters that you have created from this computer. `pulumi up` creates one; in the folder of a project, "
    "`tfdeploy status` searches for those of the stack that were created elsewhere."
)
_COLUMNS = ("cluster", "backend", "state", "age", "spent", "per_hour")
_MORE_COLUMNS = ("id", "run", "login", "folder")


@dataclass(frozen=True)
class ClusterSummary:
    """One cluster, and its state now."""

    entry: Entry
    state: str
    reason: str = ""
    run: str = ""
    cost: CostSummary = field(default_factory=CostSummary)

    def cells(self, now: float) -> dict[str, str]:
        """Its row in the table."""
        entry = self.entry
        return {
            "cluster": entry.title,
            "backend": entry.cluster["backend"],
            "state": self.state,
            "age": ago(moment(entry.created or entry.begun), now).removesuffix(" ago"),
            "spent": _amount(self.cost, "spent"),
            "per_hour": _amount(self.cost, "per_hour"),
            "id": entry.cluster["id"],
            "run": self.run,
            "login": entry.login,
            "folder": entry.folder,
        }

    def to_dict(self) -> dict[str, Any]:
        """Its document in the JSON output."""
        entry = self.entry
        return {
            **{key: value for key, value in entry.cluster.items() if key in IDENTITY},
            "state": self.state,
            "reason": self.reason,
            "run": self.run,
            "created": entry.created or entry.begun,
            "destroyed": entry.ended or None,
            "cost": dict(self.cost),
            "login": entry.login,
            "folder": entry.folder,
        }


def add_arguments(parser: Parser) -> None:
    """Its options and arguments."""
    everything = "Also clusters that no longer exist."
    parser.add_argument("--all", "-a", action="store_true", dest="everything", help=everything)
    leftovers = "Show resources that belong to no stack."
    parser.add_argument("--leftovers", action="store_true", dest="only_leftovers", help=leftovers)
    delete = "With --leftovers: delete them, after confirmation."
    parser.add_argument("--delete", action="store_true", help=delete)
    add_yes(parser)


def ls(
    query: ClusterQuery, everything: bool = False, only_leftovers: bool = False, delete: bool = False, yes: bool = False
) -> None:
    """Show all your clusters, or what belongs to no stack.

    They are the clusters that you have created from this computer, of all projects, stacks, backends and logins. AGE is the time since
    the first update, SPENT what the machines have cost. The state is the run's, `gone` if nothing of the cluster exists any more, or
    `destroyed`.

    With --leftovers, this machine, Docker, Kubernetes and EC2 are searched. Resources of a stack, or that an update may be creating,
    are never deleted. If they were created elsewhere, or after this computer had destroyed its cluster of that name, or Pulumi cannot
    read their stack, their state is `unknown`: these, and volumes that `retain_volumes` has retained, are deleted only with
    `--cluster ID` or `--cluster PROJECT/STACK/NAME`. Records of destroyed clusters are not leftovers.
    """
    if only_leftovers:
        if everything:
            raise SpecError("--all", "is for clusters, not for leftovers", "Leave one of both out.")
        from .leftovers import leftovers

        leftovers(query, delete, yes)
        return
    if delete or yes:
        remedy = "Use: tfdeploy ls --leftovers --delete. `pulumi destroy` removes a cluster that a stack has."
        raise SpecError("--delete" if delete else "--yes", "is for --leftovers", remedy)
    entries = [entry for entry in registry.entries() if everything or not entry.ended]
    clusters = observe_clusters([entry for entry in entries if query.matches(entry.cluster)])
    shown = [cluster for cluster in clusters if everything or cluster.state != GONE]
    if query.as_json:
        print_json([cluster.to_dict() for cluster in shown])
        return
    if shown:
        now = time.time()
        rows = [cluster.cells(now) for cluster in shown]
        print_table(rows, (*_COLUMNS, *_MORE_COLUMNS) if query.wide else _COLUMNS, query.wide)
    else:
        print_result(_NONE)
    for line in _notes(shown, len(clusters) - len(shown)):
        print_message(line)


def observe_clusters(entries: Sequence[Entry]) -> list[ClusterSummary]:
    """The state of each cluster. One that does not respond is `unknown`."""
    preload({entry.cluster["backend"] for entry in entries if not entry.ended})
    results = call_in_parallel({place: partial(_observe, entry) for place, entry in enumerate(entries)}, _SECONDS)
    return [
        ClusterSummary(entries[place], _UNKNOWN, str(result) or repr(result))
        if isinstance(result, Exception)
        else result
        for place, result in results.items()
    ]


def _observe(entry: Entry) -> ClusterSummary:
    if entry.ended:
        return ClusterSummary(entry, _DESTROYED, f"at {moment(entry.ended)}")
    snapshot = take_snapshot(entry, events=0)
    try:
        refuse_endless_wait(snapshot)
    except NotFound as error:
        return ClusterSummary(entry, GONE, str(error))
    report = snapshot.report
    return ClusterSummary(entry, report.state, report.reason, report.run, report.cost)


def _notes(shown: Sequence[ClusterSummary], gone: int) -> list[str]:
    """What the table does not show, in sentences."""
    notes = [f"{cluster.entry.title}: {cluster.reason}" for cluster in shown if cluster.state == _UNKNOWN]
    for cluster in shown:
        entry = cluster.entry
        if not entry.ended and (where := other_login(entry)):
            selection = (
                f"--cwd {shlex.quote(entry.folder)} --stack {entry.cluster['stack']} --cluster {entry.cluster['id']}"
            )
            notes.append(f"{where}. To select that cluster, use {selection}.")
    if gone:
        notes.append(f"Not shown: {gone} of which nothing exists any more. `tfdeploy ls --all` shows them.")
    return notes


def _amount(cost: CostSummary, name: str) -> str:
    if name not in cost:
        return ""
    usd = dict(cost)[name]
    return dollars(usd) if isinstance(usd, float | int) else "unknown"
