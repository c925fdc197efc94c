"""Tasks as services of a Docker Swarm: on the engine of this computer, or on any Swarm that this computer can manage."""

from importlib.util import find_spec

from ..base import Backend, Discovery, Planner, TaskAccess
from .discover import discover_clusters, health
from .task_runner import DockerTaskRunner

if find_spec("pulumi_docker") is None:  # imported where it is used, because that takes long
    raise ModuleNotFoundError("No module named 'pulumi_docker'", name="pulumi_docker")

_runner = DockerTaskRunner()


def _planner() -> Planner:
    from .planner import DockerPlanner

    return DockerPlanner()


def _access() -> TaskAccess:
    from .task_access import ACCESS

    return ACCESS


BACKEND = Backend(
    _planner,
    lambda: _runner,
    _access,
    Discovery(discover_clusters, health),
    heal_command="pulumi up --refresh",
)
