"""The toy backend as a cluster that places tasks itself: it has no machine before one has a task."""

from dataclasses import replace
from pathlib import Path

from tests.toy_backend import backend
from tests.toy_backend.backend import ToyPlanner
from tfdeploy.backends.base import ClusterRef
from tfdeploy.plan.inventory import Inventory
from tfdeploy.spec.cluster import ClusterSpec


class NodesPlanner(ToyPlanner):
    """The contract is `backends.base.Planner`."""

    def inspect(self, cluster: ClusterRef, spec: ClusterSpec, program_folder: Path) -> Inventory:
        inventory = super().inspect(cluster, spec, program_folder)
        return replace(inventory, machines=(), task_machines={}, places_tasks=True)


BACKEND = replace(backend.BACKEND, make_planner=NodesPlanner)
