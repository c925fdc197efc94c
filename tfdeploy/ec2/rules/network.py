"""Rules for security groups, and for what is let through."""

from collections.abc import Iterator

from .base import UNKNOWN, Asked, Inputs, Rule, at, fits, known
from .machines import INSTANCE

GROUP = "aws:ec2/securityGroup:SecurityGroup"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
TARGET = "aws:efs/mountTarget:MountTarget"

_WORLD = ("0.0.0.0/0", "::/0")
_SSH = 22
_UNDESCRIBED = ("", "Managed by Pulumi", "Managed by Terraform")
"""What the provider itself writes where nothing is given is among them."""


def _own_group(inputs: Inputs, _: Asked) -> Iterator[str]:
    if not any(at(inputs, key) for key in ("vpcSecurityGroupIds", "securityGroups")):
        yield "it is in the VPC's default security group"


def _described(inputs: Inputs, _: Asked) -> Iterator[str]:
    if (at(inputs, "description") or "") in _UNDESCRIBED:
        yield "it has no description"


def _not_inline(inputs: Inputs, _: Asked) -> Iterator[str]:
    return (f"it has a rule that no other rule looks at ({key})" for key in ("ingress", "egress") if at(inputs, key))


def _ssh(inputs: Inputs) -> bool:
    ports = (at(inputs, "fromPort"), at(inputs, "toPort"))
    return fits(at(inputs, "ipProtocol"), "tcp") and all(fits(port, _SSH) for port in ports)


def _closed(inputs: Inputs, asked: Asked) -> Iterator[str]:
    for source in known([at(inputs, "cidrIpv4"), at(inputs, "cidrIpv6")]):
        if source in _WORLD and not (asked.anywhere and _ssh(inputs)):
            yield f"the whole world is let in ({source})"


def _members_only(inputs: Inputs, _: Asked) -> Iterator[str]:
    group, source = at(inputs, "securityGroupId"), at(inputs, "referencedSecurityGroupId")
    if not _ssh(inputs) and UNKNOWN not in (group, source) and source != group:
        ports = (
            " to ".join(f"{port:g}" for port in known([at(inputs, "fromPort"), at(inputs, "toPort")])) or "all ports"
        )
        yield f"others than the cluster's own machines are let in to {ports} ({at(inputs, 'ipProtocol')})"


RULES = (
    Rule(
        "own-group",
        "Machines and mount targets are in the cluster's own security group.",
        (INSTANCE, TARGET),
        _own_group,
        ("CKV2_AWS_5",),
    ),
    Rule(
        "described",
        "The security group, and all that it lets through, are described.",
        (GROUP, INGRESS, EGRESS),
        _described,
        ("AwsSolutions-EC27", "CKV_AWS_23", "AWS-0099", "AWS-0124"),
    ),
    Rule(
        "not-inline",
        "What a security group lets through is a resource of its own, which the other rules see.",
        (GROUP,),
        _not_inline,
    ),
    Rule(
        "closed-to-the-world",
        'Nothing is let in from everywhere: only ssh, and only by the word "anywhere".',
        (INGRESS,),
        _closed,
        (
            "AwsSolutions-EC23",
            "EC2RestrictedSSH",
            "EC2RestrictedCommonPorts",
            "CKV_AWS_24",
            "CKV_AWS_25",
            "CKV_AWS_260",
            "CKV_AWS_277",
            "AWS-0107",
        ),
        word="anywhere",
    ),
    Rule(
        "members-only",
        "All but ssh (Swarm, shared files, keeper, TensorFlow) is let in from the cluster's own machines only.",
        (INGRESS,),
        _members_only,
    ),
)
