"""The least IAM policy for the user of a cluster on EC2: the actions of `actions.toml` that its arguments need, each with the
resources and conditions to which tfdeploy's names and tags allow to limit it.

https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html has the resource types and condition keys.
"""

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from ..machine.model import CLUSTER_ID

ANY = "*"

SSM_POLICY = "policy/AmazonSSMManagedInstanceCore"
"""The policy that the roles of machines have with `connectivity="ssm"`: the permissions of SSM's agent.
https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AmazonSSMManagedInstanceCore.html"""

ROLES_PATH = "/tfdeploy/"
"""The beginning of the IAM path of all roles."""

_TAGGED = {"StringLike": {f"aws:ResourceTag/{CLUSTER_ID}": "?*"}}
_TAGS_IT = {"StringLike": {f"aws:RequestTag/{CLUSTER_ID}": "?*"}}

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


def partition(region: str) -> str:
    """The partition of AWS that has a region, as in ARNs.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference-arns.html
    """
    return "aws-cn" if region.startswith("cn-") else "aws-us-gov" if region.startswith("us-gov-") else "aws"


@cache
def actions() -> Mapping[str, Mapping[str, Collection[str]]]:
    """The table `actions.toml`: section and key to actions in IAM's words."""
    table = tomllib.loads(files(__package__).joinpath("actions.toml").read_text(encoding="utf-8"))
    return {
        section: {
            key: {f"{service}:{name}" for service, names in services.items() for name in names.split()}
            for key, services in part.items()
        }
        for section, part in table.items()
    }


def needed_actions(request: PolicyRequest) -> frozenset[str]:
    """The actions that the arguments need."""
    has_roles = not request.instance_profile
    sections = {
        "always": True,
        "roles": has_roles,
        "roles_with_ssm": has_roles and request.ssm,
        "ssm": request.ssm,
        "new_files": request.new_files,
        "volumes": bool(request.volumes),
        "spot": request.spot,
    }
    needed = (part for section, is_needed in sections.items() if is_needed for part in actions()[section].values())
    return frozenset().union(*needed)


def document(request: PolicyRequest) -> dict[str, Any]:
    """The policy, as IAM's JSON. Actions of several services share a statement where each of them takes only its own resources,
    because the length of a policy is limited. A statement without actions or resources is left out."""
    needed = needed_actions(request)
    limits = {**_machines(request), **_files(request), **_roles(request), **_others(request)}
    statements = [
        {
            "Sid": sid,
            "Effect": "Allow",
            "Action": sorted(allowed),
            "Resource": limit.resources[0] if len(limit.resources) == 1 else list(limit.resources),
            **({"Condition": dict(limit.condition)} if limit.condition else {}),
        }
        for sid, limit in limits.items()
        if (allowed := needed.intersection(actions()["statements"][sid])) and limit.resources
    ]
    return {"Version": "2012-10-17", "Statement": statements}


class _Limit(NamedTuple):
    """Where the actions of a statement are allowed."""

    resources: Sequence[str]
    condition: Mapping[str, Any] = {}


def _arn(request: PolicyRequest, service: str, *resources: str, account: str | None = None) -> list[str]:
    place = "" if service == "iam" else request.region or ANY
    owner = (request.account or ANY) if account is None else account
    return [f"arn:{partition(request.region)}:{service}:{place}:{owner}:{resource}" for resource in resources]


def _in_region(request: PolicyRequest) -> dict[str, Any]:
    return {"StringEquals": {"aws:RequestedRegion": request.region}} if request.region else {}


