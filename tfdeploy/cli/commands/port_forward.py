"""`tfdeploy port-forward`: ports of tasks on this computer."""

import re
from collections.abc import Sequence
from typing import Annotated

import typer

from ...backends.base import access
from ...backends.port_forward import LOOPBACK
from ...errors import SpecError
from .. import completion
from ..common import print_json, print_message, print_result
from ..select import ClusterQuery, select_existing_cluster
from .tunnel import local_port, tunnel, wait_for_interrupt

_PORTS = re.compile(r"(?:(?P<local>[0-9]*):)?(?P<remote>[0-9]+)")
_LARGEST_PORT = 65535
_BEGIN_OF_PORT = tuple("0123456789:-")


def port_forward(
    query: ClusterQuery,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[HOSTNAME… | HOSTNAME [LOCAL:]PORT…]",
            help="Tasks, of which the ports of TensorFlow and TensorBoard are forwarded; or a task and its ports, such as 8888, "
            "9000:8888, or :8888 for a free one here. Default: TensorBoard.",
            show_default=False,
            autocompletion=completion.hostnames,
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(
            help="Port on this computer, for one task.",
            show_default="the task's port, or a free one",
            min=0,
            max=_LARGEST_PORT,
        ),
    ] = 0,
) -> None:
    """Forward ports of this computer to tasks until Ctrl-C.

    The forwarded ports listen on the loopback interface only, and refuse programs of other users (on Linux). The data uses the
    connection to the cluster's engine: no other port is opened. A task on this computer is not forwarded: every user reaches it. For
    a notebook, a debugger or a profiler, name its port. In a container it must listen on all addresses (0.0.0.0), not on the loopback
    interface alone.
    """
    hostnames, ports = _parts(names or [])
    if not ports:
        tunnel(query, hostnames, port)
        return
    if port or len(hostnames) != 1:
        wrong = "is used with ports of a task" if port else f"has ports of {len(hostnames)} tasks"
        raise SpecError(
            "--port" if port else "port-forward", wrong, "Use: tfdeploy port-forward HOSTNAME [LOCAL:]PORT…"
        )
    _forward(query, hostnames[0], ports)


def _parts(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The tasks, and the ports: no name of a task begins with a digit or a colon."""
    ports = [name for name in names if name[:1] in _BEGIN_OF_PORT]
    return [name for name in names if name[:1] not in _BEGIN_OF_PORT], ports


def _forward(query: ClusterQuery, hostname: str, ports: Sequence[str]) -> None:
    pairs = [parse_ports(text) for text in ports]
    cluster = select_existing_cluster(query).cluster
    task_access = access(cluster["backend"])
    routes = {remote: task_access.route(cluster, hostname, remote) for _, remote in pairs}
    addresses = {remote: f"{LOOPBACK}:{local_port(routes[remote], local)}" for local, remote in pairs}
    if query.as_json:
        print_json({f"{hostname}:{remote}": address for remote, address in addresses.items()})
    else:
        for remote, address in addresses.items():
            print_result(f"{hostname}:{remote}: {address}")
    if all(routes[remote].direct and address == f"{LOOPBACK}:{remote}" for remote, address in addresses.items()):
        print_message(f"{hostname} is on this computer: nothing is forwarded.")
    else:
        wait_for_interrupt()


def parse_ports(text: str) -> tuple[int, int]:
    """The port of this computer, 0 for a free one, and the port of the task: `9000:8888`, `:8888`, or `8888` for both."""
    match = _PORTS.fullmatch(text)
    if match is None or not 0 < int(match["remote"]) <= _LARGEST_PORT or int(match["local"] or 0) > _LARGEST_PORT:
        raise typer.BadParameter(f"{text!r} is not valid. Use PORT, LOCAL:PORT, or :PORT for a free local port.")
    remote = int(match["remote"])
    return (remote if match["local"] is None else int(match["local"] or 0)), remote
