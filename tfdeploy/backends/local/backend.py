"""Tasks as processes of this machine."""

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

from ..backend import Backend
from ..base import Check, DiscoveredCluster, Discovery, Planner, TaskAccess, TaskRunner

for _package in ("psutil", "supervisor"):  # imported where they are used, because that takes long
    if find_spec(_package) is None:
        raise ModuleNotFoundError(f"No module named {_package!r}", name=_package)


def _planner() -> Planner[Any]:
    from .planner import LocalPlanner

    return LocalPlanner()


@cache
def _runner() -> TaskRunner:
    from .task_runner import LocalTaskRunner

    return LocalTaskRunner()


def _access() -> TaskAccess:
    from .task_access import ACCESS

    return ACCESS


def _discover(place: str) -> Sequence[DiscoveredCluster]:
    from .discover import discover_clusters

    return discover_clusters(place)


def _health(place: str) -> Sequence[Check]:
    from .discover import health

    return health(place)


BACKEND = Backend(
    _planner,
    _runner,
    _access,
    Discovery(_discover, _health),
    restore_command="pulumi up --refresh",
)
