"""EFS: file systems and mount targets."""

import secrets
from typing import Any

from tests.box.provider.kinds import Aws, Kind, found, pairs, picked, stale, tags_of, told, until
from tests.box.provider.values import Props


def _one(aws: Aws, state: Props, call: str, what: str, **by: str) -> dict[str, Any] | None:
    answer = found(lambda: getattr(aws.client("efs", state), call)(**by))
    listed = [one for one in (answer or {}).get(what, []) if one["LifeCycleState"] not in ("deleting", "deleted")]
    return listed[0] if listed else None


def _retag(aws: Aws, key: str, old: Props, new: Props) -> None:
    efs = aws.client("efs", new)
    if gone := stale(old, new):
        efs.untag_resource(ResourceId=key, TagKeys=gone)
    if new.get("tags"):
        efs.tag_resource(ResourceId=key, Tags=pairs(new["tags"]))


def _system(aws: Aws, key: str, state: Props) -> dict[str, Any] | None:
    return _one(aws, state, "describe_file_systems", "FileSystems", FileSystemId=key)


def _make_system(aws: Aws, props: Props) -> str:
    answer = aws.client("efs", props).create_file_system(
        CreationToken=f"terraform-{secrets.token_hex(13)}",
        **picked(props, Encrypted="encrypted", ThroughputMode="throughputMode"),
        Tags=pairs(props.get("tags", {})),
    )
    key = str(answer["FileSystemId"])
    until(lambda: (_system(aws, key, props) or {}).get("LifeCycleState") == "available", f"{key} to be available")
    return key


def _read_system(aws: Aws, key: str, state: Props) -> Props | None:
    system = _system(aws, key, state)
    if system is None:
        return None
    return told(
        arn=system.get("FileSystemArn")
        or f"arn:aws:elasticfilesystem:{aws.region(state)}:{aws.account}:file-system/{key}",
        encrypted=system.get("Encrypted"),
        throughputMode=system.get("ThroughputMode"),
        **tags_of(system.get("Tags")),
    )


def _set_throughput(aws: Aws, key: str, old: Props, new: Props) -> None:
    aws.client("efs", new).update_file_system(FileSystemId=key, **picked(new, ThroughputMode="throughputMode"))


def _drop_system(aws: Aws, key: str, state: Props) -> None:
    aws.client("efs", state).delete_file_system(FileSystemId=key)
    until(lambda: _system(aws, key, state) is None, f"{key} to be deleted")


def _target(aws: Aws, key: str, state: Props) -> dict[str, Any] | None:
    return _one(aws, state, "describe_mount_targets", "MountTargets", MountTargetId=key)


def _make_target(aws: Aws, props: Props) -> str:
    names = {"FileSystemId": "fileSystemId", "SubnetId": "subnetId"}
    answer = aws.client("efs", props).create_mount_target(**picked(props, **names, SecurityGroups="securityGroups"))
    key = str(answer["MountTargetId"])
    until(lambda: (_target(aws, key, props) or {}).get("LifeCycleState") == "available", f"{key} to be available")
    return key


def _read_target(aws: Aws, key: str, state: Props) -> Props | None:
    target = _target(aws, key, state)
    if target is None:
        return None
    groups = aws.client("efs", state).describe_mount_target_security_groups(MountTargetId=key)["SecurityGroups"]
    ids = {"fileSystemId": target["FileSystemId"], "subnetId": target["SubnetId"]}
    return {**ids, "ipAddress": target["IpAddress"], "securityGroups": groups}


def _set_groups(aws: Aws, key: str, old: Props, new: Props) -> None:
    efs = aws.client("efs", new)
    efs.modify_mount_target_security_groups(MountTargetId=key, SecurityGroups=new["securityGroups"])


def _drop_target(aws: Aws, key: str, state: Props) -> None:
    aws.client("efs", state).delete_mount_target(MountTargetId=key)
    until(lambda: _target(aws, key, state) is None, f"{key} to be deleted")


KINDS = (
    Kind(
        token="aws:efs/fileSystem:FileSystem",
        create=_make_system,
        read=_read_system,
        delete=_drop_system,
        replaces=frozenset({"encrypted", "region"}),
        updates={"throughputMode": _set_throughput, "tags": _retag},
        defaults={"throughputMode": "bursting"},
    ),
    Kind(
        token="aws:efs/mountTarget:MountTarget",
        create=_make_target,
        read=_read_target,
        delete=_drop_target,
        replaces=frozenset({"fileSystemId", "subnetId", "region"}),
        updates={"securityGroups": _set_groups},
    ),
)
