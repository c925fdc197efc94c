"""The least IAM policy for the user of a cluster on EC2: the actions of `actions` that its arguments need, each with the
resources and conditions to which tfdeploy's names and tags allow to limit it.

https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html has the resource types and condition keys.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import api
from .actions import (
    ATTACHMENT,
    FILE_SYSTEM,
    MOUNT_TARGET,
    OWN,
    OWN_WITH_FILES,
    OWN_WITH_ROLES,
    PROFILE,
    PROVIDER,
    ROLE,
    ROLE_ATTACHMENT,
    ROLE_POLICY,
    SESSIONS,
    SPOT,
    SSM_POLICY,
)

ANY = "*"

_TAGGED = {"StringLike": {f"aws:ResourceTag/{api.CLUSTER_ID}": "?*"}}
_TAGS_IT = {"StringLike": {f"aws:RequestTag/{api.CLUSTER_ID}": "?*"}}
_ROLES = "tfdeploy"
"""The first part of the IAM path of all roles (`api.role_path`)."""

_PUBLIC_PARAMETERS = "aws/service"
_PARAMETER = "ssm:/"
_ACCOUNT_VARIABLE = "${aws:PrincipalAccount}"

_CREATING = ("CreateSecurityGroup", "ImportKeyPair", "RunInstances")
_FILES_SERVICE, _SPOT_SERVICE = "elasticfilesystem.amazonaws.com", "spot.amazonaws.com"
"""The services that create a role: https://docs.aws.amazon.com/efs/latest/ug/using-service-linked-roles.html and
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/service-linked-roles-spot-instance-requests.html"""


@dataclass(frozen=True)
class PolicyRequest:
    """What a policy is for."""

    account: str = ""
    """The id of the account; empty for the one of the policy's user."""
    region: str = ""
    """Empty for every region."""
    new_files: bool = False
    """Whether the cluster creates a file system (`efs="new"`)."""
    spot: bool = False
    ssm: bool = False
    """Whether machines are reached through Session Manager (`connectivity="ssm"`)."""
    instance_profile: str = ""
    """The user's own instance profile; empty where tfdeploy creates one. Its role has the same name."""
    volumes: tuple[str, ...] = ()
    """The ids of existing volumes that are attached; `*` for every volume."""
    placement_group: str = ""
    """The name of an existing one; `*` for every group."""
    subnet_id: str = ""
    vpc_id: str = ""
    images: tuple[str, ...] = ()
    """The values of `ami`."""


def everything(account: str = "", region: str = "") -> PolicyRequest:
    """The request for all that a cluster may be."""
    return PolicyRequest(account, region, new_files=True, spot=True, ssm=True, volumes=(ANY,), placement_group=ANY)


def needed_actions(request: PolicyRequest) -> frozenset[str]:
    """The actions that the arguments need."""
    types = set(PROVIDER)
    actions = set(OWN)
    if request.instance_profile:
        types -= {ROLE, PROFILE, ROLE_POLICY}
    else:
        actions |= {*OWN_WITH_ROLES}
    if request.new_files:
        actions |= {*OWN_WITH_FILES}
    else:
        types -= {FILE_SYSTEM, MOUNT_TARGET}
    if not request.ssm or request.instance_profile:
        types.discard(ROLE_ATTACHMENT)
    if not request.volumes:
        types.discard(ATTACHMENT)
    actions |= {action for kind in types for action in PROVIDER[kind].actions}
    actions |= {*SPOT.actions} if request.spot else set()
    return frozenset(actions | ({*SESSIONS} if request.ssm else set()))


def document(request: PolicyRequest) -> dict[str, Any]:
    """The policy, as IAM's JSON. Actions of several services share a statement where each of them takes only its own resources,
    because the length of a policy is limited."""
    needed = needed_actions(request)
    statements = [
        statement
        for scope in (*_machines(request), *_files(request), *_roles(request), *_others(request))
        if (statement := scope.statement(needed))
    ]
    return {"Version": "2012-10-17", "Statement": statements}


def allowed_actions(policy: Mapping[str, Any]) -> frozenset[str]:
    """The actions that a policy names."""
    return frozenset(action for statement in policy["Statement"] for action in statement["Action"])


@dataclass(frozen=True)
class _Scope:
    """Where some actions are allowed."""

    sid: str
    actions: Sequence[str]
    """In IAM's words; those that the arguments do not need are left out."""
    resources: Sequence[str]
    condition: Mapping[str, Any] = field(default_factory=dict)

    def statement(self, needed: frozenset[str]) -> dict[str, Any]:
        """The statement of a policy; empty where no action or no resource is left."""
        actions = sorted(needed.intersection(self.actions))
        if not actions or not self.resources:
            return {}
        resource = self.resources[0] if len(self.resources) == 1 else list(self.resources)
        condition = {"Condition": dict(self.condition)} if self.condition else {}
        return {"Sid": self.sid, "Effect": "Allow", "Action": actions, "Resource": resource, **condition}


def _arn(request: PolicyRequest, service: str, *resources: str, account: str | None = None) -> list[str]:
    partition = api.partition(request.region)
    owner = (request.account or ANY) if account is None else account
    return [f"arn:{partition}:{service}:{request.region or ANY}:{owner}:{resource}" for resource in resources]


