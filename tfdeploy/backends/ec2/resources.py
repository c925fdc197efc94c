"""Registers the resources of a cluster's machines: key pair, security group, shared file system, bucket, roles, instances and Swarm."""

import json
import re
import secrets
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import pulumi
import pulumi_aws as aws
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import monitor_supports_feature

from ...plan.scheduler import Machine
from ...spec.cluster import ClusterSpec
from ...spec.docker import HOST
from ...spec.ec2 import ANYWHERE, NEW, PRIVATE, PUBLIC, SSM, Ec2Spec
from ..base import ClusterRef
from ..docker.labels import name_prefix
from ..replacement_refusal import not_replaced
from ..zipapp import watchdog
from . import record_bucket
from .aws import account, api
from .aws.errors import AwsRefusal, Kind, provider_error
from .machine import model, ssh, user_data
from .machine.machines import role_path, shared_folder, tags
from .machine.model import Ec2Machine, Subnet, ec2_machine
from .record_bucket import BucketFolder, RecordBucket
from .ssh_key import SshKey, key_name
from .swarm import MachineSwarm
from .watchdog.main import DEFAULTS

_NEW_DISK = "gp3"
_GENERATION_BYTES = 4
_INSTANCE = "aws:ec2/instance:Instance"
_NFS, _SSH = 2049, 22

_PROFILE = re.compile("instance ?profile", re.IGNORECASE)
_EXPLAINED = (Kind.LOGIN, Kind.CLOCK, Kind.PERMISSION, Kind.REGION, Kind.QUOTA, Kind.CAPACITY)
"""The kinds of errors to which Pulumi's AWS provider adds no remedy."""

_TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}],
}


@dataclass(frozen=True)
class ResourceContext:
    """A cluster, and the options of its resources."""

    name: str
    cluster: ClusterRef
    spec: ClusterSpec
    machines: Mapping[str, Ec2Machine]
    region: str | None
    """The argument of regional resources; None where it is the provider's region."""
    opts: pulumi.ResourceOptions
    run_is_open: bool

    @property
    def ec2(self) -> Ec2Spec:
        """The properties of all machines."""
        return self.spec.ec2

    @property
    def subnet(self) -> Subnet:
        """The subnet, which all machines are in."""
        return next(iter(self.machines.values())).subnet

    def tags(self, name: str = "") -> dict[str, str]:
        """The tags of a resource."""
        return {**self.ec2.tags, **tags(self.cluster), "Name": name or name_prefix(self.cluster)}

    @property
    def common(self) -> dict[str, Any]:
        """What all regional resources with tags are given."""
        return {"tags": self.tags(), "region": self.region, "opts": self.opts}


def register(
    name: str,
    cluster: ClusterRef,
    spec: ClusterSpec,
    machines: Sequence[Machine],
    public_key: str,
    opts: pulumi.ResourceOptions,
    run_is_open: bool,
) -> MachineSwarm:
    """Register the machines and their Swarm; `public_key` is the user's own."""
    needed = {machine.name: ec2_machine(machine) for machine in machines}
    # The provider is the parent's, else the stack's default one.
    provider = opts.parent.get_provider(_INSTANCE) if opts.parent else None
    region = account.region_argument(cluster, provider)
    explained = pulumi.ResourceOptions.merge(opts, _error_hook(name, cluster, needed))
    context = ResourceContext(name, cluster, spec, needed, region, explained, run_is_open)
    key = SshKey(key_name(name), pulumi.ResourceOptions.merge(opts, _kept_key(context)))
    pair = aws.ec2.KeyPair(f"{name}-key", public_key=key.public_key, **context.common)
    group, rules = _security_group(context)
    file_system, mount_targets = _file_system(context, group)
    bucket = RecordBucket(f"{name}-record-bucket", cluster, context.tags(), opts)
    profiles = _instance_profiles(context, bucket, {machine.role for machine in machines})
    after = pulumi.ResourceOptions.merge(context.opts, pulumi.ResourceOptions(depends_on=[*rules, *mount_targets]))

    def instance(machine: Ec2Machine) -> aws.ec2.Instance:
        # Without a value the present profile would stay; an empty name removes it.
        profile = profiles.get(machine.role, "")
        return _instance(replace(context, opts=after), machine, pair.key_name, group.id, file_system, profile)

    instances = {machine.name: instance(machine) for machine in needed.values()}
    for machine in needed.values():
        _attach_volumes(machine, instances[machine.name].id, context)
    return MachineSwarm(
        f"{name}-swarm",
        {
            "cluster": cluster,
            "user": _after_key(context, key),
            "public_key": public_key,
            "address_pool": model.overlay_pool(context.subnet.vpc_cidrs, spec.container.subnet),
            "subnet_size": model.OVERLAY_MASK,
            "lifetime": context.ec2.max_lifetime,
            "idle": context.ec2.idle_timeout,
        },
        [_member(machine, instances[machine.name], context.ec2.connectivity) for machine in needed.values()],
        opts,
    )


