"""How many calls of the engine `pulumi up` and an observation make, how many bytes they send to it, and how many connections they need.
What grows with the number of tasks is one number for each task. The numbers are the most that may be needed.

The calls of Pulumi's own Docker provider, which creates network, secrets and the agent, are not counted.
"""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from tests.counting import BODY, PROGRAM, PROVIDER, REQUEST, Acts, CountedProcesses, Linear, counting, expected
from tests.docker.project import DockerProject
from tests.engine.proxy import proxy
from tfdeploy.agent.record.record import ViewRequest
from tfdeploy.backends.base import ClusterRef
from tfdeploy.backends.docker.backend import BACKEND

JOB = 'command=["python", "train.py"], code="code", workers={workers}, wait="0"'
WAITS = "import time\ntime.sleep(1000)\n"
FEW, MANY = 1, 4

CREATED = {
    "GET nodes": Linear(0, 1),
    "GET services/*": Linear(1, 1),
    "POST secrets/create": Linear(0, 1),
    "POST services/create": Linear(1, 1),
}
"""To create tasks, each with the secret of its token, and the controller."""

ADDED = {**CREATED, "POST services/create": Linear(0, 1)}
"""To create more tasks."""

LOOK = {
    "GET nodes": 1,
    "GET services": 1,
    "GET tasks": 1,
    "POST files": 1,
}
"""The controller is called over the open connection that a command in its container relays."""

NO_OP_UP = {
    "GET version": 1,
    "GET info": 5,
    "GET nodes": 3,
    "GET services": 4,
    "GET tasks": 2,
    "GET networks": 1,
    "GET images/*/json": 1,
    "GET system/df": 1,
    "GET containers/json": 1,
    "POST containers/*/exec": 1,
    "POST view": 1,
    "POST files": 1,
}
"""It plans, for which it calls the controller too, and observes once."""

BYTES_OF_A_LOOK, BYTES_OF_A_NO_OP_UP = Linear(900, 70), Linear(6_600, 70)
"""With the heads of the requests, and in an `up` the program of the relay."""

IDLE, CONNECTIONS = 2, 2
"""Connections that wait for the next call, and the most that are open at once: one is for the command in the controller's container."""

_NAMES = ("archive", "create", "df", "exec", "json")


def calls(acts: Acts) -> "Counter[str]":
    """How many calls of each kind: `GET services/*` for one service, `GET services` for a list."""
    return Counter(_kind(act.what) for act in acts.of(REQUEST))


def _kind(request: str) -> str:
    method, url = request.split()
    first, *rest = [part for part in urlsplit(url).path.split("/") if part and not re.fullmatch(r"v\d\.\d+", part)]
    parts = [part if part in _NAMES else "*" for part in rest]
    return re.sub(r"(/\*)+", "/*", f"{method} {'/'.join([first, *parts])}")


def bytes_sent(acts: Acts) -> int:
    """The bytes of all requests."""
    return sum(act.size for kind in (REQUEST, BODY) for act in acts.of(kind))


def excess(found: "Counter[str]", most: Mapping[str, int]) -> dict[str, int]:
    """The calls that were made more often."""
    return {kind: count for kind, count in found.items() if count > most.get(kind, 0)}


def up(project: DockerProject, folder: str, workers: int) -> tuple[Acts, Acts]:
    """What the program and the dynamic resources do in an `up`."""
    counted = CountedProcesses(project.folder / folder)
    project.write(JOB.format(workers=workers), WAITS)
    project.up(env=counted.environment)
    return counted.acts(PROGRAM), counted.acts(PROVIDER)


def look(project: DockerProject, folder: Path) -> tuple[Acts, int]:
    """What an observation does, and how many connections were open at once."""
    folder.mkdir()
    with proxy(folder, project.host) as engine:
        cluster = cast(ClusterRef, {**project.cluster, "home": engine.address})
        BACKEND.runner.observe(cluster, "", ViewRequest(20))
        engine.begin(IDLE)
        with counting() as acts:
            observed = BACKEND.runner.observe(cluster, "", ViewRequest(20))
        assert observed.controller_silent_since is None
        return acts, engine.most


def test_calls_of_the_engine(project: DockerProject, tmp_path: Path) -> None:
    for workers, added, numbers in ((FEW, FEW, CREATED), (MANY, MANY - FEW, ADDED)):
        _, provider = up(project, f"up-{workers}", workers)
        found = calls(provider)
        made = Counter({kind: found[kind] for kind in numbers})
        assert excess(made, expected(numbers, added)) == {}, "the other calls are repeated until the controller runs"
        assert made["POST services/create"] == numbers["POST services/create"].of(added)
        project.until_running(*(f"worker-{index}" for index in range(workers)))
        program, provider = up(project, f"no-op-{workers}", workers)
        assert excess(calls(program), NO_OP_UP) == {}
        assert 0 < bytes_sent(program) <= BYTES_OF_A_NO_OP_UP.of(workers)
        assert calls(provider) == {}, "nothing has changed"
        observation, connections = look(project, tmp_path / str(workers))
        assert excess(calls(observation), LOOK) == {}
        assert 0 < bytes_sent(observation) <= BYTES_OF_A_LOOK.of(workers)
        assert 0 < connections <= CONNECTIONS
    project.destroy()
