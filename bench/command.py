"""How long the command takes to show the state of a local cluster, against Pulumi's stack outputs, which are a snapshot."""

import time

from .engine import CLUSTER, UP, project, workplace
from .pairs import by_turns
from .processes import run as run_command
from .table import Row, limit, ratio

_PAIRS = 10
_SHOW = ["tfdeploy", "show"]


def run() -> list[Row]:
    """Both by turns, on a cluster that trains."""
    config = {
        "tfdeploy:ps": 1,
        "tfdeploy:workers": 2,
        "tfdeploy:command": ["python", "chatter.py"],
        "tfdeploy:wait": "0",
    }
    with workplace() as place, project(place, CLUSTER, "command", config) as made:
        made.ship("chatter.py")
        made.pulumi(*UP)

        def ours() -> float:
            begun = time.perf_counter()
            run_command(*_SHOW, folder=made.folder, environment=made.environment)
            return time.perf_counter() - begun

        def peer() -> float:
            begun = time.perf_counter()
            made.pulumi("stack", "output", "status")
            return time.perf_counter() - begun

        ours(), peer()
        mine, others = by_turns(_PAIRS, "command", ours, peer)
    return [
        ratio(
            "`tfdeploy status`, which observes the cluster, against `pulumi stack output`, a snapshot",
            mine,
            others,
            None,
        ),
        limit("`tfdeploy status` on a local cluster (worst of the calls)", mine, 1, " s"),
    ]
