"""`tfdeploy top`: the processors and the memory that tasks use."""

from typing import Any

from ...backends.backend import access
from ...units import text_of_size
from ..cluster_selection import ClusterQuery, select_existing_cluster
from ..output import print_json, print_table
from ..snapshot import take_snapshot

_COLUMNS = ("hostname", "machine", "status", "cpus", "memory")


def top(query: ClusterQuery) -> None:
    """Show the processors and memory that each task uses.

    CPUS is the number of processors in use over the last moment, such as 1.5. A task has no numbers if it does not run, or if it runs
    on a machine of a Swarm with an engine that this computer does not reach. For GPUs, use `tfdeploy exec worker-0 -- nvidia-smi`.
    """
    entry = select_existing_cluster(query)
    used = access(entry.cluster["backend"]).usage(entry.cluster)
    tasks = take_snapshot(entry, events=0).report.tasks
    rows: list[dict[str, Any]] = []
    for task in tasks:
        usage = used.get(task["hostname"])
        names = {"hostname": task["hostname"], "machine": task["machine"], "status": task["status"]}
        if query.as_json:
            cells: dict[str, Any] = {"cpus": usage.cpus if usage else None, "memory": usage.memory if usage else None}
        else:
            cells = {
                "cpus": f"{usage.cpus:.2f}" if usage else "",
                "memory": text_of_size(usage.memory) if usage else "",
            }
        rows.append({**names, **cells})
    print_json(rows) if query.as_json else print_table(rows, _COLUMNS, query.wide)