def _error_hook(name: str, cluster: ClusterRef, machines: Collection[str]) -> pulumi.ResourceOptions:
    """Options for the AWS resources of the cluster `name` that add a remedy to AWS's error. An engine without error hooks shows AWS's
    error alone."""
    if not monitor_supports_feature(resource_pb2.RESOURCE_MONITOR_FEATURE_ERROR_HOOKS):
        return pulumi.ResourceOptions()

    async def on_error(failed: pulumi.ErrorHookArgs) -> bool:
        text = explanation(ssh.region(cluster), machines, failed.name, failed.errors[0])
        if text and failed.failed_operation == "create":
            pulumi.log.error(text)
        return False

    hook = pulumi.ErrorHook(f"{name}-capacity", on_error)
    return pulumi.ResourceOptions(hooks=pulumi.ResourceHookBinding(on_error=[hook]))


def explanation(region: str, machines: Collection[str], name: str, text: str) -> str:
    """What a user can do about an error of Pulumi's AWS provider for the resource `name`; empty where its text is all that is known."""
    if name in machines and _PROFILE.search(text):
        again = "Run `pulumi up --refresh`, and if that fails because the Swarm is gone too, `pulumi up` after it"
        return f"{name}: its instance profile does not exist. {again}; or correct `ec2.instance_profile` if you have set it."
    refused = provider_error(text, region)
    return f"{name}: {refused}" if isinstance(refused, AwsRefusal) and refused.kind in _EXPLAINED else ""


def _kept_key(context: ResourceContext) -> pulumi.ResourceOptions:
    """The key pair of machines that exist is not replaced."""
    if not any(machine.instance for machine in context.machines.values()):
        return pulumi.ResourceOptions()
    effect, remedy = "would close the machines that accept it", "`pulumi destroy` deletes it with its machines."
    return not_replaced(key_name(context.name), effect, remedy)


def _kept_manager(context: ResourceContext, machine: Ec2Machine) -> pulumi.ResourceOptions:
    """The machine of the Swarm's manager, which has the controller, is not replaced while the run is open, unless the plan says so:
    then the record is brought home first."""
    if machine.role != model.MASTER or not context.run_is_open or not machine.can_stay:
        return pulumi.ResourceOptions(delete_before_replace=True)
    effect = "would end the controller of a run that has not ended"
    remedy = "Wait until the run has ended, or end it by `tfdeploy stop`. Another `instance_type` moves the run."
    first = pulumi.ResourceOptions(delete_before_replace=False)
    return pulumi.ResourceOptions.merge(first, not_replaced(machine.name, effect, remedy))


def _after_key(context: ResourceContext, key: SshKey) -> pulumi.Output[str]:
    """The user of the machines' image, once this computer has the cluster's private key: the Swarm is formed with it."""

    def user(private_key: str) -> str:
        if not pulumi.runtime.is_dry_run():
            ssh.store_key(context.cluster, private_key)
        return context.ec2.ssh_user

    return pulumi.Output.unsecret(key.private_key.apply(user))


def _security_group(context: ResourceContext) -> tuple[aws.ec2.SecurityGroup, list[pulumi.Resource]]:
    """The group and its rules."""
    group = aws.ec2.SecurityGroup(
        f"{context.name}-members",
        description=f"Machines of the TensorFlow cluster {context.name}",
        vpc_id=context.subnet.vpc_id,
        **context.common,
    )

    def ingress(name: str, description: str, protocol: str, first: int, last: int, **source: Any) -> pulumi.Resource:
        rule: pulumi.Resource = aws.vpc.SecurityGroupIngressRule(
            f"{context.name}-{name}",
            security_group_id=group.id,
            description=description,
            ip_protocol=protocol,
            from_port=first,
            to_port=last,
            **source,
            **context.common,
        )
        return rule

    members = [
        ingress(f"from-members-{name}", description, protocol, first, last, referenced_security_group_id=group.id)
        for name, description, protocol, first, last in _ports_between_members(context)
    ]
    # None with access through SSM, where `ssh_cidrs` is refused.
    anywhere = ["0.0.0.0/0"] if ANYWHERE in context.ec2.ssh_cidrs else []
    cidrs = [*(cidr for cidr in context.ec2.ssh_cidrs if cidr != ANYWHERE), *anywhere]
    description = "ssh from the addresses in ssh_cidrs"
    users = [
        ingress(f"ssh-{number}", description, "tcp", _SSH, _SSH, **{"cidr_ipv6" if ":" in cidr else "cidr_ipv4": cidr})
        for number, cidr in enumerate(cidrs)
    ]
    egress = aws.vpc.SecurityGroupEgressRule(
        f"{context.name}-out",
        security_group_id=group.id,
        description="Images, packages and data from anywhere",
        ip_protocol="-1",
        cidr_ipv4="0.0.0.0/0",
        **context.common,
    )
    return group, [*members, *users, egress]