def _iam(request: PolicyRequest, *resources: str, account: str | None = None) -> list[str]:
    partition = api.partition(request.region)
    owner = (request.account or ANY) if account is None else account
    return [f"arn:{partition}:iam::{owner}:{resource}" for resource in resources]


def _in_region(request: PolicyRequest) -> dict[str, Any]:
    return {"StringEquals": {"aws:RequestedRegion": request.region}} if request.region else {}


_READ = tuple(
    sorted(
        action
        for action in {*OWN, *SPOT.actions, *(action for kind in PROVIDER.values() for action in kind.actions)}
        if action.startswith("ec2:Describe") and action != "ec2:DescribeInstanceAttribute"
    )
)
"""EC2 limits these neither to resources nor by tags."""

_OF_TAGGED = (
    "ec2:AssociateIamInstanceProfile",
    "ec2:AttachVolume",
    "ec2:AuthorizeSecurityGroupEgress",
    "ec2:AuthorizeSecurityGroupIngress",
    "ec2:CreateNetworkInterface",
    "ec2:CreateTags",
    "ec2:DeleteKeyPair",
    "ec2:DeleteSecurityGroup",
    "ec2:DeleteTags",
    "ec2:DeleteVolume",
    "ec2:DescribeInstanceAttribute",
    "ec2:DisassociateIamInstanceProfile",
    "ec2:GetConsoleOutput",
    "ec2:ModifyInstanceAttribute",
    "ec2:ModifySecurityGroupRules",
    "ec2:ModifyVolume",
    "ec2:ReplaceIamInstanceProfileAssociation",
    "ec2:RevokeSecurityGroupEgress",
    "ec2:RevokeSecurityGroupIngress",
    # With the cluster's key pair and security group.
    "ec2:RunInstances",
    "ec2:TerminateInstances",
    "elasticfilesystem:CreateMountTarget",
    "elasticfilesystem:DeleteFileSystem",
    "elasticfilesystem:DeleteMountTarget",
    "elasticfilesystem:DescribeLifecycleConfiguration",
    "elasticfilesystem:DescribeMountTargetSecurityGroups",
    "elasticfilesystem:DescribeMountTargets",
    "elasticfilesystem:TagResource",
    "elasticfilesystem:UntagResource",
    "ssm:StartSession",
)
"""What is allowed with everything that has the tag of a cluster."""

_OF_PARTS = (
    "ec2:AuthorizeSecurityGroupEgress",
    "ec2:AuthorizeSecurityGroupIngress",
    "ec2:CreateNetworkInterface",
    "ec2:CreateSecurityGroup",
    "ec2:DeleteNetworkInterface",
    "ec2:ModifySecurityGroupRules",
    "ec2:RevokeSecurityGroupEgress",
    "ec2:RevokeSecurityGroupIngress",
    "ec2:RunInstances",
)
"""What needs further resources, beside an instance or a security group with the tag. Each of these actions is for some of them only."""


def _machines(request: PolicyRequest) -> list[_Scope]:
    any_tagged = _arn(request, "ec2", "*/*")
    files = _arn(request, "elasticfilesystem", "file-system/*") if request.new_files else []
    creating = {"StringEquals": {"ec2:CreateAction": list(_CREATING)}}
    group = [f"placement-group/{request.placement_group}"] if request.placement_group else []
    spot = ["spot-instances-request/*"] if request.spot else []
    network = ["network-interface/*", f"subnet/{request.subnet_id or ANY}", f"vpc/{request.vpc_id or ANY}"]
    # The group of a rule must be the cluster's, by the statement `Tagged`. A rule has no tags when it is created.
    parts = [*network, "security-group-rule/*", "volume/*", *group, *spot]
    volumes = [f"volume/{volume_id}" for volume_id in request.volumes]
    return [
        _Scope("Describe", _READ, [ANY], _in_region(request)),
        _Scope("CreateMachines", ["ec2:RunInstances"], _arn(request, "ec2", "instance/*"), _TAGS_IT),
        _Scope(
            "CreateGroupAndKey",
            ["ec2:CreateSecurityGroup", "ec2:ImportKeyPair"],
            _arn(request, "ec2", "key-pair/*", "security-group/*"),
            _TAGS_IT,
        ),
        _Scope(
            "Parts", _OF_PARTS, [*_arn(request, "ec2", *parts), *_arn(request, "ec2", *_images(request), account="")]
        ),
        _Scope("TagNew", ["ec2:CreateTags"], any_tagged, {**_TAGS_IT, **creating}),
        # The provider tags these in a second call.
        _Scope("TagParts", ["ec2:CreateTags"], _arn(request, "ec2", "security-group-rule/*", "volume/*"), _TAGS_IT),
        _Scope("Tagged", _OF_TAGGED, [*any_tagged, *files], _TAGGED),
        _Scope("Volumes", ["ec2:AttachVolume"], _arn(request, "ec2", *volumes)),
    ]


