"""Deletes all AWS resources that have a cluster's tags, whether Pulumi's state knows them or not."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from ...agent.system.polling import wait_until
from ...errors import BackendError
from .aws import account, api
from .aws.errors import Kind, aws_errors, kind_of, translated

SECONDS = 600.0
ROLE_SECONDS = 60.0
"""IAM learns late what was detached. https://docs.aws.amazon.com/IAM/latest/APIReference/API_DeleteRole.html"""

POLL_SECONDS = 1.0


def terminate(region: str, instance_ids: Sequence[str]) -> None:
    """Terminate instances, and wait until they are terminated.

    Raises:
        BackendError: one is not terminated in time.
    """
    if not instance_ids:
        return

    def terminate_all() -> None:
        with aws_errors(region):
            account.client("ec2", region).terminate_instances(InstanceIds=list(instance_ids))

    def are_terminated() -> bool:
        states = api.retry_throttled(lambda: api.instance_states(region, instance_ids))
        return set(states.values()) <= {"terminated"}

    api.retry_throttled(terminate_all)
    _wait(are_terminated, f"{', '.join(instance_ids)}: not terminated")


def delete_tagged(region: str, tags: Mapping[str, str], keep_files: bool) -> list[str]:
    """Delete the instances, volumes, shared file systems, security groups and key pairs with these tags, except the record in S3.
    `keep_files` keeps the shared file systems and removes their tags, so that they are the user's own from then on; their ids.

    Raises:
        BackendError: a resource could not be deleted; the message names it.
    """
    ec2 = account.client("ec2", region)
    terminate(region, [instance.instance_id for instance in api.instances(region, tags)])
    retained = _delete_file_systems(region, tags, keep_files)
    with aws_errors(region):
        filters = api.tag_filters(tags)
        for volume in ec2.describe_volumes(Filters=filters)["Volumes"]:
            _delete(volume["VolumeId"], partial(ec2.delete_volume, VolumeId=volume["VolumeId"]))
        for group in ec2.describe_security_groups(Filters=filters)["SecurityGroups"]:
            _delete(group["GroupId"], partial(ec2.delete_security_group, GroupId=group["GroupId"]))
        for pair in ec2.describe_key_pairs(Filters=filters)["KeyPairs"]:
            _delete(pair["KeyName"], partial(ec2.delete_key_pair, KeyName=pair["KeyName"]))
    return retained


def _delete_file_systems(region: str, tags: Mapping[str, str], keep: bool) -> list[str]:
    efs = account.client("efs", region)
    systems = list(api.file_systems(region, tags))

    def targets(system: str) -> list[str]:
        return [item["MountTargetId"] for item in efs.describe_mount_targets(FileSystemId=system)["MountTargets"]]

    with aws_errors(region):
        for system in systems:
            for target in targets(system):
                _delete(target, partial(efs.delete_mount_target, MountTargetId=target))
            _wait(lambda system=system: not targets(system), f"{system}: its mount targets were not deleted")  # type: ignore[misc]
            if keep:
                efs.untag_resource(ResourceId=system, TagKeys=list(tags))
            else:
                _delete(system, partial(efs.delete_file_system, FileSystemId=system))
    return systems if keep else []


def delete_roles(region: str, path: str) -> None:
    """Delete the roles and instance profiles below an IAM path."""
    iam = account.client("iam", region)
    with aws_errors(region):
        profiles = api.empty_if_denied(lambda: _listed(iam, "list_instance_profiles", "InstanceProfiles", path))
        roles = api.empty_if_denied(lambda: _listed(iam, "list_roles", "Roles", path))
        for profile in profiles:
            name = profile["InstanceProfileName"]
            for role in profile["Roles"]:
                remove = iam.remove_role_from_instance_profile
                _delete(name, partial(remove, InstanceProfileName=name, RoleName=role["RoleName"]), ROLE_SECONDS)
            _delete(name, partial(iam.delete_instance_profile, InstanceProfileName=name), ROLE_SECONDS)
        for role in (item["RoleName"] for item in roles):
            for policy in _policies(iam.list_role_policies, role, "PolicyNames"):
                _delete(role, partial(iam.delete_role_policy, RoleName=role, PolicyName=policy), ROLE_SECONDS)
            for policy in _policies(iam.list_attached_role_policies, role, "AttachedPolicies"):
                arn = policy["PolicyArn"]
                _delete(role, partial(iam.detach_role_policy, RoleName=role, PolicyArn=arn), ROLE_SECONDS)
            _delete(role, partial(iam.delete_role, RoleName=role), ROLE_SECONDS)


def _listed(iam: Any, operation: str, key: str, path: str) -> list[Any]:
    """Those of this path alone, whatever the service makes of the prefix."""
    return [item for item in api.pages(iam, operation, key, PathPrefix=path) if item["Path"] == path]


def _policies(call: Callable[..., Any], role: str, key: str) -> list[Any]:
    """The policies of a role; empty where the role does not exist."""
    try:
        return list(call(RoleName=role)[key])
    except ClientError as error:
        if kind_of(error) is Kind.GONE:
            return []
        raise


def _delete(name: str, delete: Callable[[], Any], seconds: float = SECONDS) -> None:
    """Delete a resource. "Not found" is success; while it is in use the call is repeated."""
    try:
        api.repeat(delete, seconds, POLL_SECONDS)
    except ClientError as error:
        if kind_of(error) is not Kind.GONE:
            raise BackendError(f"{name}: {translated(error, '')}") from None


def _wait(done: Callable[[], bool], problem: str) -> None:
    if not wait_until(done, SECONDS, pause=POLL_SECONDS):
        raise BackendError(f"{problem} within {SECONDS:g} s")
