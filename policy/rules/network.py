"""Rules for security groups, and their rules."""

from collections.abc import Iterator

from .base import UNKNOWN, Inputs, Rule, RuleOptions, fits, known_items, value_at
from .instances import INSTANCE

GROUP = "aws:ec2/securityGroup:SecurityGroup"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
TARGET = "aws:efs/mountTarget:MountTarget"

_WORLD = ("0.0.0.0/0", "::/0")
_SSH = 22
_UNDESCRIBED = ("", "Managed by Pulumi", "Managed by Terraform")
"""Includes the descriptions that the providers write by default."""


def _own_group(inputs: Inputs, _: RuleOptions) -> Iterator[str]:
    if not any(value_at(inputs, key) for key in ("vpcSecurityGroupIds", "securityGroups")):
        yield "it is in the VPC's default security group"


def _described(inputs: Inputs, _: RuleOptions) -> Iterator[str]:
    if (value_at(inputs, "description") or "") in _UNDESCRIBED:
        yield "it has no description"


def _not_inline(inputs: Inputs, _: RuleOptions) -> Iterator[str]:
    return (
        f"it has an inline rule, which is not checked ({key})" for key in ("ingress", "egress") if value_at(inputs, key)
    )


def _ssh(inputs: Inputs) -> bool:
    ports = (value_at(inputs, "fromPort"), value_at(inputs, "toPort"))
    return fits(value_at(inputs, "ipProtocol"), "tcp") and all(fits(port, _SSH) for port in ports)


def _closed(inputs: Inputs, options: RuleOptions) -> Iterator[str]:
    for source in known_items([value_at(inputs, "cidrIpv4"), value_at(inputs, "cidrIpv6")]):
        if source in _WORLD and not (options.anywhere and _ssh(inputs)):
            yield f"every address is allowed ({source})"


def _members_only(inputs: Inputs, _: RuleOptions) -> Iterator[str]:
    group, source = value_at(inputs, "securityGroupId"), value_at(inputs, "referencedSecurityGroupId")
    if not _ssh(inputs) and UNKNOWN not in (group, source) and source != group:
        ports = (
            " to ".join(f"{port:g}" for port in known_items([value_at(inputs, "fromPort"), value_at(inputs, "toPort")]))
            or "all ports"
        )
        yield f"machines outside of the cluster are allowed to connect to {ports} ({value_at(inputs, 'ipProtocol')})"


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
        "The security group and its rules have descriptions.",
        (GROUP, INGRESS, EGRESS),
        _described,
        ("AwsSolutions-EC27", "CKV_AWS_23", "AWS-0099", "AWS-0124"),
    ),
    Rule(
        "not-inline",
        "The rules of a security group are separate resources, which the other checks see.",
        (GROUP,),
        _not_inline,
    ),
    Rule(
        "closed-to-the-world",
        'No port is open to every address, except SSH with "anywhere".',
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
        option="anywhere",
    ),
    Rule(
        "members-only",
        "All ports but SSH (Swarm, shared files, controller, TensorFlow) are open to the cluster's own machines only.",
        (INGRESS,),
        _members_only,
    ),
)
