"""Tasks as processes of this machine."""

from ..base import Backend, Discovery
from .discover import discover_clusters
from .health import health
from .planner import LocalPlanner
from .task_access import ACCESS
from .task_runner import LocalTaskRunner

BACKEND = Backend(
    planner=LocalPlanner(),
    runner=LocalTaskRunner(),
    access=ACCESS,
    discovery=Discovery(discover_clusters, health),
    heal_command="pulumi up --refresh",
)
