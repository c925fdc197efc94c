"""What Pulumi's AWS provider makes for a cluster: key, security group, shared files, machines."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import pulumi
import pulumi_aws as aws

from ...ec2 import account, boot, pools
from ...instances import NEW, PRIVATE, PUBLIC, SSM
from ...placement import Machine
from ...spec import ClusterSpec
from ..base import Cluster
from . import reach, rights, script, shortage
from .archive import Archive
from .fleet import Plot, kind_of, plot_of, stays
from .here import Here
from .security import security
from .swarm import Swarm


@dataclass(frozen=True)
class _With:
    """What all machines are made with."""

    key: pulumi.Output[str]
    group: pulumi.Output[str]
    files: pulumi.Input[str]
    """The shared file system; empty for none."""
    profiles: Mapping[str, pulumi.Input[str]]
    """Role of a machine to its instance profile, where it has one."""
    opts: pulumi.ResourceOptions


def supply(
    name: str,
    cluster: Cluster,
    spec: ClusterSpec,
    machines: Sequence[Machine],
    key: tuple[str, str],
    opts: pulumi.ResourceOptions,
) -> Swarm:
    """Register machines and their Swarm; `key` is the public key, and the file of the private one."""
    provider = aws.Provider(
        f"{name}-aws",
        region=reach.region(cluster),
        max_retries=shortage.ATTEMPTS,
        opts=pulumi.ResourceOptions(parent=opts.parent),
    )
    plots = {machine.name: plot_of(machine) for machine in machines}
    inside = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(provider=provider))
    here = Here(name, cluster, spec, plots, inside)
    pair = aws.ec2.KeyPair(f"{name}-key", public_key=key[0], tags=here.tags(), opts=inside)
    group, rules = security(here)
    efs, mounted = _shared(here, group)
    archive = Archive(f"{name}-archive", cluster, here.tags(), opts)
    profiles = rights.profiles(here, archive, {machine.role for machine in machines})
    after = pulumi.ResourceOptions.merge(inside, pulumi.ResourceOptions(depends_on=[*rules, *mounted]))
    common = _With(pair.key_name, group.id, efs, profiles, pulumi.ResourceOptions.merge(after, shortage.told(here)))
    made = {machine.name: _instance(here, machine, plots[machine.name], common) for machine in machines}
    for machine in machines:
        _attach(plots[machine.name], machine.name, made[machine.name].id, inside)
    return Swarm(
        f"{name}-swarm",
        {
            "cluster": cluster,
            "user": here.fleet.ssh_user,
            "key": key[1],
            "pool": pools.overlays(here.vpc_cidrs, spec.engine.subnet),
            "mask": pools.OVERLAY_MASK,
            "lifetime": here.fleet.lifetime,
            "idle": here.fleet.idle,
        },
        [_member(machine, plots[machine.name], made[machine.name]) for machine in machines],
        opts,
    )


def _shared(here: Here, group: aws.ec2.SecurityGroup) -> tuple[pulumi.Input[str], list[pulumi.Resource]]:
    """The file system that all machines share: its id, empty for none, and what must be there before it can be mounted."""
    if here.fleet.efs != NEW:
        return here.fleet.efs, []
    kept = pulumi.ResourceOptions.merge(
        here.opts, pulumi.ResourceOptions(retain_on_delete=here.spec.engine.keep_volumes)
    )
    system = aws.efs.FileSystem(
        f"{here.name}-efs",
        encrypted=True,
        throughput_mode="elastic",
        tags=here.tags(),
        opts=kept,
    )
    target = aws.efs.MountTarget(
        f"{here.name}-efs-target",
        file_system_id=system.id,
        subnet_id=here.place["subnet_id"],
        security_groups=[group.id],
        opts=here.opts,
    )
    return system.id, [target]


def _instance(here: Here, machine: Machine, plot: Plot, common: _With) -> aws.ec2.Instance:
    """One machine. `life` replaces it when it is gone; the script of one that stays is what it was when it began."""
    own = pulumi.ResourceOptions(
        replacement_trigger=plot["life"],
        delete_before_replace=True,
        # Another list of disks is another life; refreshed, the provider would take an attached volume for one of these.
        ignore_changes=["userData", "ebsBlockDevices"] if stays(machine) else [],
    )
    market = aws.ec2.InstanceInstanceMarketOptionsArgs(market_type="spot") if plot["spot"] else None
    return aws.ec2.Instance(
        machine.name,
        ami=plot["image_id"],
        instance_type=plot["instance_type"],
        key_name=common.key,
        subnet_id=plot["subnet_id"],
        vpc_security_group_ids=[common.group],
        associate_public_ip_address=plot["access"] == PUBLIC,
        # Left out, it would stay as it was: only the empty name takes a profile off.
        iam_instance_profile=common.profiles.get(machine.role, ""),
        placement_group=here.fleet.placement_group or None,
        user_data=script.user_data(here.cluster, here.spec, machine.name, plot, common.files),
        user_data_replace_on_change=True,
        metadata_options=aws.ec2.InstanceMetadataOptionsArgs(
            http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=1
        ),
        root_block_device=aws.ec2.InstanceRootBlockDeviceArgs(
            encrypted=True,
            delete_on_termination=True,
            volume_type=plot["root_volume_type"],
            volume_size=plot["root_volume_size"],
            tags=here.tags(machine.name),
        ),
        ebs_block_devices=_new_disks(plot, here.tags(machine.name)),
        instance_market_options=market,
        instance_initiated_shutdown_behavior="terminate",
        tags={**here.tags(machine.name), **_about(machine, plot)},
        opts=pulumi.ResourceOptions.merge(common.opts, own),
    )


def _about(machine: Machine, plot: Plot) -> dict[str, str]:
    """The tags that only a machine has: what a later plan must know of it."""
    return {
        account.MACHINE: machine.name,
        account.LIFE: plot["life"],
        account.ROLE: machine.role,
        account.IMAGE: plot["image"],
        account.FILES: plot["files"],
        account.DISKS: " ".join(plot["disks"]),
        account.ACCESS: plot["access"],
    }


def _new_disks(plot: Plot, tags: Mapping[str, str]) -> list[aws.ec2.InstanceEbsBlockDeviceArgs] | None:
    """The disks that are made with a machine, and go with it."""
    found = [
        aws.ec2.InstanceEbsBlockDeviceArgs(
            device_name=boot.device(number),
            volume_size=int(source.removesuffix("GiB")),
            volume_type="gp3",
            encrypted=True,
            delete_on_termination=True,
            tags=tags,
        )
        for number, source in enumerate(plot["disks"])
        if not source.startswith("vol-")
    ]
    return found or None


def _attach(plot: Plot, machine: str, instance_id: pulumi.Output[str], opts: pulumi.ResourceOptions) -> None:
    """Give a machine the user's own volumes. They come off only by its end: until then its system writes to them."""
    for number, source in enumerate(plot["disks"]):
        if source.startswith("vol-"):
            aws.ec2.VolumeAttachment(
                f"{machine}-{source}",
                device_name=boot.device(number),
                instance_id=instance_id,
                volume_id=source,
                skip_destroy=True,
                opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(delete_before_replace=True)),
            )


def _member(machine: Machine, plot: Plot, made: aws.ec2.Instance) -> Mapping[str, object]:
    """What the Swarm must know of it (`forming.Member`)."""
    addresses = {PUBLIC: made.public_ip, PRIVATE: made.private_ip, SSM: made.id}
    return {
        "machine": machine.name,
        "instance_id": made.id,
        "address": addresses[plot["access"]],
        "private_ip": made.private_ip,
        "life": plot["life"],
        "manages": machine.role == account.MASTER,
        "kind": asdict(kind_of(plot)),
        "labels": dict(machine.labels),
    }
