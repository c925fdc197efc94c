"""Tasks as processes of this machine."""

from ..base import Backend, Discovery, Planner
from .discover import discover_clusters
from .health import health
from .run_mover import LocalRunMover
from .task_access import ACCESS
from .task_runner import LocalTaskRunner

_runner = LocalTaskRunner()


def _planner() -> Planner:
    from .planner import LocalPlanner

    return LocalPlanner()


BACKEND = Backend(
    make_planner=_planner,
    runner=_runner,
    access=ACCESS,
    discovery=Discovery(discover_clusters, health),
    heal_command="pulumi up --refresh",
    mover=LocalRunMover(_runner),
)
