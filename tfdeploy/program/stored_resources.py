"""The resources of a cluster as the stack's state has them, for a preview that cannot plan the cluster yet.

Pulumi shows what a program does not register as deleted, and refuses to delete what is protected.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pulumi

from ..identity import stored_urns

_PROVIDER = "pulumi:providers:"
_WITHOUT_PROVIDER = ("pulumi", "pulumi-python")
"""The packages of resources that need no provider."""


@dataclass(frozen=True)
class StoredResource:
    """A resource of a cluster in the state of the stack."""

    type: str
    name: str

    @property
    def package(self) -> str:
        """The package that the resource is of, or that it is the provider of."""
        return self.type.removeprefix(_PROVIDER).partition(":")[0]


def register_stored(name: str, component: str, parent: pulumi.Resource) -> bool:
    """Register the stored resources of the cluster as they are; False where that is not possible.

    The state has their names, but neither their options nor their providers. Where a package has no provider among them, it may be one
    of the user's.
    """
    resources = find_resources(stored_urns(), name, component)
    stored = [resource for resource in resources if resource.type.startswith(_PROVIDER)]
    packages = {*_WITHOUT_PROVIDER, *(resource.package for resource in stored)}
    if not resources or len(stored) > 1 or not packages.issuperset(resource.package for resource in resources):
        return False
    unchanged = pulumi.ResourceOptions(parent=parent, ignore_changes=["*"])
    providers = {resource.package: _Provider(resource.package, resource.name, {}, unchanged) for resource in stored}
    for resource in resources:
        if resource not in stored:
            own = pulumi.ResourceOptions(provider=providers.get(resource.package))
            opts = pulumi.ResourceOptions.merge(unchanged, own)
            pulumi.CustomResource(resource.type, resource.name, {}, opts)
    return True


class _Provider(pulumi.ProviderResource):
    """A provider with its stored configuration."""


def find_resources(urns: Iterable[str], name: str, component: str) -> Sequence[StoredResource]:
    """The resources of the cluster `name` among those of a stack. Pure.

    Their names begin with its name, and so may the name of another cluster.
    """
    all_resources = [(urn.split("::")[2].split("$"), urn.rpartition("::")[2]) for urn in urns]
    clusters = [owner for types, owner in all_resources if types[-1] == component]
    return [
        StoredResource(types[-1], own)
        for types, own in all_resources
        if types[-2:-1] == [component] and _owner(own, clusters) == name
    ]


def _owner(resource: str, clusters: Sequence[str]) -> str:
    return max((cluster for cluster in clusters if resource.startswith(f"{cluster}-")), key=len, default="")