def _images(request: PolicyRequest) -> list[str]:
    """The images as resources: each one where all are named by their id."""
    are_ids = request.images and all(image.startswith("ami-") for image in request.images)
    return [f"image/{image}" for image in request.images] if are_ids else ["image/*"]


def _files(request: PolicyRequest) -> list[_Scope]:
    creating = {**_TAGS_IT, "StringEquals": {"elasticfilesystem:CreateAction": "CreateFileSystem"}}
    return [
        _Scope("CreateFiles", ["elasticfilesystem:CreateFileSystem"], [ANY], {**_TAGS_IT, **_in_region(request)}),
        _Scope(
            "TagFiles",
            ["elasticfilesystem:TagResource"],
            _arn(request, "elasticfilesystem", "file-system/*"),
            creating,
        ),
    ]


_OF_ROLES = (
    "iam:AddRoleToInstanceProfile",
    "iam:CreateInstanceProfile",
    "iam:CreateRole",
    "iam:DeleteInstanceProfile",
    "iam:DeleteRole",
    "iam:DeleteRolePolicy",
    "iam:DetachRolePolicy",
    "iam:PutRolePolicy",
    "iam:RemoveRoleFromInstanceProfile",
    "iam:TagInstanceProfile",
    "iam:TagRole",
    "iam:UntagInstanceProfile",
    "iam:UntagRole",
)
_READ_ROLES = (
    "iam:GetInstanceProfile",
    "iam:GetRole",
    "iam:GetRolePolicy",
    "iam:ListAttachedRolePolicies",
    "iam:ListInstanceProfilesForRole",
    "iam:ListRolePolicies",
)


def _roles(request: PolicyRequest) -> list[_Scope]:
    own = [f"instance-profile/{_ROLES}/*", f"role/{_ROLES}/*"]
    # IAM does not know the path of a role that does not exist, or not yet, and then checks its name alone. A path matches, too.
    machines = ("manager", "worker") if request.ssm else ("manager",)
    by_name = [f"{kind}/*-{machine}-*" for kind in ("instance-profile", "role") for machine in machines]
    passed = f"role/{request.instance_profile}" if request.instance_profile else f"role/{_ROLES}/*"
    domain = "amazonaws.com.cn" if api.partition(request.region) == "aws-cn" else "amazonaws.com"
    services = [*([_FILES_SERVICE] if request.new_files else []), *([_SPOT_SERVICE] if request.spot else [])]
    return [
        _Scope("ListRoles", ["iam:ListAccountAliases", "iam:ListInstanceProfiles", "iam:ListRoles"], [ANY]),
        _Scope("ReadRoles", _READ_ROLES, _iam(request, *by_name)),
        _Scope("Roles", _OF_ROLES, _iam(request, *own)),
        _Scope(
            "RolesForSessions",
            ["iam:AttachRolePolicy"],
            _iam(request, f"role/{_ROLES}/*"),
            {"ArnEquals": {"iam:PolicyARN": _iam(request, SSM_POLICY, account="aws")[0]}},
        ),
        _Scope(
            "PassRole",
            ["iam:PassRole"],
            _iam(request, passed),
            {"StringEquals": {"iam:PassedToService": f"ec2.{domain}"}},
        ),
        _Scope(
            "RolesOfServices",
            ["iam:CreateServiceLinkedRole"],
            _iam(request, "role/aws-service-role/*"),
            {"StringEquals": {"iam:AWSServiceName": services}},
        ),
    ]


_ON_ITS_OWN = (
    "elasticfilesystem:DescribeFileSystems",
    "s3:CreateBucket",
    "servicequotas:GetServiceQuota",
    "ssm:GetParameter",
    "ssm:ResumeSession",
    "ssm:StartSession",
    "ssm:TerminateSession",
)
"""Actions of several services, each of which takes one of the resources only."""


def _others(request: PolicyRequest) -> list[_Scope]:
    account = request.account or _ACCOUNT_VARIABLE
    bucket = f"arn:{api.partition(request.region)}:s3:::tfdeploy-{account}-{request.region or ANY}"
    in_bucket = [action for action in OWN if action.startswith("s3:") and action not in _ON_ITS_OWN]
    parameters = {image.removeprefix(_PARAMETER) for image in request.images if image.startswith(_PARAMETER)}
    own = [f"parameter/{name}" for name in sorted(parameters) if not name.startswith(f"{_PUBLIC_PARAMETERS}/")]
    sessions = _arn(request, "ssm", "document/AWS-StartSSHSession", account=ANY)
    sessions += _arn(request, "ssm", "session/${aws:userid}-*")
    resources = [
        bucket,
        *_arn(request, "elasticfilesystem", "file-system/*"),
        *_arn(request, "servicequotas", "ec2/*"),
        *_arn(request, "ssm", f"parameter/{_PUBLIC_PARAMETERS}/*", account=""),
        *_arn(request, "ssm", *own),
        *(sessions if request.ssm else []),
    ]
    owned = {"StringEquals": {"s3:ResourceAccount": account}}
    return [
        _Scope("Records", in_bucket, [bucket, f"{bucket}/*"], owned),
        _Scope("Others", _ON_ITS_OWN, resources),
    ]
