"""What a user can do when a zone has no capacity for an instance type."""

import asyncio
import re
from collections.abc import Iterable, Mapping

import pulumi
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import monitor_supports_feature

from ....errors import TfdeployError
from ... import stack_config
from ...base import ClusterRef
from ..aws import account, api
from ..aws.errors import AwsRefusal, Kind, provider_error
from ..machine import ssh
from ..machine.model import Ec2Machine, InstanceType
from . import prices

_CODE, _PROFILE = "InsufficientInstanceCapacity", re.compile("instance ?profile", re.IGNORECASE)
_EXPLAINED = (Kind.LOGIN, Kind.CLOCK, Kind.PERMISSION, Kind.REGION, Kind.QUOTA, Kind.CAPACITY)
"""The kinds of errors to which Pulumi's AWS provider adds no remedy."""

_ATTEMPTS = 8
"""How often Pulumi's AWS provider should repeat a call that is throttled or finds no capacity. With its default of 25 an `up` waits
for 50 minutes before it reports missing capacity: https://github.com/hashicorp/terraform-provider-aws/issues/43193."""

_CANDIDATES, _SUGGESTIONS = 40, 3
"""The number of types with a similar price that are compared, and the number that is suggested."""


def similar_types(
    instance_type: InstanceType, region: str, candidates: Iterable[InstanceType], spot: bool
) -> list[InstanceType]:
    """The types that can replace a type, the cheapest first, one of each family. Pure."""
    by_family: dict[str, InstanceType] = {}
    for other in sorted(candidates, key=lambda item: (prices.instance_price(item.name, region) or 0.0, item.name)):
        large_enough = (
            other.cpus >= instance_type.cpus
            and other.memory >= instance_type.memory
            and other.gpus >= instance_type.gpus
        )
        same_kind = (
            other.architecture == instance_type.architecture
            and bool(other.gpus) == bool(instance_type.gpus)
            and (other.spot or not spot)
        )
        burstable = other.name.startswith("t") and not instance_type.name.startswith("t")
        if large_enough and same_kind and not burstable and other.name != instance_type.name:
            by_family.setdefault(other.name.partition(".")[0], other)
    return list(by_family.values())[:_SUGGESTIONS]


def _similar_in_zone(region: str, zone: str, instance_type: InstanceType, spot: bool) -> list[InstanceType]:
    price = prices.instance_price(instance_type.name, region)
    if price is None:
        return []
    offered = [(prices.instance_price(name, region), name) for name in api.types_in_zone(region, zone)]
    nearest = sorted(
        (abs(usd - price), name) for usd, name in offered if usd is not None and name != instance_type.name
    )
    candidates = api.describe_types(region, [name for _, name in nearest[:_CANDIDATES]])
    return similar_types(instance_type, region, candidates, spot)


def plan_lines(planned: Iterable[Ec2Machine]) -> list[str]:
    """How to have missing capacity reported sooner, where machines are created and the stack does not set the number of attempts."""
    if stack_config.value(account.PACKAGE, "maxRetries") or all(machine.can_stay for machine in planned):
        return []
    setting = f"`pulumi config set aws:maxRetries {_ATTEMPTS}`, or max_retries={_ATTEMPTS} of an explicit provider"
    return [f"a zone without capacity is reported after up to 50 minutes; after some minutes with {setting}"]


def error_hook(name: str, cluster: ClusterRef, planned: Mapping[str, Ec2Machine]) -> pulumi.ResourceOptions:
    """Options for the AWS resources of the cluster `name` that add a sentence and a remedy to AWS's error; for missing capacity the
    zones and types that would do. An engine without error hooks shows AWS's error alone."""
    if not monitor_supports_feature(resource_pb2.RESOURCE_MONITOR_FEATURE_ERROR_HOOKS):
        return pulumi.ResourceOptions()

    async def on_error(failed: pulumi.ErrorHookArgs) -> bool:
        if failed.failed_operation == "create":
            text = await asyncio.to_thread(explanation, cluster, planned, failed.name, failed.errors[0])
            if text:
                pulumi.log.error(text)
        return False

    hook = pulumi.ErrorHook(f"{name}-capacity", on_error)
    return pulumi.ResourceOptions(hooks=pulumi.ResourceHookBinding(on_error=[hook]))


def explanation(cluster: ClusterRef, planned: Mapping[str, Ec2Machine], name: str, text: str) -> str:
    """What a user can do about an error of Pulumi's AWS provider for the resource `name`; empty where its text is all that is known."""
    region = ssh.region(cluster)
    if name in planned and _CODE in text:
        try:
            return message(region, name, planned)
        except TfdeployError as error:
            return f"{name}: no capacity for {planned[name].request.instance_type.name} now ({error})"
    if name in planned and _PROFILE.search(text):
        again = "Run `pulumi up --refresh`, and if that fails because the Swarm is gone too, `pulumi up` after it"
        return f"{name}: its instance profile does not exist. {again}; or correct `ec2.instance_profile` if you have set it."
    refused = provider_error(text, region)
    return f"{name}: {refused}" if isinstance(refused, AwsRefusal) and refused.kind in _EXPLAINED else ""


def message(region: str, machine: str, planned: Mapping[str, Ec2Machine]) -> str:
    """That the zone has no capacity for a machine, with the zones and types that the cluster could use instead.

    Raises:
        SpecError, Unreachable: AWS does not report what is available.
    """
    requests = [each.request for each in planned.values()]
    request, present = planned[machine].request, planned[machine].subnet
    offered = frozenset.intersection(*(each.instance_type.zones for each in requests)) - {present.zone}
    has_own_volumes = any(volume.volume_id for each in requests for volume in each.volumes)
    subnets = [] if has_own_volumes else api.subnets(region, present.vpc_id, "")
    first: dict[str, str] = {}
    for subnet in subnets:
        if subnet.zone in offered:
            first.setdefault(subnet.zone, subnet.subnet_id)
    zones = "; ".join(f"{zone} (subnet_id={subnet_id})" for zone, subnet_id in first.items())
    types = ", ".join(each.name for each in _similar_in_zone(region, present.zone, request.instance_type, request.spot))
    remedies = [
        *([f"another zone that offers the type: {zones}"] if zones else []),
        *([f"another instance_type in {present.zone}: {types}"] if types else []),
        *(["spot=False"] if request.spot else []),
        "`pulumi up` again later",
    ]
    wrong = f"{present.zone} has no {'spot ' if request.spot else ''}capacity for {request.instance_type.name} now"
    return f"{machine}: {wrong}. Choose {', or '.join(remedies)}."
