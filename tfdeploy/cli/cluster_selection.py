"""Select the clusters of a command: those of the stack in this folder. Pulumi is not run, so this works during an update."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from .. import registry
from ..backends.backend import preload, search
from ..backends.base import ClusterRef, DiscoveredCluster
from ..backends.parallel_calls import call_in_parallel
from ..errors import NotFound
from ..paths import pulumi_home, state_folder
from ..registry import Entry
from ..report.expected_state import ExpectedState
from ..spec.backends import is_this_computer
from .pulumi import places, project_name, settings

_SEARCH_SECONDS = 10.0
"""Time limit for each backend if the registry has no cluster of the stack."""

_PROJECT_FILES = ("Pulumi.yaml", "Pulumi.yml")

Place = tuple[str, str]
"""A backend, and the address, region or folder to search there."""


class ClusterQuery(NamedTuple):
    """The options that select a cluster, and the format of the result."""

    cwd: Path = Path()
    stack: str = ""
    cluster: str = ""
    as_json: bool = False
    wide: bool = False
    """Whether a table has all columns in full, whatever the width of the terminal."""

    @property
    def stack_name(self) -> str:
        """The stack without its organization and project."""
        return self.stack.rpartition("/")[2]

    def matches(self, cluster: ClusterRef) -> bool:
        """Whether it selects this cluster, by its stack, and by its name, its id, or `project/stack/name`."""
        names = ("", cluster["name"], cluster["id"], registry.title_of(cluster))
        return self.stack_name in ("", cluster["stack"]) and self.cluster in names


def select_cluster(query: ClusterQuery) -> Entry:
    """The one cluster of the query.

    Raises:
        NotFound: there is none, or more than one.
    """
    entries = select_clusters(query)
    if len(entries) > 1:
        names = ", ".join(label(entry, entries) for entry in entries)
        first = entries[0].cluster["id" if _is_ambiguous(entries[0], entries) else "name"]
        raise NotFound(f"the stack has several clusters: {names}. Choose one: --cluster {first}.")
    return entries[0]


def label(entry: Entry, entries: Sequence[Entry]) -> str:
    """The name of a cluster among these; with its id and its login if another has the same name."""
    name, cluster_id = entry.cluster["name"], entry.cluster["id"]
    return f"{name} ({cluster_id}, stack in {entry.login or 'unknown'})" if _is_ambiguous(entry, entries) else name


def _is_ambiguous(entry: Entry, entries: Sequence[Entry]) -> bool:
    return sum(other.title == entry.title for other in entries) > 1


def select_existing_cluster(query: ClusterQuery) -> Entry:
    """The one cluster of the query, which must not be destroyed.

    Raises:
        NotFound: there is none, or more than one, or it was destroyed; or it is another login's and is not selected by its id.
    """
    entry = select_cluster(query)
    if entry.ended:
        raise NotFound(
            f"{entry.title} was destroyed. `pulumi up` creates it again; `tfdeploy status` prints its last record."
        )
    if query.cluster != entry.cluster["id"] and (where := other_login(entry)):
        raise NotFound(f"{where}. To select that cluster, use --cluster {entry.cluster['id']}.")
    return entry


def other_login(entry: Entry) -> str:
    """Where the stack of another login's cluster is; empty for a cluster of the current login, and where there is none."""
    if not registry.login() or _is_own(entry):
        return ""
    return f"the stack of {entry.title} is in {entry.login}, and you are logged in to {registry.login()}"


