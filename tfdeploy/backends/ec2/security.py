"""What a cluster's machines let through: each other, and ssh from where it is asked for."""

from collections.abc import Mapping

import pulumi
import pulumi_aws as aws

from ...containers import HOST
from ...instances import ANYWHERE
from .here import Here

_NFS, _SSH = 2049, 22


def security(here: Here) -> tuple[aws.ec2.SecurityGroup, list[pulumi.Resource]]:
    """The group of the cluster's machines, and what it lets through: members to each other, ssh from where it is asked for."""
    group = aws.ec2.SecurityGroup(
        f"{here.name}-members",
        description=f"Machines of the TensorFlow cluster {here.name}",
        vpc_id=here.place["vpc_id"],
        tags=here.tags(),
        opts=here.opts,
    )
    rules: list[pulumi.Resource] = [
        aws.vpc.SecurityGroupIngressRule(
            f"{here.name}-from-members-{what}",
            security_group_id=group.id,
            referenced_security_group_id=group.id,
            description=words,
            ip_protocol=protocol,
            from_port=first,
            to_port=last,
            tags=here.tags(),
            opts=here.opts,
        )
        for what, (words, protocol, first, last) in _inside(here).items()
    ]
    out = aws.vpc.SecurityGroupEgressRule(
        f"{here.name}-out",
        security_group_id=group.id,
        description="Images, packages and data from anywhere",
        ip_protocol="-1",
        cidr_ipv4="0.0.0.0/0",
        tags=here.tags(),
        opts=here.opts,
    )
    return group, [*rules, *_ssh(here, group), out]


def _inside(here: Here) -> Mapping[str, tuple[str, str, int, int]]:
    """What members let each other through: words, protocol, the first port and the last."""
    found = {
        "swarm": ("Swarm: joining and orders", "tcp", 2377, 2377),
        "gossip-tcp": ("Swarm: nodes find each other", "tcp", 7946, 7946),
        "gossip-udp": ("Swarm: nodes find each other", "udp", 7946, 7946),
        "overlay": ("Swarm: the overlay network", "udp", 4789, 4789),
    }
    if here.fleet.efs:
        found["efs"] = ("Shared files", "tcp", _NFS, _NFS)
    if here.spec.engine.network == HOST:
        found["tasks"] = ("TensorFlow and the keeper on the machines' own network", "tcp", 1024, 65535)
    return found


def _ssh(here: Here, group: aws.ec2.SecurityGroup) -> list[pulumi.Resource]:
    """None where SSM leads to the machines: `ssh_from` is refused then."""
    world = ["0.0.0.0/0"] if ANYWHERE in here.fleet.ssh_from else []
    return [
        aws.vpc.SecurityGroupIngressRule(
            f"{here.name}-ssh-{number}",
            security_group_id=group.id,
            description="ssh from where the cluster is run",
            ip_protocol="tcp",
            from_port=_SSH,
            to_port=_SSH,
            tags=here.tags(),
            opts=here.opts,
            **({"cidr_ipv6": cidr} if ":" in cidr else {"cidr_ipv4": cidr}),
        )
        for number, cidr in enumerate([*(one for one in here.fleet.ssh_from if one != ANYWHERE), *world])
    ]
