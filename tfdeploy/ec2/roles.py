"""The roles of a cluster's machines, found again by their path: IAM looks for no tags.

The calls: https://boto3.amazonaws.com/v1/documentation/api/latest/reference/services/iam.html.
"""

import time
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from . import account

_SECONDS, _POLL_SECONDS = 60.0, 2.0
_NOT_THERE = "NoSuchEntity"
_LATE = ("DeleteConflict", "ConcurrentModification", "EntityTemporarilyUnmodifiable")
"""https://docs.aws.amazon.com/IAM/latest/APIReference/API_DeleteRole.html"""


def path(project: str, stack: str, cluster: str) -> str:
    """The path of a cluster's roles and instance profiles."""
    return f"/tfdeploy/{project}/{stack}/{cluster}/"


def remove(region: str, prefix: str) -> None:
    """Remove what has this path."""
    iam = account.client("iam", region)
    with account.answers(region):
        profiles = account.listed(lambda: _all(iam, "list_instance_profiles", "InstanceProfiles", prefix))
        roles = account.listed(lambda: _all(iam, "list_roles", "Roles", prefix))
        for profile in profiles:
            name = profile["InstanceProfileName"]
            for role in profile["Roles"]:
                _gone(iam.remove_role_from_instance_profile, InstanceProfileName=name, RoleName=role["RoleName"])
            _gone(iam.delete_instance_profile, InstanceProfileName=name)
        for role in (one["RoleName"] for one in roles):
            for policy in _listed(iam.list_role_policies, role, "PolicyNames"):
                _gone(iam.delete_role_policy, RoleName=role, PolicyName=policy)
            for policy in _listed(iam.list_attached_role_policies, role, "AttachedPolicies"):
                _gone(iam.detach_role_policy, RoleName=role, PolicyArn=policy["PolicyArn"])
            _gone(iam.delete_role, RoleName=role)


def _gone(remove: Callable[..., Any], **what: str) -> None:
    """Remove something. Not there is as good; what still seems to be in use is tried again, for IAM knows late what has gone."""
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            remove(**what)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == _NOT_THERE:
                return
            if code not in _LATE or time.monotonic() > deadline:
                raise
            time.sleep(_POLL_SECONDS)
        else:
            return


def _listed(call: Callable[..., Any], role: str, key: str) -> list[Any]:
    """What a role has; nothing where it is not there any more."""
    try:
        found: list[Any] = call(RoleName=role)[key]
    except ClientError as error:
        if error.response["Error"]["Code"] != _NOT_THERE:
            raise
        return []
    return found


def _all(iam: Any, call: str, key: str, prefix: str) -> list[Any]:
    return [item for page in iam.get_paginator(call).paginate(PathPrefix=prefix) for item in page[key]]
