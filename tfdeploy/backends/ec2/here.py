"""What everything of one cluster is made with."""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from ...instances import FleetSpec
from ...spec import ClusterSpec
from ..base import Cluster
from ..docker import names
from .fleet import Plot, tags


@dataclass(frozen=True)
class Here:
    """What everything of one cluster is made with."""

    name: str
    cluster: Cluster
    spec: ClusterSpec
    plots: Mapping[str, Plot]
    opts: pulumi.ResourceOptions

    @property
    def fleet(self) -> FleetSpec:
        """What all machines have in common."""
        return self.spec.fleet

    @property
    def place(self) -> Plot:
        """What says where they all are: any of them."""
        return next(iter(self.plots.values()))

    @property
    def vpc_cidrs(self) -> list[str]:
        """The addresses of the network that they are in."""
        return self.place["vpc_cidrs"]

    def tags(self, what: str = "") -> dict[str, str]:
        """The tags of one thing."""
        return {**self.fleet.tags, **tags(self.cluster), "Name": what or names.base(self.cluster)}
