"""`tfdeploy port-forward`: ports of tasks on this computer."""

import re
import threading
from collections.abc import Sequence
from functools import partial

from ...agent.model.run_state import TENSORBOARD
from ...backends.backend import access
from ...backends.base import Route
from ...backends.port_forward import LOOPBACK, Forward
from ...errors import BackendError, SpecError, UsageError
from ...registry import Entry
from ..cluster_selection import ClusterQuery, select_existing_cluster
from ..output import print_json, print_message, print_result
from ..parser import Parser, whole_number
from ..snapshot import no_run, take_snapshot

_TENSORBOARD_TASK = f"{TENSORBOARD}-0"
_PORTS = re.compile(r"(?:(?P<local>[0-9]*):)?(?P<remote>[0-9]+)")
_LARGEST_PORT = 65535
_BEGIN_OF_PORT = tuple("0123456789:-")


def add_arguments(parser: Parser) -> None:
    """Its options and arguments."""
    names = (
        "Tasks, of which the ports of TensorFlow and TensorBoard are forwarded; or a task and its ports, such as 8888, 9000:8888, or "
        ":8888 for a free one here. Default: TensorBoard."
    )
    parser.add_argument("names", nargs="*", metavar="HOSTNAME|PORT", help=names)
    port = "Port on this computer, for one task. Default: the task's port, or a free one."
    parser.add_argument("--port", type=whole_number(0, _LARGEST_PORT), default=0, help=port)


def port_forward(query: ClusterQuery, names: Sequence[str] = (), port: int = 0) -> None:
    """Forward ports of this computer to tasks until Ctrl-C.

    The forwarded ports listen on the loopback interface only, and refuse programs of other users (on Linux). The data uses the
    connection to the cluster's engine: no other port is opened. A task on this computer is not forwarded: every user reaches it. For
    a notebook, a debugger or a profiler, name its port. In a container it must listen on all addresses (0.0.0.0), not on the loopback
    interface alone.
    """
    hostnames, ports = _parts(names)
    if ports and (port or len(hostnames) != 1):
        wrong = "is used with ports of a task" if port else f"has ports of {len(hostnames)} tasks"
        raise SpecError(
            "--port" if port else "port-forward", wrong, "Use: tfdeploy port-forward HOSTNAME [LOCAL:]PORT…"
        )
    routes = _routes(query, hostnames, [parse_ports(text) for text in ports], port)
    local_ports = {title: local_port(route, local) for title, (route, local) in routes.items()}
    if query.as_json:
        print_json({title: f"{LOOPBACK}:{local}" for title, local in local_ports.items()})
    else:
        for title, local in local_ports.items():
            print_result(f"{title}: {'http://' if title == _TENSORBOARD_TASK else ''}{LOOPBACK}:{local}")
    if port or any(not route.direct or local_ports[title] != route.port for title, (route, _) in routes.items()):
        print_message("Press Ctrl-C to stop.")
        threading.Event().wait()
    elif ports:
        print_message(f"{hostnames[0]} is on this computer: nothing is forwarded.")


def _parts(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The tasks, and the ports: no name of a task begins with a digit or a colon."""
    ports = [name for name in names if name[:1] in _BEGIN_OF_PORT]
    return [name for name in names if name[:1] not in _BEGIN_OF_PORT], ports


def _routes(
    query: ClusterQuery, hostnames: Sequence[str], pairs: Sequence[tuple[int, int]], port: int
) -> dict[str, tuple[Route, int]]:
    """The routes to these ports of a task, or to the own ports of tasks, each with the wanted port of this computer."""
    entry = select_existing_cluster(query)
    find = partial(access(entry.cluster["backend"]).route, entry.cluster)
    if pairs:
        return {f"{hostnames[0]}:{remote}": (find(hostnames[0], remote), local) for local, remote in pairs}
    return {hostname: (find(hostname), port) for hostname in _tasks(entry, hostnames, port)}


def _tasks(entry: Entry, hostnames: Sequence[str], port: int) -> list[str]:
    """The named tasks; TensorBoard if there are no names."""
    names = list(dict.fromkeys(hostnames))
    if port and len(names) > 1:
        raise SpecError("--port", f"is one port, but there are {len(names)} tasks", "Omit it, or name one task.")
    if names:
        return names
    snapshot = take_snapshot(entry)
    existing = [task["hostname"] for task in snapshot.report.tasks]
    if not existing:
        raise no_run(snapshot)
    if _TENSORBOARD_TASK not in existing:
        wrong = f"is missing, and {entry.title} has no TensorBoard"
        raise SpecError("HOSTNAME", wrong, f"Name a task: {', '.join(existing)}.")
    return [_TENSORBOARD_TASK]


def parse_ports(text: str) -> tuple[int, int]:
    """The port of this computer, 0 for a free one, and the port of the task: `9000:8888`, `:8888`, or `8888` for both."""
    match = _PORTS.fullmatch(text)
    if match is None or not 0 < int(match["remote"]) <= _LARGEST_PORT or int(match["local"] or 0) > _LARGEST_PORT:
        raise UsageError(f"{text!r} is not valid. Use PORT, LOCAL:PORT, or :PORT for a free local port.")
    remote = int(match["remote"])
    return (remote if match["local"] is None else int(match["local"] or 0)), remote


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
