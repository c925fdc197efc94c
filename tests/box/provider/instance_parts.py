"""The parts of an instance: its disks, its metadata service, and what AWS tells of them all."""

import base64
from typing import Any

from tests.box.provider.kinds import Aws, Refused, picked, tags_of, told
from tests.box.provider.values import Props


def metadata(props: Props) -> dict[str, Any]:
    """The options of the metadata service as AWS takes them."""
    return picked(
        props.get("metadataOptions", {}),
        HttpTokens="httpTokens",
        HttpEndpoint="httpEndpoint",
        HttpPutResponseHopLimit="httpPutResponseHopLimit",
    )


def _disk(device: Props) -> dict[str, Any]:
    return picked(
        device,
        VolumeSize="volumeSize",
        VolumeType="volumeType",
        Encrypted="encrypted",
        DeleteOnTermination="deleteOnTermination",
    )


def block_devices(aws: Aws, props: Props) -> list[dict[str, Any]]:
    """The disks as AWS takes them; the root disk's name is the image's."""
    wanted = [
        {"DeviceName": device["deviceName"], "Ebs": {"DeleteOnTermination": True, **_disk(device)}}
        for device in props.get("ebsBlockDevices", [])
    ]
    root = props.get("rootBlockDevice")
    if root:
        images = aws.client("ec2", props).describe_images(ImageIds=[props["ami"]])["Images"]
        if not images:
            raise Refused(f"there is no image {props['ami']}")
        name = images[0].get("RootDeviceName") or "/dev/xvda"
        wanted.append({"DeviceName": name, "Ebs": {"DeleteOnTermination": True, **_disk(root)}})
    return wanted


def observed(aws: Aws, instance: dict[str, Any], state: Props) -> Props:
    """The outputs, as far as AWS tells them."""
    key = instance["InstanceId"]
    cards = instance.get("NetworkInterfaces") or [{}]
    placement = instance.get("Placement", {})
    return told(
        arn=f"arn:aws:ec2:{aws.region(state)}:{instance['OwnerId']}:instance/{key}",
        ami=instance["ImageId"],
        instanceType=instance["InstanceType"],
        instanceState=instance["State"]["Name"],
        keyName=instance.get("KeyName"),
        subnetId=instance.get("SubnetId"),
        privateIp=instance.get("PrivateIpAddress"),
        publicIp=instance.get("PublicIpAddress") or "",
        publicDns=instance.get("PublicDnsName") or "",
        availabilityZone=placement.get("AvailabilityZone"),
        placementGroup=placement.get("GroupName") or None,
        vpcSecurityGroupIds=[group["GroupId"] for group in instance["SecurityGroups"] or cards[0].get("Groups", [])],
        iamInstanceProfile=instance.get("IamInstanceProfile", {}).get("Arn", "").rpartition("/")[2],
        metadataOptions=_metadata(instance),
        rootBlockDevice=_root(aws, instance, state),
        **_attributes(aws, key, state),
        **tags_of(instance.get("Tags")),
    )


def _metadata(instance: dict[str, Any]) -> Props:
    return picked(
        instance.get("MetadataOptions", {}),
        httpTokens="HttpTokens",
        httpEndpoint="HttpEndpoint",
        httpPutResponseHopLimit="HttpPutResponseHopLimit",
    )


def _root(aws: Aws, instance: dict[str, Any], state: Props) -> Props | None:
    mappings = {entry["DeviceName"]: entry["Ebs"] for entry in instance.get("BlockDeviceMappings", [])}
    disk = mappings.get(instance.get("RootDeviceName"))
    if disk is None:
        return None
    volume = aws.client("ec2", state).describe_volumes(VolumeIds=[disk["VolumeId"]])["Volumes"][0]
    names = {"volumeSize": "Size", "volumeType": "VolumeType", "encrypted": "Encrypted"}
    return {
        "deviceName": instance["RootDeviceName"],
        "volumeId": disk["VolumeId"],
        "deleteOnTermination": disk.get("DeleteOnTermination", True),
        **picked(volume, **names),
        **tags_of(volume.get("Tags")),
    }


def _attributes(aws: Aws, key: str, state: Props) -> Props:
    """What only DescribeInstanceAttribute tells."""

    def value(name: str) -> Any:
        answer = aws.client("ec2", state).describe_instance_attribute(InstanceId=key, Attribute=name)
        return answer[name[0].upper() + name[1:]].get("Value")

    found = told(instanceInitiatedShutdownBehavior=value("instanceInitiatedShutdownBehavior"))
    if data := value("userData"):
        found["userData"] = base64.b64decode(data).decode(errors="replace")
    return found
