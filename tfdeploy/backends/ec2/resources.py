"""Registers the resources of a cluster's machines: key pair, security group, shared file system, bucket, roles, instances and Swarm."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import pulumi
import pulumi_aws as aws

from ...plan.scheduler import Machine
from ...spec.cluster import ClusterSpec
from ...spec.ec2 import NEW, PRIVATE, PUBLIC, SSM
from ..base import ClusterRef
from ..zipapp import watchdog
from . import record_bucket
from .aws import account, api, iam
from .machine import address_pools, model, ssh, user_data
from .machine.machines import planned_instance, shared_folder
from .machine.model import PlannedInstance
from .machine.security_group import security_group
from .price import capacity
from .record_bucket import RecordBucket
from .resource_context import ResourceContext
from .ssh_key import SshKey, key_name
from .swarm import MachineSwarm

_NEW_DISK = "gp3"
_INSTANCE = "aws:ec2/instance:Instance"


@dataclass(frozen=True)
class _Dependencies:
    """What all instances are created with."""

    key_name: pulumi.Output[str]
    group_id: pulumi.Output[str]
    file_system: pulumi.Input[str]
    """The id of the shared file system; empty for none."""
    profiles: Mapping[str, pulumi.Input[str]]
    """Role of a machine to its instance profile, where it has one."""
    opts: pulumi.ResourceOptions


def register(
    name: str,
    cluster: ClusterRef,
    spec: ClusterSpec,
    machines: Sequence[Machine],
    public_key: str,
    opts: pulumi.ResourceOptions,
) -> MachineSwarm:
    """Register the machines and their Swarm; `public_key` is the user's own."""
    planned = {machine.name: planned_instance(machine) for machine in machines}
    # The provider is the parent's, else the stack's default one.
    provider = opts.parent.get_provider(_INSTANCE) if opts.parent else None
    context = ResourceContext(name, cluster, spec, planned, account.region_argument(cluster, provider), opts)
    context = replace(context, opts=pulumi.ResourceOptions.merge(opts, capacity.error_hook(context)))
    key = SshKey(key_name(name), opts)
    pair = aws.ec2.KeyPair(
        f"{name}-key", public_key=key.public_key, tags=context.tags(), region=context.region, opts=context.opts
    )
    group, rules = security_group(context)
    file_system, mount_targets = _file_system(context, group)
    bucket = RecordBucket(f"{name}-record-bucket", cluster, context.tags(), opts)
    profiles = iam.instance_profiles(context, bucket, {machine.role for machine in machines})
    after = pulumi.ResourceOptions.merge(context.opts, pulumi.ResourceOptions(depends_on=[*rules, *mount_targets]))
    dependencies = _Dependencies(pair.key_name, group.id, file_system, profiles, after)
    instances = {machine.name: _instance(context, machine, dependencies) for machine in machines}
    for machine in machines:
        _attach_volumes(planned[machine.name], machine.name, instances[machine.name].id, context)
    return MachineSwarm(
        f"{name}-swarm",
        {
            "cluster": cluster,
            "user": _after_key(context, key),
            "public_key": public_key,
            "address_pool": address_pools.overlay_pool(context.any_instance.vpc_cidrs, spec.container.subnet),
            "subnet_size": address_pools.OVERLAY_MASK,
            "lifetime": context.ec2.max_lifetime,
            "idle": context.ec2.idle_timeout,
        },
        [_member(machine, instances[machine.name]) for machine in machines],
        opts,
    )


def _after_key(context: ResourceContext, key: SshKey) -> pulumi.Output[str]:
    """The user of the machines' image, once this computer has the cluster's private key: the Swarm is formed with it."""

    def user(private_key: str) -> str:
        if not pulumi.runtime.is_dry_run():
            ssh.store_key(context.cluster, private_key)
        return context.ec2.ssh_user

    return pulumi.Output.unsecret(key.private_key.apply(user))


def _file_system(
    context: ResourceContext, group: aws.ec2.SecurityGroup
) -> tuple[pulumi.Input[str], list[pulumi.Resource]]:
    """The id of the shared file system, empty for none, and the resources that must exist before it can be mounted."""
    if context.ec2.efs != NEW:
        return context.ec2.efs, []
    retain = pulumi.ResourceOptions(retain_on_delete=context.spec.container.retain_volumes)
    file_system = aws.efs.FileSystem(
        f"{context.name}-efs",
        encrypted=True,
        throughput_mode="elastic",
        tags=context.tags(),
        region=context.region,
        opts=pulumi.ResourceOptions.merge(context.opts, retain),
    )
    target = aws.efs.MountTarget(
        f"{context.name}-efs-target",
        file_system_id=file_system.id,
        subnet_id=context.any_instance.subnet_id,
        security_groups=[group.id],
        region=context.region,
        opts=context.opts,
    )
    return file_system.id, [target]