def _machines(request: PolicyRequest) -> dict[str, _Limit]:
    any_tagged = _arn(request, "ec2", "*/*")
    files = _arn(request, "elasticfilesystem", "file-system/*") if request.new_files else []
    creating = {"StringEquals": {"ec2:CreateAction": list(_CREATING)}}
    group = [f"placement-group/{request.placement_group}"] if request.placement_group else []
    spot = ["spot-instances-request/*"] if request.spot else []
    network = ["network-interface/*", f"subnet/{request.subnet_id or ANY}", f"vpc/{request.vpc_id or ANY}"]
    # The group of a rule must be the cluster's, by the statement `Tagged`. A rule has no tags when it is created.
    parts = [*network, "security-group-rule/*", "volume/*", *group, *spot]
    # Each image where all are named by their id.
    are_ids = request.images and all(image.startswith("ami-") for image in request.images)
    images = [f"image/{image}" for image in request.images] if are_ids else ["image/*"]
    return {
        "Describe": _Limit([ANY], _in_region(request)),
        "CreateMachines": _Limit(_arn(request, "ec2", "instance/*"), _TAGS_IT),
        "CreateGroupAndKey": _Limit(_arn(request, "ec2", "key-pair/*", "security-group/*"), _TAGS_IT),
        "Parts": _Limit([*_arn(request, "ec2", *parts), *_arn(request, "ec2", *images, account="")]),
        "TagNew": _Limit(any_tagged, {**_TAGS_IT, **creating}),
        "TagParts": _Limit(_arn(request, "ec2", "security-group-rule/*", "volume/*"), _TAGS_IT),
        "Tagged": _Limit([*any_tagged, *files], _TAGGED),
        "Volumes": _Limit(_arn(request, "ec2", *(f"volume/{volume_id}" for volume_id in request.volumes))),
    }


def _files(request: PolicyRequest) -> dict[str, _Limit]:
    creating = {**_TAGS_IT, "StringEquals": {"elasticfilesystem:CreateAction": "CreateFileSystem"}}
    return {
        "CreateFiles": _Limit([ANY], {**_TAGS_IT, **_in_region(request)}),
        "TagFiles": _Limit(_arn(request, "elasticfilesystem", "file-system/*"), creating),
    }


def _roles(request: PolicyRequest) -> dict[str, _Limit]:
    own = [f"{kind}{ROLES_PATH}*" for kind in ("instance-profile", "role")]
    # IAM does not know the path of a role that does not exist, or not yet, and then checks its name alone. A path matches, too.
    machines = ("manager", "worker") if request.ssm else ("manager",)
    by_name = [f"{kind}/*-{machine}-*" for kind in ("instance-profile", "role") for machine in machines]
    passed = f"role/{request.instance_profile}" if request.instance_profile else f"role{ROLES_PATH}*"
    domain = "amazonaws.com.cn" if partition(request.region) == "aws-cn" else "amazonaws.com"
    services = [*([_FILES_SERVICE] if request.new_files else []), *([_SPOT_SERVICE] if request.spot else [])]
    ssm_policy = _arn(request, "iam", SSM_POLICY, account="aws")[0]
    return {
        "ListRoles": _Limit([ANY]),
        "ReadRoles": _Limit(_arn(request, "iam", *by_name)),
        "Roles": _Limit(_arn(request, "iam", *own)),
        "RolesForSessions": _Limit(
            _arn(request, "iam", f"role{ROLES_PATH}*"), {"ArnEquals": {"iam:PolicyARN": ssm_policy}}
        ),
        "PassRole": _Limit(_arn(request, "iam", passed), {"StringEquals": {"iam:PassedToService": f"ec2.{domain}"}}),
        "RolesOfServices": _Limit(
            _arn(request, "iam", "role/aws-service-role/*"), {"StringEquals": {"iam:AWSServiceName": services}}
        ),
    }


def _others(request: PolicyRequest) -> dict[str, _Limit]:
    account = request.account or _ACCOUNT_VARIABLE
    bucket = f"arn:{partition(request.region)}:s3:::tfdeploy-{account}-{request.region or ANY}"
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
    return {"Records": _Limit([bucket, f"{bucket}/*"], owned), "Others": _Limit(resources)}
