"""Attachments of EBS volumes."""

import hashlib
from typing import Any

from tests.box.provider.kinds import Aws, Kind, Refused, found, nothing, until
from tests.box.provider.values import Props


def _volume(aws: Aws, key: str, state: Props) -> dict[str, Any] | None:
    answer = found(lambda: aws.client("ec2", state).describe_volumes(VolumeIds=[key]))
    volume: dict[str, Any] | None = answer["Volumes"][0] if answer and answer["Volumes"] else None
    return None if volume is None or volume["State"] in ("deleting", "deleted") else volume


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
    if not state.get("skipDestroy"):
        raise Refused(f"{state['volumeId']}: tfdeploy detaches a volume by the end of its instance alone")


KINDS = (
    Kind(
        token="aws:ec2/volumeAttachment:VolumeAttachment",
        create=_attach,
        read=_attachment,
        delete=_detach,
        replaces=frozenset({"deviceName", "instanceId", "volumeId", "region"}),
        updates={"skipDestroy": nothing},
        cleared=frozenset({"skipDestroy"}),
    ),
)
