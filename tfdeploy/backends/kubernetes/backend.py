"""Tasks as pods of a Kubernetes cluster, which the user brings."""

from importlib.util import find_spec
from typing import Any

from ..base import Backend, Discovery, Planner, TaskAccess
from .discover import discover_clusters, health
from .task_runner import KubernetesTaskRunner

if find_spec("kubernetes") is None:
    raise ModuleNotFoundError("No module named 'kubernetes'", name="kubernetes")

_runner = KubernetesTaskRunner()


def _planner() -> Planner[Any]:
    from .planner import KubernetesPlanner

    return KubernetesPlanner()


def _access() -> TaskAccess:
    from .task_access import KubernetesAccess

    return KubernetesAccess(_runner)


BACKEND = Backend(
    _planner,
    lambda: _runner,
    _access,
    Discovery(discover_clusters, health),
    heal_command="pulumi up --refresh",
)