def _ports_between_members(context: ResourceContext) -> list[tuple[str, str, str, int, int]]:
    """Name, description, protocol, and the first and the last port of each rule."""
    ports = [
        ("swarm", "Swarm: joining and management", "tcp", 2377, 2377),
        ("gossip-tcp", "Swarm: nodes find each other", "tcp", 7946, 7946),
        ("gossip-udp", "Swarm: nodes find each other", "udp", 7946, 7946),
        ("overlay", "Swarm: the overlay network", "udp", 4789, 4789),
    ]
    if context.ec2.efs:
        ports.append(("efs", "Shared files", "tcp", _NFS, _NFS))
    if context.spec.container.network == HOST:
        ports.append(("tasks", "TensorFlow and the controller on the network of the machines", "tcp", 1024, 65535))
    return ports


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
        **{**context.common, "opts": pulumi.ResourceOptions.merge(context.opts, retain)},
    )
    target = aws.efs.MountTarget(
        f"{context.name}-efs-target",
        file_system_id=file_system.id,
        subnet_id=context.subnet.subnet_id,
        security_groups=[group.id],
        region=context.region,
        opts=context.opts,
    )
    return file_system.id, [target]


def _instance_profiles(
    context: ResourceContext, bucket: record_bucket.RecordBucket, roles: Set[str]
) -> Mapping[str, pulumi.Input[str]]:
    """Role of a machine (`MASTER`, `WORKER`) to the name of its instance profile: the user's own, else one that is created for
    the roles that need it."""
    profile = context.ec2.instance_profile
    if profile:
        return dict.fromkeys(roles, profile)
    needing = [role for role in sorted(roles) if role == model.MASTER or context.ec2.connectivity == SSM]
    return {role: _instance_profile(context, bucket, role) for role in needing}


def _instance_profile(
    context: ResourceContext, bucket: record_bucket.RecordBucket, machine_role: str
) -> pulumi.Output[str]:
    is_manager = machine_role == model.MASTER
    name, purpose = ("manager", "stores the record") if is_manager else ("worker", "reached through SSM")
    name = f"{context.name}-{name}"
    path = role_path(context.cluster)
    role = aws.iam.Role(
        name,
        description=f"A machine of the TensorFlow cluster {context.name}: {purpose}",
        path=path,
        assume_role_policy=json.dumps(_TRUST),
        # A killed update may have created a policy that no state knows, and AWS deletes no role that has one.
        force_detach_policies=True,
        tags=context.tags(),
        opts=context.opts,
    )
    policies: list[pulumi.Resource] = []
    if is_manager:
        after_bucket = pulumi.ResourceOptions.merge(context.opts, pulumi.ResourceOptions(depends_on=[bucket]))
        document = put_record(record_bucket.bucket_of(context.cluster))
        policies.append(aws.iam.RolePolicy(f"{name}-record", role=role.name, policy=document, opts=after_bucket))
    if context.ec2.connectivity == SSM:
        arn = f"arn:{api.partition(ssh.region(context.cluster))}:iam::aws:{api.SSM_POLICY}"
        policies.append(aws.iam.RolePolicyAttachment(f"{name}-ssm", role=role.name, policy_arn=arn, opts=context.opts))
    # SSM's agent sleeps for a long time when it starts without its permissions.
    after_policies = pulumi.ResourceOptions.merge(context.opts, pulumi.ResourceOptions(depends_on=policies))
    profile = aws.iam.InstanceProfile(
        f"{name}-profile", path=path, role=role.name, tags=context.tags(), opts=after_policies
    )
    return pulumi.Output.from_input(profile.name)


