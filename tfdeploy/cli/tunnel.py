"""`tfdeploy tunnel`: tasks' addresses on this computer."""

import threading
from typing import Annotated

import typer

from ..agent.states import TENSORBOARD
from ..backends.access import Way, access
from ..backends.connecting import LOOPBACK, Forward
from ..errors import BackendError, NotFound, SpecError
from ..registry import Entry
from . import completing
from .asking import Asked, answer, say, tell
from .finding import standing
from .looking import look

_BOARD = f"{TENSORBOARD}-0"


def tunnel(
    asked: Asked,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[HOSTNAME…]",
            help="The tasks; by default TensorBoard.",
            show_default=False,
            autocompletion=completing.hostnames,
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(help="The port of this computer.", show_default="the task's, or a free one", min=0, max=65535),
    ] = 0,
) -> None:
    """Make tasks reachable from this computer, at addresses that only its own programs reach, until Ctrl-C.

    The way is the one that leads to the cluster's engine: no port is opened anywhere else.
    """
    entry = standing(asked)
    wanted = list(dict.fromkeys(names or [_by_default(entry)]))
    if port and len(wanted) > 1:
        raise SpecError("--port", f"is one port, for {len(wanted)} tasks", "Leave it out, or name one task.")
    hands = access(entry.cluster["backend"])
    ways = {hostname: hands.way(entry.cluster, hostname) for hostname in wanted}
    ports = {hostname: _port(way, port) for hostname, way in ways.items()}
    addresses = {hostname: f"{LOOPBACK}:{number}" for hostname, number in ports.items()}
    if asked.as_json:
        answer(addresses)
    else:
        for hostname, address in addresses.items():
            say(f"{hostname}: {'http://' if hostname == _BOARD else ''}{address}")
    if port or not all(way.direct for way in ways.values()):
        tell("Ctrl-C ends it.")
        threading.Event().wait()


def _by_default(entry: Entry) -> str:
    names = [row["hostname"] for row in look(entry).report.tasks]
    if not names:
        raise NotFound(f"{entry.title} has no run yet. `tfdeploy show` says what it waits for.")
    if _BOARD not in names:
        wrong = f"is missing: {entry.title} has no TensorBoard"
        raise SpecError("HOSTNAME", wrong, f"Name a task: {', '.join(names)}.")
    return _BOARD


def _port(way: Way, asked: int) -> int:
    """Listen on the port that is asked for, else on the task's, else on any that is free; where this computer finds the task
    anyway, only on one that is asked for."""
    if way.direct and asked in (0, way.port):
        return way.port
    if asked:
        return Forward(way.dial, asked, tell).port
    try:
        return Forward(way.dial, way.port, tell).port
    except BackendError:
        return Forward(way.dial, 0, tell).port
