"""`tfdeploy port-forward` without ports, and the former `tfdeploy tunnel`: the tasks' own ports on this computer."""

import threading
from typing import Annotated

import typer

from ...agent.run_state import TENSORBOARD
from ...backends.base import Route, access
from ...backends.port_forward import LOOPBACK, Forward
from ...errors import BackendError, NotFound, SpecError
from ...registry import Entry
from .. import completion
from ..common import print_json, print_message, print_result
from ..select import ClusterQuery, select_existing_cluster
from ..snapshot import take_snapshot

_TENSORBOARD_TASK = f"{TENSORBOARD}-0"


def tunnel(
    query: ClusterQuery,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[HOSTNAME…]",
            help="Tasks. Default: TensorBoard.",
            show_default=False,
            autocompletion=completion.hostnames,
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(help="Port on this computer.", show_default="the task's port, or a free one", min=0, max=65535),
    ] = 0,
) -> None:
    """Forward ports of this computer to tasks until Ctrl-C.

    The forwarded ports listen on the loopback interface only, and refuse programs of other users (on Linux). The data uses the
    connection to the cluster's engine: no other port is opened. A task on this computer is not forwarded: every user reaches it.
    """
    entry = select_existing_cluster(query)
    hostnames = list(dict.fromkeys(names or [_default_task(entry)]))
    if port and len(hostnames) > 1:
        raise SpecError("--port", f"is one port, but there are {len(hostnames)} tasks", "Omit it, or name one task.")
    task_access = access(entry.cluster["backend"])
    routes = {hostname: task_access.route(entry.cluster, hostname) for hostname in hostnames}
    addresses = {hostname: f"{LOOPBACK}:{local_port(route, port)}" for hostname, route in routes.items()}
    if query.as_json:
        print_json(addresses)
    else:
        for hostname, address in addresses.items():
            print_result(f"{hostname}: {'http://' if hostname == _TENSORBOARD_TASK else ''}{address}")
    if port or not all(route.direct for route in routes.values()):
        wait_for_interrupt()


def wait_for_interrupt() -> None:
    """Forward until Ctrl-C."""
    print_message("Press Ctrl-C to stop.")
    threading.Event().wait()


def _default_task(entry: Entry) -> str:
    hostnames = [task["hostname"] for task in take_snapshot(entry).report.tasks]
    if not hostnames:
        raise NotFound(f"{entry.title} has no run yet. `tfdeploy status` prints what it waits for.")
    if _TENSORBOARD_TASK not in hostnames:
        wrong = f"is missing, and {entry.title} has no TensorBoard"
        raise SpecError("HOSTNAME", wrong, f"Name a task: {', '.join(hostnames)}.")
    return _TENSORBOARD_TASK


def local_port(route: Route, port: int) -> int:
    """The port on this computer that leads to a task: the given one, or the task's, or a free one.

    A task that this computer reaches directly needs no forwarding, except to another port.
    """
    if route.direct and port in (0, route.port):
        return route.port
    if port:
        return Forward(route.connect, port, print_message).port
    try:
        return Forward(route.connect, route.port, print_message).port
    except BackendError:
        return Forward(route.connect, 0, print_message).port