def select_clusters(query: ClusterQuery) -> list[Entry]:
    """All clusters of the query, sorted by name. Those of another login are included only if the current one never had any.
    Destroyed clusters are included only if there is no other; of those that one resource of the stack was, only the last.

    Raises:
        NotFound: there is none.
    """
    project, stack, file = _stack_of(query)
    entries = [entry for entry in registry.entries() if entry.cluster["project"] == project]
    matches = _matching(query, project, stack, entries)
    if not matches:
        entries += discovered_clusters(project, stack, file)
        matches = _matching(query, project, stack, entries)
    if not matches:
        raise NotFound(_no_cluster(project, stack, query.cluster, entries))
    if query.cluster not in [entry.cluster["id"] for entry in matches]:
        matches = [entry for entry in matches if _is_own(entry)] or matches
    existing = _without_gone([entry for entry in matches if not entry.ended])
    # The latest update is first among the entries.
    last = list({entry.stack_key: entry for entry in reversed(matches)}.values())
    return sorted(existing or last, key=lambda entry: (entry.cluster["name"], entry.cluster["id"]))


def _stack_of(query: ClusterQuery) -> tuple[str, str, Path]:
    """The project, the stack and the project file of the query: those of a cluster that is selected as `project/stack/name` or by its
    id, wherever its folder is; else of the folder. The stack is empty if none is selected."""
    entries = registry.entries() if query.cluster else []
    named = next((entry for entry in entries if query.cluster in (entry.title, entry.cluster["id"])), None)
    if named:
        return named.cluster["project"], named.cluster["stack"], Path(named.folder, _PROJECT_FILES[0])
    project, file = find_project(query.cwd)
    return project, query.stack_name or _selected_stack(project, file), file


def find_run_id(title: str, name: str, run_ids: Iterable[str], hint: str = "") -> str:
    """The id among the runs of a cluster that a name is, or is the beginning of.

    Raises:
        NotFound: there is none, or several; `hint` says then which there are.
    """
    ids = list(dict.fromkeys(run_ids))
    matches = [name] if name in ids else [run_id for run_id in ids if name and run_id.startswith(name)]
    if len(matches) > 1:
        raise NotFound(f"{title}: {name!r} is the beginning of several runs: {', '.join(matches)}.")
    known = ", ".join(ids) or "none"
    if not matches:
        raise NotFound(f"{title} has no run {name!r}. {hint or f'Its runs are: {known}.'}")
    return matches[0]


def _is_own(entry: Entry) -> bool:
    """Whether the cluster is of the current login, as far as that is known."""
    return entry.login in ("", registry.login())


def _without_gone(entries: Sequence[Entry]) -> list[Entry]:
    """Without the clusters that a later one of the same resource has replaced and of which nothing exists: an update that was
    cancelled before it created anything leaves an entry, and the next one has another id."""
    # The latest update is first.
    latest = list({entry.stack_key: entry for entry in reversed(entries)}.values())
    earlier = [entry for entry in entries if entry not in latest]
    if not earlier:
        return list(entries)
    searched = {_place_of(entry) for entry in earlier}
    discovered, errors = search_places(sorted(searched), _SEARCH_SECONDS)
    ids = {cluster.cluster["id"] for cluster in discovered}
    gone = [entry for entry in earlier if entry.cluster["id"] not in ids and _place_of(entry) not in errors]
    return [entry for entry in entries if entry not in gone]


def _place_of(entry: Entry) -> Place:
    """Where to search for it. A cluster of this computer is in its state folder, wherever that is."""
    cluster = entry.cluster
    return cluster["backend"], "" if is_this_computer(cluster["backend"]) else cluster["home"]


def _matching(query: ClusterQuery, project: str, stack: str, entries: Sequence[Entry]) -> list[Entry]:
    stack = stack or _only_stack(project, entries)
    return [entry for entry in entries if entry.cluster["stack"] == stack and query.matches(entry.cluster)]


def discovered_clusters(project: str, stack: str, file: Path) -> list[Entry]:
    """Clusters of a project (and stack, if given) that its backends have and the registry does not.

    Backends without their packages, or that do not respond in time, are skipped.
    """
    discovered, _ = search_places(list(places(settings(file, stack)).items()), _SEARCH_SECONDS)
    return [
        Entry(cluster.cluster, str(file.parent), ExpectedState(tasks=()), begun=cluster.since)
        for cluster in discovered
        if cluster.cluster["project"] == project
        and stack in ("", cluster.cluster["stack"])
        and in_this_state_folder(cluster)
    ]


