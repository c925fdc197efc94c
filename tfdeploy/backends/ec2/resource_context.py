"""What the AWS resources of one cluster have in common."""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from ...spec.cluster import ClusterSpec
from ...spec.ec2 import Ec2Spec
from ..base import ClusterRef
from ..docker.labels import name_prefix
from .machine.machines import tags
from .machine.model import PlannedInstance


@dataclass(frozen=True)
class ResourceContext:
    """A cluster, and the options of its resources."""

    name: str
    cluster: ClusterRef
    spec: ClusterSpec
    planned_instances: Mapping[str, PlannedInstance]
    region: str | None
    """The argument of regional resources; None where it is the provider's region."""
    opts: pulumi.ResourceOptions

    @property
    def ec2(self) -> Ec2Spec:
        """The properties of all machines."""
        return self.spec.ec2

    @property
    def any_instance(self) -> PlannedInstance:
        """One of the machines: all are in the same subnet."""
        return next(iter(self.planned_instances.values()))

    def tags(self, name: str = "") -> dict[str, str]:
        """The tags of a resource."""
        return {**self.ec2.tags, **tags(self.cluster), "Name": name or name_prefix(self.cluster)}
