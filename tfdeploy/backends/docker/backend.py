"""Tasks as services of a Docker Swarm: on the engine of this computer, or on any Swarm that this computer can manage."""

from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..backend import Backend, lazy
from ..base import ClusterRef, Discovery, place_title
from .discover import discover_clusters, health
from .task_runner import DockerTaskRunner

if TYPE_CHECKING:
    from ...plan.inventory import PlaceRef

if find_spec("pulumi_docker") is None:  # imported where it is used, because that takes long
    raise ModuleNotFoundError("No module named 'pulumi_docker'", name="pulumi_docker")

_runner = DockerTaskRunner()


def _describe_other_place(cluster: ClusterRef, former: "PlaceRef", place: "PlaceRef") -> tuple[str, str] | None:
    """Another manager of the same Swarm has neither the controller's container nor its record. An engine that has left its Swarm and
    created another is the same place."""
    if not former.get("swarm") or former.get("swarm") != place.get("swarm"):
        return None
    wrong = (
        f"the controller of {cluster['id']} and its record are on {place_title(former)}, and this is {place_title(place)}, another "
        "manager of its Swarm"
    )
    remedy = (
        f"Make {cluster['home']} reach that manager again. If it no longer exists, `pulumi destroy` removes the cluster from the "
        "Swarm, and keeps the copy of the record on this computer."
    )
    return wrong, remedy


BACKEND = Backend(
    lazy(f"{__package__}.planner", "DockerPlanner"),
    lambda: _runner,
    partial(lazy(f"{__package__}.task_access", "DockerAccess"), _runner),
    Discovery(discover_clusters, health),
    restore_command="pulumi up --refresh",
    describe_other_place=_describe_other_place,
    adoption_completed_by=frozenset({"network", "network-encrypted"}),
)
