"""`tfdeploy ls --leftovers`: resources with our labels or tags that belong to no stack."""

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ... import registry
from ...backends.backend import load
from ...backends.base import ClusterRef, DiscoveredCluster
from ...backends.parallel_calls import call_in_parallel
from ...errors import BackendError, NotFound, SpecError, TfdeployError, Unreachable
from ...paths import RECORDS_FOLDER, state_folder
from ...registry import Entry
from ...report.tables import ago
from ...spec.backends import is_this_computer
from ...units import counted, dollars, moment, text_of_size
from ..cluster_selection import ClusterQuery, current_stack, find_project, in_this_state_folder, search_places
from ..command_table import FAILED
from ..leftover_owner import (
    BUSY,
    IN_STACK,
    LEFTOVER,
    RETAINED,
    ClusterKey,
    Ownership,
    StackState,
    clusters_in,
    entry_of,
    key_of,
    ownership,
    reason_not_to_delete,
)
from ..output import ask_to_confirm, print_json, print_message, print_prose, print_result, print_table
from ..pulumi import NO_STACK, is_locked, places, pulumi, settings
from ..run.session import remove_cluster
from ..run.stack import PROJECT, Call, stored_call

_TIME_LIMIT = 30.0
_COLUMNS = ("backend", "cluster", "what", "age", "per_hour", "state")


@dataclass(frozen=True)
class _Row:
    discovered: DiscoveredCluster
    owner: Ownership
    call: Call | None = None
    """The interrupted `tfdeploy run` that created it, if any: its stack is removed too."""

    @property
    def state(self) -> str:
        return self.owner.state

    @property
    def backend(self) -> str:
        return self.discovered.cluster["backend"]

    @property
    def id(self) -> str:
        return self.discovered.cluster["id"]

    @property
    def title(self) -> str:
        return registry.title_of(self.discovered.cluster)

    @property
    def resources(self) -> str:
        return ", ".join(_counted(count, kind) for kind, count in self.discovered.has.items())

    @property
    def description(self) -> str:
        """What would be deleted, with its owner and its age."""
        age = f", created {ago(moment(self.discovered.since), time.time())}" if self.discovered.since else ""
        owner = f", owner {self.discovered.cluster['owner']}" if self.discovered.cluster["owner"] else ""
        doubt = f" ({self.state}: {self.owner.reason})" if self.state != LEFTOVER else ""
        return f"{self.title} ({self.id}) on {self.backend}: {self.resources}{age}{owner}{doubt}"

    def to_dict(self) -> dict[str, Any]:
        """The row in the JSON output."""
        discovered = self.discovered
        return {
            **discovered.cluster,
            "what": dict(discovered.has),
            "since": discovered.since,
            "per_hour": discovered.per_hour,
            "state": self.state,
            "why": self.owner.reason,
        }


def leftovers(query: ClusterQuery, delete: bool = False, yes: bool = False) -> None:
    """Show resources that belong to no stack, or delete them: `tfdeploy ls --leftovers`."""
    all_rows, problems = _search(query)
    rows = [row for row in all_rows if query.matches(row.discovered.cluster)]
    for problem in problems:
        print_message(f"tfdeploy: {problem}")
    if delete:
        _delete(query, rows, yes)
        return
    retained = [row for row in rows if row.state == RETAINED]
    shown = [row for row in rows if row.state not in (IN_STACK, RETAINED)]
    records = _records()
    if query.as_json:
        on_purpose = {**records, "volumes": [row.to_dict() for row in retained]}
        print_json({"leftovers": [row.to_dict() for row in shown], "problems": problems, "retained": on_purpose})
        return
    if shown:
        print_table([_cells(row) for row in shown], _COLUMNS, query.wide)
    else:
        print_result("There are no leftovers.")
    for text in _reasons(row for row in shown if row.state != LEFTOVER):
        print_prose(text)
    for row in retained:
        print_prose(f"{row.title} ({row.id}) has {row.resources} on {row.backend}: {row.owner.reason}.")
        print_prose(f"`tfdeploy ls --leftovers --delete --cluster {row.id}` deletes them.")
    if records["records"]:
        size = text_of_size(records["bytes"])
        count = counted(records["records"], "record")
        print_prose(f"Retained on purpose: {count} of destroyed clusters, {size} in {records['folder']}.")


