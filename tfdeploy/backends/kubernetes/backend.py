"""Tasks as pods of a Kubernetes cluster, which the user brings."""

from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..backend import Backend, lazy
from ..base import ClusterRef, Discovery
from .discover import discover_clusters, health
from .namespace import parse_home
from .task_runner import KubernetesTaskRunner

if TYPE_CHECKING:
    from ...plan.inventory import PlaceRef

if find_spec("kubernetes") is None:
    raise ModuleNotFoundError("No module named 'kubernetes'", name="kubernetes")

_runner = KubernetesTaskRunner()


def _describe_other_place(cluster: ClusterRef, former: "PlaceRef", place: "PlaceRef") -> tuple[str, str] | None:
    """A namespace without an id does not exist, or may not be read."""
    if place["id"]:
        return None
    home = parse_home(cluster["home"])
    where = f"the namespace {home.namespace!r}, which {home.server} does not have, or you may not read it"
    remedy = (
        "docs/kubernetes-role.yaml has the Role that you need. If the namespace was deleted, `pulumi destroy` removes the cluster "
        "from the stack."
    )
    return f"the cluster {cluster['id']} is in {where}", remedy


BACKEND = Backend(
    lazy(f"{__package__}.planner", "KubernetesPlanner"),
    lambda: _runner,
    partial(lazy(f"{__package__}.task_access", "KubernetesAccess"), _runner),
    Discovery(discover_clusters, health),
    restore_command="pulumi up --refresh",
    describe_other_place=_describe_other_place,
)
