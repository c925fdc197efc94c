"""Shell completion of names, from the registry alone: no cluster is contacted.

A function gets the values of the options so far, and the beginning of a word. All commands import this module, and only the shell
calls it: so the registry is imported in its functions.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import TfdeployError

if TYPE_CHECKING:
    from ..registry import Entry


@contextmanager
def _without_warnings() -> Iterator[None]:
    """A warning of the registry would be printed into the command line that the user types."""
    import logging

    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


@_without_warnings()
def hostnames(options: Mapping[str, Any], incomplete: str) -> list[str]:
    """Tasks of the selected clusters, without those that the command line has already."""
    used = options.get("names") or ()
    names = [task.hostname for entry in _entries(options) for task in entry.expected.tasks]
    return [name for name in names if name.startswith(incomplete) and name not in used]


@_without_warnings()
def sources(options: Mapping[str, Any], incomplete: str) -> list[str]:
    """What `cp` copies from: tasks of the selected clusters, and the runs in the records on this computer."""
    from ..agent.record.record import Record
    from ..registry import present_record, stored_records

    entries = _entries(options)
    tasks = [f"{task.hostname}:" for entry in entries for task in entry.expected.tasks]
    folders = [folder for entry in entries for folder in (present_record(entry), *stored_records(entry))]
    runs = [f"run:{run_id}/" for folder in folders for run_id in Record(folder).runs()]
    return [name for name in dict.fromkeys([*tasks, *runs]) if name.startswith(incomplete)]


@_without_warnings()
def clusters(options: Mapping[str, Any], incomplete: str) -> list[str]:
    """Clusters of the stack, or of all stacks if there is no stack."""
    from .. import registry

    names = dict.fromkeys(entry.cluster["name"] for entry in _entries(options, "") or registry.entries())
    return [name for name in names if name.startswith(incomplete)]


@_without_warnings()
def stacks(options: Mapping[str, Any], incomplete: str) -> list[str]:
    """Stacks that have clusters."""
    from .. import registry

    names = dict.fromkeys(entry.cluster["stack"] for entry in registry.entries())
    return [name for name in names if name.startswith(incomplete)]


def _entries(options: Mapping[str, Any], cluster: str | None = None) -> "list[Entry]":
    """The selected clusters; those of the whole stack if `cluster` is empty."""
    from .select import ClusterQuery, select_clusters

    cluster = str(options.get("cluster") or "") if cluster is None else cluster
    query = ClusterQuery(Path(options.get("cwd") or "."), str(options.get("stack") or ""), cluster)
    with suppress(TfdeployError, OSError):
        return select_clusters(query)
    return []
