"""All that carries a cluster's tags is removed from AWS, however it came to be left."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from ..errors import BackendError
from . import account

SECONDS = 600.0
_POLL_SECONDS = 1.0
_STILL_USED = (
    "DependencyViolation",
    "InvalidGroup.InUse",
    "FileSystemInUse",
    "VolumeInUse",
    "IncorrectFileSystemLifeCycleState",
)


def terminate(region: str, instance_ids: Sequence[str]) -> None:
    """End machines, and wait until they have ended.

    Raises:
        BackendError: one does not end.
    """
    if not instance_ids:
        return
    with account.answers(region):
        account.client("ec2", region).terminate_instances(InstanceIds=list(instance_ids))
    _wait(
        lambda: not any(account.state(region, one) not in ("terminated", "") for one in instance_ids),
        f"{', '.join(instance_ids)} did not end",
    )


def remove_all(region: str, tags: Mapping[str, str], keep_files: bool) -> list[str]:
    """Remove machines, volumes, shared files, security groups and keys. `keep_files` leaves the shared files, and takes the
    tags off them, so that they are nobody's but the user's from then on; their ids.

    Raises:
        BackendError: something does not go away; it is named.
    """
    ec2 = account.client("ec2", region)
    terminate(region, [one.instance_id for one in account.instances(region, tags)])
    kept = _files(region, tags, keep_files)
    with account.answers(region):
        wanted = account.filters(tags)
        for volume in ec2.describe_volumes(Filters=wanted)["Volumes"]:
            _gone(partial(ec2.delete_volume, VolumeId=volume["VolumeId"]))
        for group in ec2.describe_security_groups(Filters=wanted)["SecurityGroups"]:
            _gone(partial(ec2.delete_security_group, GroupId=group["GroupId"]))
        for pair in ec2.describe_key_pairs(Filters=wanted)["KeyPairs"]:
            _gone(partial(ec2.delete_key_pair, KeyName=pair["KeyName"]))
    return kept


def _files(region: str, tags: Mapping[str, str], keep: bool) -> list[str]:
    efs = account.client("efs", region)
    with account.answers(region):
        systems = account.listed(lambda: _tagged(efs, tags))
        for system in systems:
            if keep:
                efs.untag_resource(ResourceId=system, TagKeys=list(tags))
                continue
            for target in _targets(efs, system):
                _gone(partial(efs.delete_mount_target, MountTargetId=target))
            _wait(partial(_has_none, efs, system), f"the mount targets of {system} did not go")
            _gone(partial(efs.delete_file_system, FileSystemId=system))
        return systems if keep else []


def _tagged(efs: Any, tags: Mapping[str, str]) -> list[str]:
    return [
        item["FileSystemId"]
        for page in efs.get_paginator("describe_file_systems").paginate()
        for item in page["FileSystems"]
        if tags.items() <= account.key_of(item.get("Tags", [])).items()
    ]


def _targets(efs: Any, system: str) -> list[str]:
    return [item["MountTargetId"] for item in efs.describe_mount_targets(FileSystemId=system)["MountTargets"]]


def _has_none(efs: Any, system: str) -> bool:
    return not _targets(efs, system)


def _gone(remove: Callable[[], Any]) -> None:
    """Remove something; not there is as good, and what is still in use is tried again."""
    last: list[str] = []

    def removed() -> bool:
        try:
            remove()
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if "NotFound" in code:
                return True
            if code not in _STILL_USED:
                raise BackendError(str(error)) from None
            last[:] = [str(error)]
            return False
        return True

    _wait(removed, "it is still in use", last)


def _wait(done: Callable[[], bool], otherwise: str, details: Sequence[str] = ()) -> None:
    deadline = time.monotonic() + SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise BackendError(" ".join([f"{otherwise} within {SECONDS:g} s", *details]))
        time.sleep(_POLL_SECONDS)
