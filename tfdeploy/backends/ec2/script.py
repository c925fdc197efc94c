"""What a machine begins with: its boot script, from what is planned for it."""

from dataclasses import replace

import pulumi

from ...application import caretaker
from ...ec2 import account, boot, pools
from ...instances import SSM
from ...spec import ClusterSpec
from ..base import Cluster
from . import archive, reach
from .fleet import Plot, shared_folder


def user_data(
    cluster: Cluster, spec: ClusterSpec, machine: str, plot: Plot, efs: pulumi.Input[str]
) -> pulumi.Output[str]:
    """The script; the file system is known only when it is made."""
    start = boot.Boot(
        machine,
        plot["life"],
        spec.fleet.ssh_user,
        pools.bridges(plot["vpc_cidrs"], spec.engine.subnet),
        plot["gpus"],
        train=shared_folder(cluster, spec),
        disks=len(plot["disks"]),
        project=cluster["project"],
        stack=cluster["stack"],
        cluster=cluster["name"],
        spot=plot["spot"],
        lifetime=spec.fleet.lifetime,
        idle=spec.fleet.idle,
        region=reach.region(cluster),
        bucket=archive.of(cluster).name,
        ssm=spec.fleet.access == SSM,
        endpoint=account.endpoint("s3", reach.region(cluster)),
    )
    return pulumi.Output.from_input(efs).apply(lambda found: boot.user_data(replace(start, efs=found), caretaker()))