def _reasons(rows: Iterable[_Row]) -> Iterator[str]:
    """Why clusters are not leftovers: a sentence for each reason."""
    titles: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        titles.setdefault((row.state, row.owner.reason), []).append(row.title)
    for (state, reason), names in titles.items():
        yield f"{', '.join(dict.fromkeys(names))} ({state}): {reason}."


def _search(query: ClusterQuery) -> tuple[list[_Row], list[str]]:
    """All resources at the places of the stack's configuration and of known clusters; and which places cannot be searched."""
    entries = registry.entries()
    file, stack = current_stack(query)
    searched = set(places(settings(file, stack)).items())
    known = [entry.cluster for entry in entries if not is_this_computer(entry.cluster["backend"])]
    searched |= {(cluster["backend"], cluster["home"]) for cluster in known}
    discovered, errors = search_places(sorted(searched), _TIME_LIMIT)
    problems = [
        f"cannot search {backend}: {error}"
        for (backend, place), error in errors.items()
        if place or not isinstance(error, Unreachable)  # not every computer has an engine
    ]
    # An engine may have several addresses: its resources are listed once, at the address that the registry has.
    discovered.sort(key=lambda item: entry_of(item.cluster, entries) is not None)
    unique = {(key_of(item.cluster), str(sorted(item.has.items())), item.since): item for item in discovered}
    return _with_owners(list(unique.values()), entries), problems


def _with_owners(discovered: Sequence[DiscoveredCluster], entries: Sequence[Entry]) -> list[_Row]:
    known_entries = [entry_of(item.cluster, entries) for item in discovered]
    stacks = {_stack_key(entry): entry for entry in known_entries if entry is not None}
    results = call_in_parallel({key: partial(_read_stack, entry) for key, entry in stacks.items()}, _TIME_LIMIT)
    states = {
        key: StackState(error=str(result) or repr(result)) if isinstance(result, Exception) else result
        for key, result in results.items()
    }
    now = time.time()
    rows = []
    for item, entry in zip(discovered, known_entries, strict=True):
        owner = ownership(item, entry, states[_stack_key(entry)] if entry else StackState(), now)
        call = _interrupted_run(item) if owner.state in (IN_STACK, BUSY) else None
        owner = Ownership(LEFTOVER, "its `tfdeploy run` was interrupted") if call else owner
        rows.append(_Row(_with_words(item, entry), owner, call))
    return rows


def _with_words(discovered: DiscoveredCluster, entry: Entry | None) -> DiscoveredCluster:
    """With project and stack as the registry has them: volumes that were retained have neither."""
    if entry is None:
        return discovered
    stored = entry.cluster
    cluster: ClusterRef = {**discovered.cluster, "project": stored["project"], "stack": stored["stack"]}
    return discovered._replace(cluster=cluster)


def _interrupted_run(discovered: DiscoveredCluster) -> Call | None:
    """The `tfdeploy run` that created the cluster and was interrupted; None if there is none."""
    if discovered.cluster["project"] != PROJECT:
        return None
    with suppress(TfdeployError):
        call = stored_call(discovered.cluster["stack"])
        return call if call.abandoned else None
    return None


def _read_stack(entry: Entry) -> StackState:
    """The state of a cluster's stack, in the backend that stored it during the last update.

    Raises:
        BackendError: it cannot be read.
    """
    project, stack = entry.cluster["project"], entry.cluster["stack"]
    current_project = find_project(Path(entry.folder))[0]
    if current_project != project:
        raise BackendError(f"{entry.folder} now has the project {current_project}")
    locked = is_locked(project, stack, entry.login or registry.login())
    name = f"{entry.organization}/{project}/{stack}" if entry.organization else stack
    result = pulumi(
        Path(entry.folder), "stack", "export", "--stack", name, seconds=_TIME_LIMIT, backend_url=entry.login
    )
    if result.returncode == 0:
        return StackState(clusters_in(json.loads(result.stdout)), locked=locked)
    if NO_STACK in result.stderr:
        return StackState(_clusters_of_project(entry), missing=True, locked=locked)
    raise _error_of(result.stderr)


