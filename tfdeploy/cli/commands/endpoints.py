"""`tfdeploy endpoints`: the addresses of tasks."""

from typing import Annotated

import typer

from ...backends.task_access import no_task
from ...outputs import TaskRow
from .. import completion
from ..common import print_json
from ..output import print_table
from ..select import ClusterQuery, select_cluster
from ..snapshot import take_snapshot

_COLUMNS = ("hostname", "endpoint", "address", "machine", "public_ip")


def endpoints(
    query: ClusterQuery,
    hostname: Annotated[
        str,
        typer.Argument(help="Task, such as worker-0.", show_default=False, autocompletion=completion.hostnames),
    ] = "",
) -> None:
    """Show the addresses of tasks.

    ENDPOINT is the stable name inside the cluster, ADDRESS the current one. From this computer, use `tfdeploy port-forward`.
    """
    snapshot = take_snapshot(select_cluster(query))
    tasks = snapshot.report.tasks
    rows = [_endpoint(task) for task in tasks if hostname in ("", task["hostname"])]
    if not rows:
        raise no_task(snapshot.entry.title, hostname, [task["hostname"] for task in tasks])
    if query.as_json:
        print_json(rows)
    else:
        print_table(rows, _COLUMNS, query.wide)


def _endpoint(task: TaskRow) -> dict[str, str]:
    port = task["address"].rpartition(":")[2]
    return {
        "hostname": task["hostname"],
        "endpoint": f"{task['hostname']}:{port}" if port else "",
        "address": task["address"],
        "machine": task["machine"],
        "public_ip": task["public_ip"],
    }
