"""`tfdeploy port-forward`: any port of a task on this computer."""

import re
from typing import Annotated

import typer

from ...backends.base import access
from ...backends.port_forward import LOOPBACK
from ..common import Hostname, print_json, print_message, print_result
from ..select import ClusterQuery, select_existing_cluster
from .tunnel import local_port, wait_for_interrupt

_PORTS = re.compile(r"(?:(?P<local>[0-9]*):)?(?P<remote>[0-9]+)")
_LARGEST_PORT = 65535


def port_forward(
    query: ClusterQuery,
    hostname: Hostname,
    ports: Annotated[
        list[str],
        typer.Argument(
            metavar="[LOCAL:]PORT…",
            help="Port of the task, and of this computer if it is another: 8888, 9000:8888, or :8888 for a free one.",
            show_default=False,
        ),
    ],
) -> None:
    """Forward ports of this computer to any ports of a task until Ctrl-C.

    For a notebook, a debugger or a profiler; `tfdeploy tunnel` forwards to the port of the task itself. In a container the program must
    listen on all addresses (0.0.0.0), not on the loopback interface alone. Otherwise the same holds as for `tunnel`.
    """
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
