"""Tasks as processes of this machine."""

from ..base import Backend, Discovery
from .discover import discover_clusters
from .health import health
from .planner import LocalPlanner
from .run_mover import LocalRunMover
from .task_access import ACCESS
from .task_runner import LocalTaskRunner

_runner = LocalTaskRunner()

BACKEND = Backend(
    planner=LocalPlanner(),
    runner=_runner,
    access=ACCESS,
    discovery=Discovery(discover_clusters, health),
    heal_command="pulumi up --refresh",
    mover=LocalRunMover(_runner),
)
