"""How long commands take on a local cluster, against `docker ps`; without an engine, against Pulumi's stack outputs."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .engine import CLUSTER, UP, Project, project, workplace
from .pairs import by_turns
from .processes import run as run_command
from .table import Row, limit, ratio

_PAIRS = 10
_COMMAND_TARGET = 8.0
_HELP_TARGET = 4.0
_DOCKER = ("docker", "ps")
_PULUMI = ("pulumi", "stack", "output", "status")


@dataclass(frozen=True)
class _Call:
    """One call of the command."""

    title: str
    words: tuple[str, ...]
    target: float
    """At most so many times as long as `docker ps`."""
    variables: Mapping[str, str] = field(default_factory=dict)


_COMPLETED = {"_TFDEPLOY_COMPLETE": "st"}
_CALLS = (
    *(_Call(f"`tfdeploy {verb}`", ("tfdeploy", verb), _COMMAND_TARGET) for verb in ("status", "logs", "ls", "runs")),
    _Call("`tfdeploy --help`", ("tfdeploy", "--help"), _HELP_TARGET),
    _Call("shell completion of a command of `tfdeploy`", ("tfdeploy",), _HELP_TARGET, _COMPLETED),
)


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
        return [row for call in _CALLS for row in _rows(made, call)]


def _rows(made: Project, call: _Call) -> list[Row]:
    """The rows of one call. A target is only for `docker ps`."""
    has_engine = bool(os.environ.get("DOCKER_HOST"))
    peer = _DOCKER if has_engine else _PULUMI
    _seconds(made, call.words, call.variables), _seconds(made, peer, {})
    mine, others = by_turns(
        _PAIRS, call.title, lambda: _seconds(made, call.words, call.variables), lambda: _seconds(made, peer, {})
    )
    title = f"{call.title} on a local cluster"
    return [
        ratio(f"{title}, against `{' '.join(peer)}`", mine, others, call.target if has_engine else None),
        limit(f"{title} (worst of the calls)", mine, 1, " s"),
    ]


def _seconds(made: Project, words: Sequence[str], variables: Mapping[str, str]) -> float:
    begun = time.perf_counter()
    run_command(*words, folder=made.folder, environment={**made.environment, **variables})
    return time.perf_counter() - begun
