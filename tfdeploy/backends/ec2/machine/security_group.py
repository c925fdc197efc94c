"""The security group of a cluster's machines: they reach each other, and ssh is open to the requested addresses."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from ....spec.docker import HOST
from ....spec.ec2 import ANYWHERE
from ..resource_context import ResourceContext

_NFS, _SSH = 2049, 22


@dataclass(frozen=True)
class _Ports:
    """Ports that the machines open for each other."""

    name: str
    description: str
    protocol: str
    first: int
    last: int


def security_group(context: ResourceContext) -> tuple[aws.ec2.SecurityGroup, list[pulumi.Resource]]:
    """The group and its rules."""
    group = aws.ec2.SecurityGroup(
        f"{context.name}-members",
        description=f"Machines of the TensorFlow cluster {context.name}",
        vpc_id=context.any_instance.vpc_id,
        tags=context.tags(),
        region=context.region,
        opts=context.opts,
    )
    rules: list[pulumi.Resource] = [
        aws.vpc.SecurityGroupIngressRule(
            f"{context.name}-from-members-{ports.name}",
            security_group_id=group.id,
            referenced_security_group_id=group.id,
            description=ports.description,
            ip_protocol=ports.protocol,
            from_port=ports.first,
            to_port=ports.last,
            tags=context.tags(),
            region=context.region,
            opts=context.opts,
        )
        for ports in _ports_between_members(context)
    ]
    egress = aws.vpc.SecurityGroupEgressRule(
        f"{context.name}-out",
        security_group_id=group.id,
        description="Images, packages and data from anywhere",
        ip_protocol="-1",
        cidr_ipv4="0.0.0.0/0",
        tags=context.tags(),
        region=context.region,
        opts=context.opts,
    )
    return group, [*rules, *_ssh_rules(context, group), egress]


def _ports_between_members(context: ResourceContext) -> list[_Ports]:
    ports = [
        _Ports("swarm", "Swarm: joining and management", "tcp", 2377, 2377),
        _Ports("gossip-tcp", "Swarm: nodes find each other", "tcp", 7946, 7946),
        _Ports("gossip-udp", "Swarm: nodes find each other", "udp", 7946, 7946),
        _Ports("overlay", "Swarm: the overlay network", "udp", 4789, 4789),
    ]
    if context.ec2.efs:
        ports.append(_Ports("efs", "Shared files", "tcp", _NFS, _NFS))
    if context.spec.container.network == HOST:
        ports.append(
            _Ports("tasks", "TensorFlow and the controller on the network of the machines", "tcp", 1024, 65535)
        )
    return ports


def _ssh_rules(context: ResourceContext, group: aws.ec2.SecurityGroup) -> list[pulumi.Resource]:
    """None with access through SSM, where `ssh_cidrs` is refused."""
    anywhere = ["0.0.0.0/0"] if ANYWHERE in context.ec2.ssh_cidrs else []
    cidrs = [*(cidr for cidr in context.ec2.ssh_cidrs if cidr != ANYWHERE), *anywhere]
    return [
        aws.vpc.SecurityGroupIngressRule(
            f"{context.name}-ssh-{number}",
            security_group_id=group.id,
            description="ssh from the addresses in ssh_cidrs",
            ip_protocol="tcp",
            from_port=_SSH,
            to_port=_SSH,
            tags=context.tags(),
            region=context.region,
            opts=context.opts,
            **({"cidr_ipv6": cidr} if ":" in cidr else {"cidr_ipv4": cidr}),
        )
        for number, cidr in enumerate(cidrs)
    ]
