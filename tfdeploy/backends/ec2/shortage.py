"""Where AWS has no capacity for a machine, `pulumi up` says which other zones and types would do."""

import asyncio

import pulumi
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import monitor_supports_feature

from ...ec2 import account, capacity, offers
from ...errors import TfdeployError
from . import reach
from .fleet import Plot
from .here import Here

ATTEMPTS = 8
"""So often Pulumi's AWS provider makes a call that is throttled or finds no capacity. With its own 25 an `up` would wait 50 minutes
for capacity before it says so: https://github.com/hashicorp/terraform-provider-aws/issues/43193."""


def told(here: Here) -> pulumi.ResourceOptions:
    """The options for machines. An engine without error hooks shows what AWS says, and no more."""
    if not monitor_supports_feature(resource_pb2.RESOURCE_MONITOR_FEATURE_ERROR_HOOKS):
        return pulumi.ResourceOptions()

    async def tell(failed: pulumi.ErrorHookArgs) -> bool:
        plot = here.plots.get(failed.name)
        if plot and failed.failed_operation == "create" and capacity.CODE in failed.errors[0]:
            try:
                pulumi.log.error(await asyncio.to_thread(_sentence, here, failed.name, plot))
            except TfdeployError as error:
                pulumi.log.error(f"{failed.name}: no capacity for {plot['instance_type']} now ({error})")
        return False

    hook = pulumi.ErrorHook(f"{here.name}-capacity", tell)
    return pulumi.ResourceOptions(hooks=pulumi.ResourceHookBinding(on_error=[hook]))


def _sentence(here: Here, machine: str, plot: Plot) -> str:
    region = reach.region(here.cluster)
    names = {one["instance_type"] for one in here.plots.values()}
    kinds = offers.instance_types(region, f"{here.name}: instance_type", names)
    found = account.subnets(region, plot["vpc_id"], "")
    here_now = next(one for one in found if one.subnet_id == plot["subnet_id"])
    bound = any(volume.volume_id for job in here.spec.crew for volume in job.instance.ebs_volumes)
    zones = frozenset.intersection(*(kind.zones for kind in kinds.values())) - {here_now.zone}
    others = [] if bound else [one for one in found if one.zone in zones]
    return capacity.sentence(region, machine, kinds[plot["instance_type"]], here_now, others, plot["spot"])
