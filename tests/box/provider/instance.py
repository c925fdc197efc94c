"""Instances."""

import base64
from typing import Any

from tests.box.provider.ec2 import retag, specified
from tests.box.provider.instance_parts import block_devices, metadata, observed
from tests.box.provider.kinds import Aws, Kind, Refused, appeared, found, nothing, picked, until
from tests.box.provider.retries import retried, unknown_profile
from tests.box.provider.values import Props

USER_DATA_LIMIT = 16384


def _user_data(props: Props) -> bytes:
    data: bytes = props.get("userData", "").encode()
    if len(data) > USER_DATA_LIMIT:
        raise Refused(f"InvalidParameterValue: User data is limited to {USER_DATA_LIMIT} bytes, not {len(data)}")
    return data


def _network(props: Props) -> dict[str, Any]:
    if "associatePublicIpAddress" not in props:
        return picked(props, SubnetId="subnetId", SecurityGroupIds="vpcSecurityGroupIds")
    names = {"AssociatePublicIpAddress": "associatePublicIpAddress", "Groups": "vpcSecurityGroupIds"}
    card = picked(props, **names, SubnetId="subnetId")
    return {"NetworkInterfaces": [{"DeviceIndex": 0, **card}]}


def _market(options: Props | None) -> dict[str, Any]:
    return {"InstanceMarketOptions": picked(options, MarketType="marketType")} if options else {}


def _request(aws: Aws, props: Props) -> dict[str, Any]:
    request = picked(
        props,
        ImageId="ami",
        InstanceType="instanceType",
        KeyName="keyName",
        InstanceInitiatedShutdownBehavior="instanceInitiatedShutdownBehavior",
    )
    if props.get("iamInstanceProfile"):
        request["IamInstanceProfile"] = {"Name": props["iamInstanceProfile"]}
    if options := metadata(props):
        request["MetadataOptions"] = options
    if data := _user_data(props):
        request["UserData"] = data
    if placement := picked(props, GroupName="placementGroup"):
        request["Placement"] = placement
    if devices := block_devices(aws, props):
        request["BlockDeviceMappings"] = devices
    volumes = props.get("rootBlockDevice", {}).get("tags")
    tags = specified("instance", props.get("tags")) + specified("volume", volumes)
    return request | _network(props) | _market(props.get("instanceMarketOptions")) | {"TagSpecifications": tags}


def _described(aws: Aws, key: str, state: Props) -> dict[str, Any] | None:
    answer = found(lambda: aws.client("ec2", state).describe_instances(InstanceIds=[key]))
    if not answer or not answer["Reservations"]:
        return None
    reservation = answer["Reservations"][0]
    instance: dict[str, Any] = {"OwnerId": reservation["OwnerId"], **reservation["Instances"][0]}
    return None if instance["State"]["Name"] == "terminated" else instance


def _until(aws: Aws, key: str, props: Props, state: str) -> None:
    def reached() -> bool:
        instance = _described(aws, key, props)
        if instance is None:
            raise Refused(f"{key} was terminated while it was waited for")
        return bool(instance["State"]["Name"] == state)

    until(reached, f"{key} to be {state}")


def _make(aws: Aws, props: Props) -> str:
    if not {"ami", "instanceType"} <= set(props):
        raise Refused("one of `ami` and `instanceType` is missing, and the stand-in knows no launch templates")
    ec2, request = aws.client("ec2", props), _request(aws, props)
    answer = retried(lambda: ec2.run_instances(MinCount=1, MaxCount=1, **request), unknown_profile)
    key = str(answer["Instances"][0]["InstanceId"])
    appeared(lambda: _described(aws, key, props), key)
    _until(aws, key, props, "running")
    return key


def _read(aws: Aws, key: str, state: Props) -> Props | None:
    instance = _described(aws, key, state)
    return None if instance is None else observed(aws, instance, state)


def _drop(aws: Aws, key: str, state: Props) -> None:
    if _described(aws, key, state) is not None:
        aws.client("ec2", state).terminate_instances(InstanceIds=[key])
        until(lambda: _described(aws, key, state) is None, f"{key} to be terminated")


def _set_shutdown(aws: Aws, key: str, old: Props, new: Props) -> None:
    behavior = {"Value": new["instanceInitiatedShutdownBehavior"]}
    aws.client("ec2", new).modify_instance_attribute(InstanceId=key, InstanceInitiatedShutdownBehavior=behavior)


