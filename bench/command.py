"""How long commands take on a local cluster, against `docker ps`; without an engine, against Pulumi's stack outputs."""

import os
import time

from .engine import CLUSTER, UP, Project, project, workplace
from .pairs import by_turns
from .processes import run as run_command
from .table import Row, limit, ratio

_PAIRS = 10
_TARGET = 2.5
_COMMANDS = (("tfdeploy", "show"), ("tfdeploy", "logs"), ("tfdeploy", "--help"))
_DOCKER = ("docker", "ps")
_PULUMI = ("pulumi", "stack", "output", "status")


def run() -> list[Row]:
    """By turns, on a cluster that trains."""
    config = {
        "tfdeploy:ps": 1,
        "tfdeploy:workers": 2,
        "tfdeploy:command": ["python", "chatter.py"],
        "tfdeploy:wait": "0",
    }
    with workplace() as place, project(place, CLUSTER, "command", config) as made:
        made.ship("chatter.py")
        made.pulumi(*UP)
        return [row for command in _COMMANDS for row in _rows(made, command)]


def _rows(made: Project, command: tuple[str, ...]) -> list[Row]:
    """The rows of one command. A target is only for `docker ps`."""
    has_engine = bool(os.environ.get("DOCKER_HOST"))
    other = _DOCKER if has_engine else _PULUMI
    _seconds(made, command), _seconds(made, other)
    mine, others = by_turns(_PAIRS, command[-1], lambda: _seconds(made, command), lambda: _seconds(made, other))
    named = f"`{' '.join(command)}`"
    return [
        ratio(
            f"{named} on a local cluster, against `{' '.join(other)}`", mine, others, _TARGET if has_engine else None
        ),
        limit(f"{named} on a local cluster (worst of the calls)", mine, 1, " s"),
    ]


def _seconds(made: Project, command: tuple[str, ...]) -> float:
    begun = time.perf_counter()
    run_command(*command, folder=made.folder, environment=made.environment)
    return time.perf_counter() - begun
