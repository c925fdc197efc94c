"""Many tasks on one engine: made to stand, against as many `docker service create`; and looked at."""

import itertools
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil

from tests.engine.images import python_image
from tfdeploy.backends.docker import BACKEND
from tfdeploy.backends.docker.engine import address
from tfdeploy.backends.docker.names import service

from .baselines.containers import services
from .engine import STACK, UP, workplace
from .needs import image_of
from .pairs import by_turns, say
from .processes import docker, until
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
    image = image_of(python_image)
    number = itertools.count()
    looks: list[float] = []
    connections: list[float] = []
    with workplace() as place:

        def ours() -> float:
            config = {"tfdeploy:workers": 1, "tfdeploy:command": _FOREVER, "tfdeploy:wait": "0"}
            with on_swarm(place, f"ours-{next(number)}", image, config) as cluster:
                cluster.made.ship("quick.py")
                cluster.made.pulumi(*UP)
                seconds = _stood(cluster)
                cluster.made.configure({"tfdeploy:workers": 1 + TASKS})
                cluster.made.pulumi(*UP)
                _look(cluster, looks, connections)
            return seconds

        def peer() -> float:
            with services(f"{STACK}-many", image, TASKS, _AT_ONCE, _FOREVER) as seconds:
                return seconds

        mine, other = by_turns(_PAIRS, f"{TASKS} tasks", ours, peer)
    stood = f"{TASKS} tasks until all run on one engine, by the backend's hands, against `docker service create`"
    return [
        ratio(f"{stood}, {_AT_ONCE} at once", mine, other, 1.2),
        limit(f"one look at {TASKS} tasks on one manager (worst of the looks)", looks, 2, " s"),
        limit(f"one look at {TASKS} tasks: sockets to the engine at once", connections, 1, ""),
    ]


def _stood(cluster: OnSwarm) -> float:
    """Seconds until so many tasks more run, made by the hands that Pulumi's plugin calls, with what it would give them."""
    state = json.loads(cluster.made.call("stack", "export", "--show-secrets"))
    known = next(
        item["inputs"] for item in state["deployment"]["resources"] if item["urn"].endswith("::bench-worker-0")
    )
    given = [{**known, "hostname": f"worker-{index}", "index": index} for index in range(1, 1 + TASKS)]
    # As in a first `up`, whose tasks come before the keeper does; it would send home whom it does not expect.
    docker("service", "rm", service(cluster.handle, "keeper"))
    until(lambda: len(cluster.containers()) == 1, "the keeper's end", seconds=_SECONDS)
    begun = time.perf_counter()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(BACKEND.stand, given))
    say(f"{TASKS} services made after {time.perf_counter() - begun:.1f} s")
    until(lambda: len(cluster.containers()) == 1 + TASKS, f"{TASKS} tasks", cluster, seconds=_SECONDS)
    return time.perf_counter() - begun


def _look(cluster: OnSwarm, looks: list[float], connections: list[float]) -> None:
    """Some looks, once all tasks have come."""

    def all_run() -> bool:
        job = cluster.look()["job"]
        return job is not None and all(task["state"] == "running" for task in job["tasks"].values())

    until(all_run, f"{TASKS} tasks that run", cluster, seconds=_SECONDS)
    for _ in range(_LOOKS):
        _dialled.clear()
        begun = time.perf_counter()
        cluster.look(20)
        looks.append(time.perf_counter() - begun)
        connections.append(max([_open(), *_dialled]))
    say(f"looks: {', '.join(f'{seconds:.2f}' for seconds in looks[-_LOOKS:])} s; {connections[-1]:g} sockets at once")


def _open() -> int:
    """The Unix sockets of this process, less those that it had at its beginning: they lead to the engine."""
    return _sockets() - _BEFORE


def _sockets() -> int:
    return len(psutil.Process().net_connections(kind="unix"))


_BEFORE = _sockets()


def _dial(event: str, details: tuple[Any, ...]) -> None:
    if event == "socket.connect" and details[1] == address("").removeprefix("unix://"):
        _dialled.append(_open())


sys.addaudithook(_dial)
