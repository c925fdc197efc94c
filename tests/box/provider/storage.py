"""EBS volumes and their attachments."""

import hashlib
from typing import Any

from tests.box.provider.ec2 import retag, specified
from tests.box.provider.kinds import PATIENCE, Aws, Kind, Refused, found, nothing, picked, tags_of, told, until
from tests.box.provider.retries import retried, volume_in_use
from tests.box.provider.values import Props


def _volume(aws: Aws, key: str, state: Props) -> dict[str, Any] | None:
    answer = found(lambda: aws.client("ec2", state).describe_volumes(VolumeIds=[key]))
    volume: dict[str, Any] | None = answer["Volumes"][0] if answer and answer["Volumes"] else None
    return None if volume is None or volume["State"] in ("deleting", "deleted") else volume


def _make(aws: Aws, props: Props) -> str:
    answer = aws.client("ec2", props).create_volume(
        **picked(
            props,
            AvailabilityZone="availabilityZone",
            Size="size",
            VolumeType="type",
            Encrypted="encrypted",
            KmsKeyId="kmsKeyId",
            SnapshotId="snapshotId",
            Iops="iops",
            Throughput="throughput",
        ),
        TagSpecifications=specified("volume", props.get("tags")),
    )
    key = str(answer["VolumeId"])
    until(lambda: (_volume(aws, key, props) or {}).get("State") in ("available", "in-use"), f"{key} to be available")
    return key


def _read(aws: Aws, key: str, state: Props) -> Props | None:
    volume = _volume(aws, key, state)
    if volume is None:
        return None
    return told(
        arn=f"arn:aws:ec2:{aws.region(state)}:{aws.account}:volume/{key}",
        availabilityZone=volume["AvailabilityZone"],
        size=volume["Size"],
        type=volume["VolumeType"],
        encrypted=volume["Encrypted"],
        kmsKeyId=volume.get("KmsKeyId"),
        snapshotId=volume.get("SnapshotId"),
        iops=volume.get("Iops"),
        throughput=volume.get("Throughput"),
        createTime=volume["CreateTime"].isoformat(),
        **tags_of(volume.get("Tags")),
    )


def _change(aws: Aws, key: str, old: Props, new: Props) -> None:
    names = {"Size": "size", "VolumeType": "type", "Iops": "iops", "Throughput": "throughput"}
    aws.client("ec2", new).modify_volume(VolumeId=key, **picked(new, **names))


def _drop(aws: Aws, key: str, state: Props) -> None:
    ec2 = aws.client("ec2", state)
    retried(lambda: ec2.delete_volume(VolumeId=key), volume_in_use, PATIENCE)
    until(lambda: _volume(aws, key, state) is None, f"{key} to be deleted")


def _attach(aws: Aws, props: Props) -> str:
    device, instance, volume = props["deviceName"], props["instanceId"], props["volumeId"]
    if (_volume(aws, volume, props) or {}).get("Attachments"):
        # moto would hang it on both.
        raise Refused(f"VolumeInUse: {volume} is already attached to an instance")
    aws.client("ec2", props).attach_volume(Device=device, InstanceId=instance, VolumeId=volume)
    until(lambda: _attachment(aws, "", props) is not None, f"{volume} to be attached to {instance}")
    digest = hashlib.sha256(f"{device}-{instance}-{volume}".encode()).hexdigest()
    return f"vai-{int(digest[:8], 16)}"


def _attachment(aws: Aws, key: str, state: Props) -> Props | None:
    volume = _volume(aws, state["volumeId"], state)
    for one in (volume or {}).get("Attachments", []):
        if one["InstanceId"] == state["instanceId"] and one.get("State") != "detached":
            return {"deviceName": one["Device"], "instanceId": one["InstanceId"], "volumeId": one["VolumeId"]}
    return None


def _detach(aws: Aws, key: str, state: Props) -> None:
    if state.get("skipDestroy") or _attachment(aws, key, state) is None:
        return
    aws.client("ec2", state).detach_volume(
        Device=state["deviceName"],
        InstanceId=state["instanceId"],
        VolumeId=state["volumeId"],
        **picked(state, Force="forceDetach"),
    )
    until(lambda: _attachment(aws, key, state) is None, f"{state['volumeId']} to be detached")


_OF_DETACHING = ("forceDetach", "skipDestroy", "stopInstanceBeforeDetaching")

KINDS = (
    Kind(
        token="aws:ebs/volume:Volume",
        create=_make,
        read=_read,
        delete=_drop,
        replaces=frozenset({"availabilityZone", "encrypted", "kmsKeyId", "snapshotId", "region"}),
        updates={**dict.fromkeys(("size", "type", "iops", "throughput"), _change), "tags": retag},
    ),
    Kind(
        token="aws:ec2/volumeAttachment:VolumeAttachment",
        create=_attach,
        read=_attachment,
        delete=_detach,
        replaces=frozenset({"deviceName", "instanceId", "volumeId", "region"}),
        updates=dict.fromkeys(_OF_DETACHING, nothing),
        cleared=frozenset(_OF_DETACHING),
    ),
)
