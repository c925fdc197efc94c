"""The roles of a cluster's machines, found again by their path: IAM looks for no tags.

The calls: https://boto3.amazonaws.com/v1/documentation/api/latest/reference/services/iam.html.
"""

from typing import Any

from . import account


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
                iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=role["RoleName"])
            iam.delete_instance_profile(InstanceProfileName=name)
        for role in (one["RoleName"] for one in roles):
            for policy in iam.list_role_policies(RoleName=role)["PolicyNames"]:
                iam.delete_role_policy(RoleName=role, PolicyName=policy)
            for policy in iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]:
                iam.detach_role_policy(RoleName=role, PolicyArn=policy["PolicyArn"])
            iam.delete_role(RoleName=role)


def _all(iam: Any, call: str, key: str, prefix: str) -> list[Any]:
    return [item for page in iam.get_paginator(call).paginate(PathPrefix=prefix) for item in page[key]]