def search_places(places: Sequence[Place], seconds: float) -> tuple[list[DiscoveredCluster], Mapping[Place, Exception]]:
    """The clusters of all places, and the errors of places that cannot be searched."""
    preload(name for name, _ in places)
    results = call_in_parallel({place: partial(search, *place) for place in places}, seconds)
    clusters = [cluster for result in results.values() if not isinstance(result, Exception) for cluster in result]
    return clusters, {place: result for place, result in results.items() if isinstance(result, Exception)}


def in_this_state_folder(discovered: DiscoveredCluster) -> bool:
    """False for a cluster of this computer with another state folder."""
    cluster = discovered.cluster
    return not is_this_computer(cluster["backend"]) or state_folder() in Path(cluster["home"]).parents


def current_stack(query: ClusterQuery) -> tuple[Path | None, str]:
    """The project file and the stack of the query; (None, "") if there is no project."""
    try:
        project, file = find_project(query.cwd)
    except NotFound:
        return None, ""
    return file, query.stack_name or _selected_stack(project, file)


def find_project(folder: Path) -> tuple[str, Path]:
    """The name and the file of the project in a folder or above.

    Raises:
        NotFound: there is none.
    """
    start = folder.expanduser().absolute()
    if not start.is_dir():
        raise NotFound(f"the folder {start} does not exist. Use --cwd FOLDER.")
    for parent in (start, *start.parents):
        for file in (parent / name for name in _PROJECT_FILES):
            if name := project_name(file):
                return name, file
    remedy = _other_clusters(registry.entries()) or "Use --cwd FOLDER."
    raise NotFound(f"there is no Pulumi.yaml in {start} or its parent folders. {remedy}")


def _selected_stack(project: str, file: Path) -> str:
    """The stack of `PULUMI_STACK`, else the one that `pulumi stack select` has chosen; empty if there is none.

    `pulumi stack` would print it, but takes 0.3 s and a plugin. The name of the file is Pulumi's:
    https://github.com/pulumi/pulumi/blob/master/pkg/workspace/workspace.go. If it changes, `--stack` is needed.
    """
    if stack := os.environ.get("PULUMI_STACK"):
        return stack.rpartition("/")[2]
    digest = hashlib.sha1(str(file).encode(), usedforsecurity=False).hexdigest()
    file = pulumi_home() / "workspaces" / f"{project}-{digest}-workspace.json"
    try:
        workspace = json.loads(file.read_text(encoding="utf-8"))
        selected = (workspace.get("stacks") or {}).get(registry.login()) or workspace.get("stack", "")
    except (OSError, ValueError, AttributeError, RecursionError):
        return ""
    return str(selected).rpartition("/")[2]


def _only_stack(project: str, entries: Sequence[Entry]) -> str:
    stacks = list(dict.fromkeys(entry.cluster["stack"] for entry in entries))
    if len(stacks) > 1:
        raise NotFound(
            f"no stack of {project} is selected. Use --stack {stacks[0]}. The stacks are: {', '.join(stacks)}."
        )
    return stacks[0] if stacks else ""


def _no_cluster(project: str, stack: str, cluster: str, entries: Sequence[Entry]) -> str:
    name = f"{project}/{stack}" if stack else project
    if cluster:
        return f"{name} has no cluster {cluster!r}. {_other_clusters(entries)}".rstrip()
    return f"{name} has no cluster yet. `pulumi up` creates it. {_other_clusters(entries)}".rstrip()


def _other_clusters(entries: Sequence[Entry]) -> str:
    """Which clusters exist, and the option that selects the first of them."""
    existing = [entry for entry in entries if not entry.ended]
    if not existing:
        return ""
    names = ", ".join(entry.title for entry in existing[:5])
    first = existing[0].cluster["id"] if other_login(existing[0]) else existing[0].title
    return f"Other clusters: {names}. `--cluster {first}` selects the first."
