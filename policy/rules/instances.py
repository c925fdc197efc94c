"""Rules for machines, their disks and shared files, and for all resources of a cluster."""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

from .base import UNKNOWN, Inputs, Rule, RuleOptions, fits, known_items, value_at

INSTANCE, VOLUME, KEY = "aws:ec2/instance:Instance", "aws:ebs/volume:Volume", "aws:ec2/keyPair:KeyPair"
EFS = "aws:efs/fileSystem:FileSystem"

_TAGGED = (
    INSTANCE,
    VOLUME,
    KEY,
    EFS,
    "aws:ec2/securityGroup:SecurityGroup",
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
    "aws:iam/role:Role",
    "aws:iam/policy:Policy",
    "aws:iam/instanceProfile:InstanceProfile",
)
_TAGS = ("tfdeploy:cluster-id", "tfdeploy:project", "tfdeploy:stack", "tfdeploy:cluster")

_IMAGE = re.compile(r"ami-[0-9a-f]{8,17}")

_SECRETS = {
    "an access key of AWS": re.compile(r"\b(AKIA|ASIA)[A-Z0-9]{16}\b"),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY"),
    "a Swarm's token": re.compile(r"\bSWMTKN-1-\w+"),
    "a token of GitHub": re.compile(r"\b(gh[pousr]_\w{36}|github_pat_\w{22})"),
    "a value called secret": re.compile(
        r"(?i)(password|passwd|secret|token|api_?key|access_?key)[a-z_]*[\"']?\s*[=:]\s*[\"']?[^\s\"'$({<][^\s\"']{7}"
    ),
}
"""Ids of AWS's keys: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids."""


def _tokens(inputs: Inputs, _: RuleOptions) -> Iterator[str]:
    if not fits(value_at(inputs, "metadataOptions", "httpTokens"), "required"):
        yield "its metadata are available without a token (IMDSv1)"


def _hops(inputs: Inputs, _: RuleOptions) -> Iterator[str]:
    if not fits(value_at(inputs, "metadataOptions", "httpPutResponseHopLimit"), 1):
        yield "its metadata reach further than the machine itself"


def _disks(inputs: Inputs) -> Iterator[tuple[str, Any]]:
    """The disks that are made with a machine, with their names."""
    yield "the root disk", value_at(inputs, "rootBlockDevice")
    for disk in known_items(value_at(inputs, "ebsBlockDevices")):
        yield f"the disk {value_at(disk, 'deviceName')}", disk


def _encrypted_disks(inputs: Inputs, _: RuleOptions) -> Iterator[str]:
    return (f"{name} is not encrypted" for name, disk in _disks(inputs) if not fits(value_at(disk, "encrypted"), True))


def _encrypted(inputs: Inputs, _: RuleOptions) -> Iterator[str]:
    if not fits(value_at(inputs, "encrypted"), True):
        yield "it is not encrypted"


def _disk_types(inputs: Inputs, options: RuleOptions) -> Iterator[str]:
    for name, disk in _disks(inputs):
        kind = value_at(disk, "volumeType")
        if not fits(kind, *options.disks):
            yield f"{name} is {kind or 'of the type of its image'}, which `root_volume_type` does not allow"


def _private(inputs: Inputs, options: RuleOptions) -> Iterator[str]:
    if not options.public and not fits(value_at(inputs, "associatePublicIpAddress"), False):
        yield "it may have a public address, which is not used"


def _no_secrets(inputs: Inputs, _: RuleOptions) -> Iterator[str]:
    texts = [
        *known_items(value_at(inputs, "userData")),
        *map(_decoded, known_items(value_at(inputs, "userDataBase64"))),
    ]
    return (f"{what} is in its user data" for what, form in _SECRETS.items() if any(map(form.search, texts)))


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text).decode(errors="replace")
    except binascii.Error:
        return text


def _ends(inputs: Inputs, _: RuleOptions) -> Iterator[str]:
    if not fits(value_at(inputs, "instanceInitiatedShutdownBehavior"), "terminate"):
        yield "after a shutdown it is not terminated, and its disks cost"
    for name, disk in _disks(inputs):
        if not fits(value_at(disk, "deleteOnTermination"), True):
            yield f"{name} remains when it is terminated"


def _pinned(inputs: Inputs, _: RuleOptions) -> Iterator[str]:
    image = value_at(inputs, "ami")
    if image is not UNKNOWN and not _IMAGE.fullmatch(image or ""):
        yield f"its image is {image or 'not named'}"


def _tagged(inputs: Inputs, _: RuleOptions) -> Iterator[str]:
    missing = [tag for tag in _TAGS if not value_at(inputs, "tags", tag)]
    if missing:
        yield f"it lacks {', '.join(missing)}"


RULES = (
    Rule(
        "imdsv2",
        "A machine's metadata require a token (IMDSv2).",
        (INSTANCE,),
        _tokens,
        ("EC2IMDSv2Enabled", "CKV_AWS_79", "AWS-0028"),
    ),
    Rule(
        "hop-limit",
        "The token reaches the machine itself, but no container behind a bridge.",
        (INSTANCE,),
        _hops,
        ("CKV_AWS_341",),
    ),
    Rule(
        "encrypted-disks",
        "All disks that are created with a machine are encrypted.",
        (INSTANCE,),
        _encrypted_disks,
        ("AwsSolutions-EC26", "CKV_AWS_8", "AWS-0131"),
    ),
    Rule(
        "encrypted-volumes",
        "Separate volumes are encrypted.",
        (VOLUME,),
        _encrypted,
        ("AwsSolutions-EC26", "CKV_AWS_3", "AWS-0026"),
    ),
    Rule(
        "encrypted-files",
        "The shared file system is encrypted.",
        (EFS,),
        _encrypted,
        ("AwsSolutions-EFS1", "EFSEncrypted", "CKV_AWS_42", "AWS-0037"),
    ),
    Rule(
        "disk-types",
        "Disks are gp3, or of the type that `root_volume_type` names.",
        (INSTANCE,),
        _disk_types,
        option="disks",
    ),
    Rule(
        "no-public-address",
        "A machine that is reached privately has no public address, whatever the default of its subnet.",
        (INSTANCE,),
        _private,
        ("EC2InstanceNoPublicIp", "CKV_AWS_88"),
        option="public",
    ),
    Rule(
        "no-secrets",
        "User data, which everyone with permission to describe the instance can read, contain nothing that looks like a key.",
        (INSTANCE,),
        _no_secrets,
        ("CKV_AWS_46", "AWS-0029"),
    ),
    Rule(
        "ends-for-good",
        "A machine that shuts itself down is terminated, and its disks are deleted.",
        (INSTANCE,),
        _ends,
    ),
    Rule("pinned-image", "A machine's image is named by its id.", (INSTANCE,), _pinned),
    Rule("tagged", "Every resource that supports tags has its project, stack and cluster.", _TAGGED, _tagged),
)
