"""Shell completion of names, from the registry alone: no cluster is contacted.

All commands import this module, and only the shell calls it: so the registry is imported in its functions.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..errors import TfdeployError

if TYPE_CHECKING:
    from ..registry import Entry


@contextmanager
def _without_warnings() -> Iterator[None]:
    """A warning of the registry would be printed into the command line that the user types."""
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


@_without_warnings()
def hostnames(ctx: typer.Context, incomplete: str) -> list[str]:
    """Tasks of the selected clusters, without those that the command line has already."""
    used = ctx.params.get("names") or ()
    return [name for name in _hostnames(ctx) if name.startswith(incomplete) and name not in used]


@_without_warnings()
def sources(ctx: typer.Context, incomplete: str) -> list[str]:
    """What `cp` copies from: tasks of the selected clusters, and the runs that were submitted from this computer."""
    from .. import receipts, registry

    entries = _entries(ctx, str(ctx.params.get("cluster") or ""))
    tasks = [f"{task.hostname}:" for entry in entries for task in entry.expected.tasks]
    keys = {entry.stack_key for entry in entries}
    earlier = [entry for entry in registry.entries() if entry.stack_key in keys]
    runs = [f"run:{run_id}/" for entry in earlier for run_id in receipts.read_all(entry.cluster)]
    return [name for name in dict.fromkeys([*tasks, *runs]) if name.startswith(incomplete)]


@_without_warnings()
def clusters(ctx: typer.Context, incomplete: str) -> list[str]:
    """Clusters of the stack, or of all stacks if there is no stack."""
    return [name for name in dict.fromkeys(_cluster_names(ctx)) if name.startswith(incomplete)]


@_without_warnings()
def stacks(ctx: typer.Context, incomplete: str) -> list[str]:
    """Stacks that have clusters."""
    from .. import registry

    names = dict.fromkeys(entry.cluster["stack"] for entry in registry.entries())
    return [name for name in names if name.startswith(incomplete)]


def _hostnames(ctx: typer.Context) -> Iterator[str]:
    for entry in _entries(ctx, str(ctx.params.get("cluster") or "")):
        yield from (task.hostname for task in entry.expected.tasks)


def _cluster_names(ctx: typer.Context) -> Iterator[str]:
    from .. import registry

    return (entry.cluster["name"] for entry in _entries(ctx, "") or registry.entries())


def _entries(ctx: typer.Context, cluster: str) -> "list[Entry]":
    from .select import ClusterQuery, select_clusters

    query = ClusterQuery(Path(ctx.params.get("cwd") or "."), str(ctx.params.get("stack") or ""), cluster)
    with suppress(TfdeployError, OSError):
        return select_clusters(query)
    return []