def _clusters_of_project(entry: Entry) -> frozenset[ClusterKey]:
    """The clusters of all stacks of a project: `pulumi stack rename` may have renamed the one that is missing.

    Raises:
        BackendError: one of them cannot be read.
    """
    clusters: frozenset[ClusterKey] = frozenset()
    for stack in json.loads(_call_pulumi(entry, "stack", "ls", "--json")):
        clusters |= clusters_in(json.loads(_call_pulumi(entry, "stack", "export", "--stack", stack["name"])))
    return clusters


def _call_pulumi(entry: Entry, *arguments: str) -> str:
    result = pulumi(Path(entry.folder), *arguments, seconds=_TIME_LIMIT, backend_url=entry.login)
    if result.returncode:
        raise _error_of(result.stderr)
    return result.stdout


def _error_of(stderr: str) -> BackendError:
    message = next((line for line in stderr.splitlines() if line.strip()), "it printed no message")
    return BackendError(message.removeprefix("error: "))


def _delete(query: ClusterQuery, rows: Sequence[_Row], yes: bool) -> None:
    chosen = _named(query, rows) if query.cluster else [row for row in rows if row.state == LEFTOVER]
    if not chosen:
        print_json([]) if query.as_json else print_result("There are no leftovers.")
        return
    for row in [] if yes else chosen:
        print_message(f"  {row.description}")
    ask_to_confirm(yes, "Delete all of this permanently? Records are retained.")
    deletions = [_delete_row(row) for row in chosen]
    if query.as_json:
        print_json(deletions)
    for item in deletions:
        message = f"{item['cluster']}: {item['error'] or item['retained'] or 'deleted'}"
        print_message(message) if query.as_json else print_result(message)
    if any(item["error"] for item in deletions):
        sys.exit(FAILED)


def _named(query: ClusterQuery, rows: Sequence[_Row]) -> list[_Row]:
    """The row that `--cluster` names, if it may be deleted.

    Raises:
        NotFound: there is none, or more than one.
        SpecError: it may not be deleted.
    """
    rows = [row for row in rows if in_this_state_folder(row.discovered)] or rows
    if not rows:
        raise NotFound(f"{query.cluster} has no leftovers.")
    if len(rows) > 1:
        names = ", ".join(row.description for row in rows)
        raise NotFound(
            f"{query.cluster!r} matches several clusters: {names}. Use the id of one: --cluster {rows[0].id}."
        )
    (row,) = rows
    reason = reason_not_to_delete(row.owner, row.discovered, time.time())
    if reason:
        raise SpecError(row.title, "cannot be deleted", f"{reason[0].upper()}{reason[1:]}.")
    if row.state != LEFTOVER and query.cluster not in (row.title, row.id):
        wrong = f"is {row.state}: {row.owner.reason}"
        raise SpecError(row.title, wrong, f"To delete it, use its full name or its id: --cluster {row.title}.")
    return [row]


def _delete_row(row: _Row) -> dict[str, str]:
    """Delete the resources of one cluster. What was retained, and where, or the error: the output of `--json`."""
    cluster, retained, error = row.discovered.cluster, "", ""
    try:
        if row.call:
            remove_cluster(row.call, verbose=False)
        else:
            retained = load(cluster["backend"]).runner.delete_all(cluster, "", {"volumes": False, "record": True})
            registry.mark_destroyed(cluster)
    except Exception as raised:  # the other clusters are still deleted
        error = str(raised) if isinstance(raised, TfdeployError) else repr(raised)
    return {"cluster": row.title, "retained": retained, "error": error}


def _cells(row: _Row) -> dict[str, str]:
    since, usd = row.discovered.since, row.discovered.per_hour
    return {
        "backend": row.backend,
        "cluster": row.title,
        "what": row.resources,
        "age": ago(moment(since), time.time()).removesuffix(" ago"),
        "per_hour": "unknown" if usd is None else dollars(usd) if usd else "",
        "state": row.state,
    }


def _counted(count: int, kind: str) -> str:
    return f"{count} {kind}es" if kind.endswith("s") and count > 1 else counted(count, kind)


def _records() -> dict[str, Any]:
    """The records of destroyed clusters: the output of `--json`."""
    folder = state_folder() / RECORDS_FOLDER
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {"folder": str(folder), "records": len(list(folder.glob("*/*/record"))), "bytes": size}


def _stack_key(entry: Entry) -> tuple[str, ...]:
    return entry.folder, entry.login, entry.organization, entry.cluster["project"], entry.cluster["stack"]