def _set_groups(aws: Aws, key: str, old: Props, new: Props) -> None:
    aws.client("ec2", new).modify_instance_attribute(InstanceId=key, Groups=new["vpcSecurityGroupIds"])


def _set_metadata(aws: Aws, key: str, old: Props, new: Props) -> None:
    aws.client("ec2", new).modify_instance_metadata_options(InstanceId=key, **metadata(new))


def _set_profile(aws: Aws, key: str, old: Props, new: Props) -> None:
    ec2 = aws.client("ec2", new)
    mine = [{"Name": "instance-id", "Values": [key]}]
    listed = ec2.describe_iam_instance_profile_associations(Filters=mine)["IamInstanceProfileAssociations"]
    wanted = new.get("iamInstanceProfile")
    profile = {"IamInstanceProfile": {"Name": wanted}}
    if wanted and listed:
        change = ec2.replace_iam_instance_profile_association
        retried(lambda: change(AssociationId=listed[0]["AssociationId"], **profile), unknown_profile)
    elif wanted:
        retried(lambda: ec2.associate_iam_instance_profile(InstanceId=key, **profile), unknown_profile)
    elif listed:
        ec2.disassociate_iam_instance_profile(AssociationId=listed[0]["AssociationId"])


def _set_root(aws: Aws, key: str, old: Props, new: Props) -> None:
    names = {"Size": "volumeSize", "VolumeType": "volumeType"}
    volume = old["rootBlockDevice"]["volumeId"]
    aws.client("ec2", new).modify_volume(VolumeId=volume, **picked(new["rootBlockDevice"], **names))


def _tag_root(aws: Aws, key: str, old: Props, new: Props) -> None:
    before, after = (props.get("rootBlockDevice", {}) for props in (old, new))
    retag(aws, old["rootBlockDevice"]["volumeId"], before, {**after, "region": aws.region(new)})


def _keep_root(aws: Aws, key: str, old: Props, new: Props) -> None:
    disk = {"DeleteOnTermination": new["rootBlockDevice"]["deleteOnTermination"]}
    mapping = {"DeviceName": old["rootBlockDevice"]["deviceName"], "Ebs": disk}
    aws.client("ec2", new).modify_instance_attribute(InstanceId=key, BlockDeviceMappings=[mapping])


def _stopped(aws: Aws, key: str, old: Props, new: Props) -> None:
    """What only a stopped instance lets change."""
    ec2 = aws.client("ec2", new)
    ec2.stop_instances(InstanceIds=[key])
    _until(aws, key, new, "stopped")
    if new["instanceType"] != old["instanceType"]:
        ec2.modify_instance_attribute(InstanceId=key, InstanceType={"Value": new["instanceType"]})
    if new.get("userData") != old.get("userData"):
        # moto misreads the same value given as UserData={"Value": …}.
        data = base64.b64encode(_user_data(new)).decode()
        ec2.modify_instance_attribute(InstanceId=key, Attribute="userData", Value=data)
    ec2.start_instances(InstanceIds=[key])
    _until(aws, key, new, "running")


def _replacing(props: Props) -> frozenset[str]:
    return frozenset({"userData"} if props.get("userDataReplaceOnChange") else ())


_ADDRESS = frozenset({"publicIp", "publicDns"})
_REPLACES = """ami subnetId keyName placementGroup instanceMarketOptions ebsBlockDevices associatePublicIpAddress region
rootBlockDevice.encrypted"""

KIND = Kind(
    token="aws:ec2/instance:Instance",
    create=_make,
    read=_read,
    delete=_drop,
    replaces=frozenset(_REPLACES.split()),
    updates={
        "instanceType": _stopped,
        "userData": _stopped,
        "userDataReplaceOnChange": nothing,
        "vpcSecurityGroupIds": _set_groups,
        "metadataOptions": _set_metadata,
        "iamInstanceProfile": _set_profile,
        "instanceInitiatedShutdownBehavior": _set_shutdown,
        "tags": retag,
        "rootBlockDevice.deleteOnTermination": _keep_root,
        "rootBlockDevice.tags": _tag_root,
        "rootBlockDevice.volumeSize": _set_root,
        "rootBlockDevice.volumeType": _set_root,
    },
    cleared=frozenset({"rootBlockDevice.tags"}),
    defaults={"rootBlockDevice.deleteOnTermination": True, "userDataReplaceOnChange": False},
    settles=_replacing,
    moves=dict.fromkeys(("instanceType", "userData"), _ADDRESS),
)
