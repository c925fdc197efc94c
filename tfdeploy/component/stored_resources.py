"""The resources of a cluster as the stack's state has them, for a preview that cannot plan the cluster yet.

Pulumi shows what a program does not register as deleted, and refuses to delete what is protected.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pulumi

from ..identity import stored_urns

_PROVIDER = "pulumi:providers:"
_DOCKER = "docker"
_KNOWN = ("pulumi:index:Stash", "pulumi-python:dynamic/tfdeploy:", f"{_PROVIDER}{_DOCKER}", f"{_DOCKER}:index/")
"""The types of resources, or how they begin, that a program can register from their name alone."""


@dataclass(frozen=True)
class StoredResource:
    """A resource of a cluster in the state of the stack."""

    type: str
    name: str


def register_stored(name: str, component: str, parent: pulumi.Resource) -> bool:
    """Register the stored resources of the cluster as they are; False where that is not possible.

    The state has their names, but neither their options nor their providers. On `ec2` they may have a provider of the user's.
    """
    resources = find_resources(stored_urns(), name, component)
    if not resources or not all(resource.type.startswith(_KNOWN) for resource in resources):
        return False
    providers = [resource for resource in resources if resource.type.startswith(_PROVIDER)]
    if len(providers) > 1:
        return False
    unchanged = pulumi.ResourceOptions(parent=parent, ignore_changes=["*"])
    provider = _Provider(_DOCKER, providers[0].name, {}, unchanged) if providers else None
    for resource in resources:
        if resource not in providers:
            own = provider if resource.type.startswith(f"{_DOCKER}:") else None
            opts = pulumi.ResourceOptions.merge(unchanged, pulumi.ResourceOptions(provider=own))
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