def _boot_script(context: ResourceContext, machine: str, file_system: pulumi.Input[str]) -> pulumi.Output[str]:
    """The user data of a machine; the id of a new file system is known when it is created."""
    cluster, spec, planned = context.cluster, context.spec, context.planned_instances[machine]
    bucket = record_bucket.bucket_of(cluster)
    settings = user_data.Boot(
        machine,
        planned.generation,
        spec.ec2.ssh_user,
        address_pools.bridge_pool(planned.vpc_cidrs, spec.container.subnet),
        planned.gpus,
        train=shared_folder(cluster, spec),
        disks=tuple(volume.volume_id for volume in planned.volumes),
        spot=planned.spot,
        lifetime=spec.ec2.max_lifetime,
        idle=spec.ec2.idle_timeout,
        region=ssh.region(cluster),
        bucket=bucket.name,
        folder=bucket.folder,
        ssm=spec.ec2.connectivity == SSM,
        endpoint=api.custom_endpoint("s3", ssh.region(cluster)),
    )
    return pulumi.Output.from_input(file_system).apply(
        lambda efs: user_data.user_data(replace(settings, efs=efs), watchdog())
    )


def _instance(context: ResourceContext, machine: Machine, dependencies: _Dependencies) -> aws.ec2.Instance:
    """The instance of a machine. A new `generation` replaces it. An existing one that stays keeps its user data."""
    planned = planned_instance(machine)
    opts = pulumi.ResourceOptions(
        replacement_trigger=planned.generation,
        delete_before_replace=True,
        # Other disks are another generation. After a refresh the provider would take an attached volume for one of these.
        ignore_changes=["userData", "ebsBlockDevices"] if planned.can_stay else [],
    )
    market = aws.ec2.InstanceInstanceMarketOptionsArgs(market_type="spot") if planned.spot else None
    return aws.ec2.Instance(
        machine.name,
        ami=planned.image_id,
        instance_type=planned.instance_type,
        key_name=dependencies.key_name,
        subnet_id=planned.subnet_id,
        vpc_security_group_ids=[dependencies.group_id],
        associate_public_ip_address=planned.access == PUBLIC,
        # Without a value the present profile would stay; an empty name removes it.
        iam_instance_profile=dependencies.profiles.get(machine.role, ""),
        placement_group=context.ec2.placement_group or None,
        user_data=_boot_script(context, machine.name, dependencies.file_system),
        user_data_replace_on_change=True,
        metadata_options=aws.ec2.InstanceMetadataOptionsArgs(
            http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=1
        ),
        root_block_device=aws.ec2.InstanceRootBlockDeviceArgs(
            encrypted=True,
            delete_on_termination=True,
            volume_type=planned.root_volume_type,
            volume_size=planned.root_volume_size,
            tags=context.tags(machine.name),
        ),
        ebs_block_devices=_new_disks(planned, context.tags(machine.name)),
        instance_market_options=market,
        instance_initiated_shutdown_behavior="terminate",
        tags={**context.tags(machine.name), **_instance_tags(machine)},
        region=context.region,
        opts=pulumi.ResourceOptions.merge(dependencies.opts, opts),
    )


def _instance_tags(machine: Machine) -> dict[str, str]:
    """What a later plan needs to know of the instance."""
    planned = planned_instance(machine)
    return {
        model.MACHINE: machine.name,
        model.GENERATION: planned.generation,
        model.ROLE: machine.role,
        model.IMAGE: planned.image,
        model.FILES: planned.files,
        model.DISKS: " ".join(planned.disks),
        model.ACCESS: planned.access,
    }


def _new_disks(planned: PlannedInstance, tags: Mapping[str, str]) -> list[aws.ec2.InstanceEbsBlockDeviceArgs] | None:
    """The disks that are created and deleted with the instance."""
    disks = [
        aws.ec2.InstanceEbsBlockDeviceArgs(
            device_name=user_data.device(number),
            volume_size=volume.size,
            volume_type=_NEW_DISK,
            encrypted=True,
            delete_on_termination=True,
            tags=tags,
        )
        for number, volume in enumerate(planned.volumes)
        if not volume.volume_id
    ]
    return disks or None


def _attach_volumes(
    planned: PlannedInstance, machine: str, instance_id: pulumi.Output[str], context: ResourceContext
) -> None:
    """Attach the user's own volumes. They are detached only when the instance ends: until then its system writes to them."""
    for number, volume in enumerate(planned.volumes):
        if volume.volume_id:
            aws.ec2.VolumeAttachment(
                f"{machine}-{volume.volume_id}",
                device_name=user_data.device(number),
                instance_id=instance_id,
                volume_id=volume.volume_id,
                skip_destroy=True,
                region=context.region,
                opts=pulumi.ResourceOptions.merge(context.opts, pulumi.ResourceOptions(delete_before_replace=True)),
            )


def _member(machine: Machine, instance: aws.ec2.Instance) -> Mapping[str, object]:
    """The machine as the Swarm needs it (`boot.Member`)."""
    planned = planned_instance(machine)
    addresses = {PUBLIC: instance.public_ip, PRIVATE: instance.private_ip, SSM: instance.id}
    return {
        "machine": machine.name,
        "instance_id": instance.id,
        "address": addresses[planned.access],
        "private_ip": instance.private_ip,
        "generation": planned.generation,
        "is_manager": machine.role == model.MASTER,
        "kind": asdict(planned.boot_kind),
        "labels": dict(machine.labels),
    }
