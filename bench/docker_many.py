"""Many tasks on one engine: made to stand, against as many `docker service create`; and looked at."""

import itertools
import os
import sys
import time
from typing import Any

import psutil

from tests.engine.images import python_image
from tfdeploy.backends.docker.engine import address

from .baselines.containers import services
from .engine import FLEET, STACK, UP, Workplace, project, workplace
from .pairs import by_turns, say
from .standing import until
from .swarm import OnSwarm, on_swarm
from .table import Row, limit, ratio

TASKS = int(os.environ.get("BENCH_TASKS", "100"))
"""Fewer where a machine cannot hold so many; the rows say how many."""

_PAIRS = 2
_AT_ONCE = 4
_LOOKS = 5
_FOREVER = ["python3", "-c", "import time; time.sleep(1000000)"]
_SECONDS = 600.0
_dialled: list[int] = []
"""How many sockets there were at each connection to the engine that this process began, the new one among them."""


def run() -> list[Row]:
    """Everything anew in each measurement; the looks are at the last cluster."""
    image = python_image(address(""))
    number = itertools.count()
    looks: list[float] = []
    connections: list[float] = []
    with workplace() as place:

        def ours() -> float:
            bare = _bare(place, f"bare-{next(number)}")
            name = f"ours-{next(number)}"
            config = {"tfdeploy:workers": TASKS, "tfdeploy:command": _FOREVER, "tfdeploy:wait": "0"}
            with on_swarm(place, name, image, config) as cluster:
                cluster.made.ship("quick.py")
                begun = time.perf_counter()
                cluster.made.pulumi(*UP)
                until(lambda: len(cluster.containers()) == TASKS + 1, f"{TASKS} tasks", _SECONDS)
                seconds = time.perf_counter() - begun
                say(f"{TASKS} tasks: {seconds:.1f} s by `up`, {bare:.1f} s of them are a bare one's")
                _look(cluster, looks, connections)
            return seconds - bare

        def peer() -> float:
            with services(f"{STACK}-many", image, TASKS, _AT_ONCE, _FOREVER) as seconds:
                return seconds

        mine, other = by_turns(_PAIRS, f"{TASKS} tasks", ours, peer)
    stood = (
        f"{TASKS} tasks until all run on one engine: `up` less a bare `up`, against `docker service create`,"
        f" {_AT_ONCE} at once"
    )
    return [
        ratio(stood, mine, other, 1.2),
        limit(f"one look at {TASKS} tasks on one manager (worst of the looks)", looks, 2, " s"),
        limit(f"one look at {TASKS} tasks: connections to the engine at once", connections, 1, ""),
    ]


def _bare(place: Workplace, name: str) -> float:
    with project(place, FLEET, name, {"fleet:tasks": TASKS}) as made:
        return made.pulumi(*UP)


def _look(cluster: OnSwarm, looks: list[float], connections: list[float]) -> None:
    """Some looks, once all tasks have come."""

    def all_run() -> bool:
        job = cluster.look()["job"]
        return job is not None and all(task["state"] == "running" for task in job["tasks"].values())

    until(all_run, f"{TASKS} tasks that run", _SECONDS)
    for _ in range(_LOOKS):
        _dialled.clear()
        begun = time.perf_counter()
        cluster.look(20)
        looks.append(time.perf_counter() - begun)
        connections.append(max([_open(), *_dialled]))
    say(f"looks: {', '.join(f'{seconds:.2f}' for seconds in looks[-_LOOKS:])} s; {connections[-1]:g} sockets at once")


def _open() -> int:
    """The Unix sockets of this process: it has no others than those to the engine."""
    return len(psutil.Process().net_connections(kind="unix"))


def _dial(event: str, details: tuple[Any, ...]) -> None:
    if event == "socket.connect" and details[1] == address("").removeprefix("unix://"):
        _dialled.append(_open())


sys.addaudithook(_dial)