def put_record(bucket: BucketFolder) -> str:
    """The policy of the manager's machine: it may write its cluster's record, and neither read nor list anything."""
    statement = {
        "Effect": "Allow",
        "Action": "s3:PutObject",
        "Resource": f"{bucket.arn}{record_bucket.PREFIX}*",
        "Condition": {"StringEquals": {"s3:ResourceAccount": bucket.owner}},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _boot_script(context: ResourceContext, machine: Ec2Machine, file_system: pulumi.Input[str]) -> pulumi.Output[str]:
    """The user data of a machine; the id of a new file system is known when it is created."""
    cluster, spec, request = context.cluster, context.spec, machine.request
    bucket = record_bucket.bucket_of(cluster)
    settings = user_data.Boot(
        machine.name,
        secrets.token_hex(_GENERATION_BYTES),
        spec.ec2.ssh_user,
        model.bridge_pool(context.subnet.vpc_cidrs, spec.container.subnet),
        request.instance_type.gpus,
        train=shared_folder(cluster, spec),
        disks=tuple(volume.volume_id for volume in request.volumes),
        watchdog={
            **DEFAULTS,
            "lifetime": spec.ec2.max_lifetime,
            "idle": spec.ec2.idle_timeout,
            "spot": request.spot,
            "region": ssh.region(cluster),
            "bucket": bucket.name,
            "folder": bucket.folder,
            "endpoint": api.custom_endpoint("s3", ssh.region(cluster)),
            "ssm": spec.ec2.connectivity == SSM,
        },
    )
    return pulumi.Output.from_input(file_system).apply(
        lambda efs: user_data.user_data(replace(settings, efs=efs), watchdog())
    )


def _instance(
    context: ResourceContext,
    machine: Ec2Machine,
    key_name: pulumi.Output[str],
    group_id: pulumi.Output[str],
    file_system: pulumi.Input[str],
    profile: pulumi.Input[str],
) -> aws.ec2.Instance:
    """The instance of a machine. An existing one that stays keeps its user data; other user data replaces it."""
    opts = pulumi.ResourceOptions(
        # Other disks are other user data. After a refresh the provider would take an attached volume for one of these. The name of
        # the key pair counts when a machine boots: another pair, where that was deleted in EC2, replaces none.
        ignore_changes=["userData", "ebsBlockDevices", "keyName"] if machine.can_stay else [],
    )
    opts = pulumi.ResourceOptions.merge(opts, _kept_manager(context, machine))
    market = aws.ec2.InstanceInstanceMarketOptionsArgs(market_type="spot") if machine.request.spot else None
    return aws.ec2.Instance(
        machine.name,
        ami=machine.image_id,
        instance_type=machine.kind,
        key_name=key_name,
        subnet_id=context.subnet.subnet_id,
        vpc_security_group_ids=[group_id],
        associate_public_ip_address=context.ec2.connectivity == PUBLIC,
        iam_instance_profile=profile,
        placement_group=context.ec2.placement_group or None,
        user_data=_boot_script(context, machine, file_system),
        user_data_replace_on_change=True,
        metadata_options=aws.ec2.InstanceMetadataOptionsArgs(
            http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=1
        ),
        root_block_device=aws.ec2.InstanceRootBlockDeviceArgs(
            encrypted=True,
            delete_on_termination=True,
            volume_type=machine.request.spec.root_volume_type,
            volume_size=machine.request.spec.root_volume_size,
            tags=context.tags(machine.name),
        ),
        ebs_block_devices=_new_disks(machine, context.tags(machine.name)),
        instance_market_options=market,
        instance_initiated_shutdown_behavior="terminate",
        tags={**context.tags(machine.name), **_instance_tags(machine, context.ec2)},
        region=context.region,
        opts=pulumi.ResourceOptions.merge(context.opts, opts),
    )


def _instance_tags(machine: Ec2Machine, fleet: Ec2Spec) -> dict[str, str]:
    """What a later plan needs to know of the instance."""
    return {
        model.MACHINE: machine.name,
        model.ROLE: machine.role,
        model.IMAGE: machine.request.image,
        model.FILES: fleet.efs,
        model.DISKS: " ".join(machine.disks),
        model.ACCESS: fleet.connectivity,
    }


def _new_disks(machine: Ec2Machine, tags: Mapping[str, str]) -> list[aws.ec2.InstanceEbsBlockDeviceArgs] | None:
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
        for number, volume in enumerate(machine.request.volumes)
        if not volume.volume_id
    ]
    return disks or None


def _attach_volumes(machine: Ec2Machine, instance_id: pulumi.Output[str], context: ResourceContext) -> None:
    """Attach the user's own volumes. They are detached only when the instance ends: until then its system writes to them."""
    for number, volume in enumerate(machine.request.volumes):
        if volume.volume_id:
            aws.ec2.VolumeAttachment(
                f"{machine.name}-{volume.volume_id}",
                device_name=user_data.device(number),
                instance_id=instance_id,
                volume_id=volume.volume_id,
                skip_destroy=True,
                region=context.region,
                opts=pulumi.ResourceOptions.merge(context.opts, pulumi.ResourceOptions(delete_before_replace=True)),
            )


def _member(machine: Ec2Machine, instance: aws.ec2.Instance, access: str) -> Mapping[str, object]:
    """The machine as the Swarm needs it (`boot.Member`)."""
    addresses = {PUBLIC: instance.public_ip, PRIVATE: instance.private_ip, SSM: instance.id}
    return {
        "machine": machine.name,
        "instance_id": instance.id,
        "address": addresses[access],
        "private_ip": instance.private_ip,
        "is_manager": machine.role == model.MASTER,
        "kind": machine.boot_kind,
        "labels": dict(machine.labels),
    }
