"""Read-only calls of AWS over boto3: credentials, networks, images, instances, volumes, types, quotas.

https://boto3.amazonaws.com/v1/documentation/api/latest/reference/services/ec2.html
"""

import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from ....errors import SpecError
from ..machine import model
from ..machine.model import ARM, LIVE, X86, InstanceType, MachineState, Subnet
from . import account
from .errors import AwsFailure, Kind, aws_errors, error_code, kind_of, value_errors

T = TypeVar("T")

_MOST_VALUES = 200
"""The most values of one filter: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html"""

_THROTTLED_SECONDS, _FIRST_PAUSE, _LONGEST_PAUSE = 300.0, 1.0, 30.0
"""How long a call is repeated that AWS refuses because of too many calls, and the pauses between."""

_TYPES_PAGE = "See https://aws.amazon.com/ec2/instance-types/ for the available types."
_MIB = 1 << 20


def custom_endpoint(service: str, region: str) -> str:
    """The address of a service where it is not AWS's own (AWS_ENDPOINT_URL and the like); else empty."""
    url: str = account.client(service, region).meta.endpoint_url
    return "" if re.search(r"\.amazonaws\.com(\.cn)?/?$", url) else url


def repeat(call: Callable[[], object], seconds: float, pause: float) -> None:
    """Call until it succeeds, while something is in use or changed by another call, or AWS refuses calls. Within `aws_errors`."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            call()
        except ClientError as error:
            if kind_of(error) not in (Kind.CONFLICT, Kind.THROTTLING) or time.monotonic() > deadline:
                raise
            time.sleep(pause)
        else:
            return


def retry_throttled(call: Callable[[], T]) -> T:
    """What a call within `aws_errors` returns, which is repeated later and later while AWS refuses it because of too many calls.

    The client repeats a call itself, but few times, and all threads of a process share a quota for that:
    https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html
    """
    deadline, pause = time.monotonic() + _THROTTLED_SECONDS, _FIRST_PAUSE
    while True:
        try:
            return call()
        except AwsFailure as error:
            if error.kind is not Kind.THROTTLING or time.monotonic() > deadline:
                raise
        time.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(2 * pause, _LONGEST_PAUSE)


def empty_if_denied(call: Callable[[], list[T]]) -> list[T]:
    """The list that a call returns; empty where it is denied: without permission to list, nothing was created. Within `aws_errors`."""
    try:
        return call()
    except ClientError as error:
        if kind_of(error) is Kind.PERMISSION:
            return []
        raise


def pages(api: Any, operation: str, key: str, **arguments: Any) -> Iterator[Any]:
    """The items of all pages of a list operation."""
    for page in api.get_paginator(operation).paginate(**arguments):
        yield from page[key]


def subnets(region: str, vpc_id: str, subnet_id: str) -> list[Subnet]:
    """The subnets for machines: the requested one, else those of the VPC, else those of the default VPC.

    Raises:
        SpecError: the subnet or the VPC does not exist, or the VPC has no subnet.
    """
    ec2 = account.client("ec2", region)
    with _exists("ec2.subnet_id" if subnet_id else "ec2.vpc_id", subnet_id or vpc_id, region):
        if subnet_id:
            items = ec2.describe_subnets(SubnetIds=[subnet_id])["Subnets"]
            vpc = ec2.describe_vpcs(VpcIds=[items[0]["VpcId"]])["Vpcs"][0]
        else:
            vpc = _vpc(region, vpc_id)
            items = ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc["VpcId"]]}])["Subnets"]
    if not items:
        remedy = (
            "Create one. If this program creates it, set subnet_id to its output, so that the cluster waits for it."
        )
        raise SpecError("ec2.vpc_id", f"{vpc['VpcId']} has no subnet in {region}", remedy)
    blocks = [block["CidrBlock"] for block in vpc.get("CidrBlockAssociationSet", [])] or [vpc["CidrBlock"]]
    return [
        Subnet(item["SubnetId"], vpc["VpcId"], item["AvailabilityZone"], tuple(blocks))
        for item in sorted(items, key=lambda item: (not item.get("DefaultForAz"), item["AvailabilityZone"]))
    ]


def _vpc(region: str, vpc_id: str) -> Any:
    """The VPC of this id, or the default VPC."""
    name, value = ("vpc-id", vpc_id) if vpc_id else ("is-default", "true")
    vpcs = account.client("ec2", region).describe_vpcs(Filters=[{"Name": name, "Values": [value]}])["Vpcs"]
    if vpcs:
        return vpcs[0]
    if vpc_id:
        remedy = "Correct it, or remove it to use the default VPC."
        raise SpecError("ec2.vpc_id", f"{vpc_id} does not exist in {region}", remedy)
    remedy = "Set subnet_id to one of your subnets, or run `aws ec2 create-default-vpc`."
    raise SpecError("ec2.vpc_id", f"{region} has no default VPC", remedy)


def _exists(where: str, resource_id: str, region: str) -> AbstractContextManager[None]:
    return value_errors(region, where, f"{resource_id} does not exist in {region}", "Correct it.")


def image_parameter(region: str, name: str) -> str:
    """The image id in a public parameter.

    Raises:
        SpecError: the region has no such parameter.
    """
    with value_errors(region, "ec2.ami", f"{region} has no parameter {name}", 'Set ami to an image id: "ami-…".'):
        return str(account.client("ssm", region).get_parameter(Name=name)["Parameter"]["Value"])


def refuse_image(region: str, image_id: str, architecture: str) -> None:
    """Check that an image exists, and is for the processor of the type.

    Raises:
        SpecError: it is not.
    """
    with _exists("ec2.ami", image_id, region):
        images = account.client("ec2", region).describe_images(ImageIds=[image_id])["Images"]
    if images and images[0]["Architecture"] != architecture:
        wrong = f"{image_id} is an image for {images[0]['Architecture']}, but the instance type is {architecture}"
        raise SpecError("ec2.ami", wrong, "Choose another image or another instance_type.")


def tag_values(tags: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """AWS's list of tags as a mapping."""
    return {tag["Key"]: tag["Value"] for tag in tags}


def tag_filters(tags: Mapping[str, str]) -> list[dict[str, Any]]:
    """The filters for resources with these tags."""
    return [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]


def _described(region: str, filters: Sequence[Mapping[str, Any]]) -> list[Any]:
    with aws_errors(region):
        reservations = pages(account.client("ec2", region), "describe_instances", "Reservations", Filters=filters)
        return [instance for reservation in reservations for instance in reservation["Instances"]]


def instances(
    region: str, tags: Mapping[str, str], states: Sequence[str] = LIVE, known: Sequence[str] = ()
) -> list[MachineState]:
    """The existing instances with these tags, or with a known id, in these states, the oldest first."""
    live = {"Name": "instance-state-name", "Values": list(states)}
    described = retry_throttled(lambda: _described(region, [*tag_filters(tags), live]))
    untagged = sorted({*known} - {item["InstanceId"] for item in described})
    for begin in range(0, len(untagged), _MOST_VALUES):
        ids = {"Name": "instance-id", "Values": untagged[begin : begin + _MOST_VALUES]}
        described += retry_throttled(partial(_described, region, [ids, live]))
    return sorted(map(_instance, described), key=lambda instance: (instance.launched, instance.instance_id))


def instance_states(region: str, instance_ids: Sequence[str]) -> dict[str, str]:
    """The state of each of these instances that EC2 knows, by id. One call for many instances."""
    parts = (instance_ids[begin : begin + _MOST_VALUES] for begin in range(0, len(instance_ids), _MOST_VALUES))
    return {
        item["InstanceId"]: str(item["State"]["Name"])
        for part in parts
        for item in _described(region, [{"Name": "instance-id", "Values": list(part)}])
    }


def _instance(item: Mapping[str, Any]) -> MachineState:
    tags = tag_values(item.get("Tags", []))
    return MachineState(
        machine=tags.get(model.MACHINE, ""),
        instance_id=item["InstanceId"],
        state=item["State"]["Name"],
        instance_type=item["InstanceType"],
        image_id=item["ImageId"],
        is_manager=tags.get(model.ROLE) == model.MASTER,
        subnet_id=item.get("SubnetId", ""),
        public_ip=item.get("PublicIpAddress", ""),
        private_ip=item.get("PrivateIpAddress", ""),
        launched=item["LaunchTime"].timestamp(),
        spot=item.get("InstanceLifecycle") == "spot",
        image=tags.get(model.IMAGE, ""),
        files=tags.get(model.FILES, ""),
        disks=tags.get(model.DISKS, ""),
        access=tags.get(model.ACCESS, ""),
    )


def console(region: str, instance_id: str) -> str:
    """The console output of an instance; the latest where its type supports that, empty where EC2 does not know the instance yet.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_GetConsoleOutput.html
    """
    ec2 = account.client("ec2", region)
    with aws_errors(region):
        try:
            output = ec2.get_console_output(InstanceId=instance_id, Latest=True)
        except ClientError as error:
            if kind_of(error) is Kind.GONE:
                return ""
            if error_code(error) != "UnsupportedOperation":
                raise
            output = ec2.get_console_output(InstanceId=instance_id)
    return str(output.get("Output", ""))


def volume_zone(region: str, where: str, volume_ids: Sequence[str], instance_ids: Sequence[str]) -> str:
    """The zone of these volumes; empty for no volumes. They may be attached to `instance_ids`, the cluster's own instances.

    Raises:
        SpecError: a volume does not exist or is attached to another instance, or they are in several zones.
    """
    zones: dict[str, str] = {}
    for volume_id in volume_ids:
        with _exists(where, volume_id, region):
            volume = account.client("ec2", region).describe_volumes(VolumeIds=[volume_id])["Volumes"][0]
        zones.setdefault(volume["AvailabilityZone"], volume_id)
        for holder in (attachment["InstanceId"] for attachment in volume.get("Attachments", [])):
            if holder not in instance_ids:
                raise SpecError(where, f"{volume_id} is attached to {holder}", "Detach it, or choose another volume.")
    if len(zones) > 1:
        wrong = ", ".join(f"{volume_id} is in {zone}" for zone, volume_id in zones.items())
        remedy = "Choose volumes of one zone."
        raise SpecError(where, f"{wrong}, but all machines of a cluster are in one zone", remedy)
    return next(iter(zones), "")


def file_systems(region: str, tags: Mapping[str, str]) -> dict[str, int]:
    """The file systems with these tags, and their size in bytes; none without permission to list them."""
    with aws_errors(region):
        items = empty_if_denied(
            lambda: list(pages(account.client("efs", region), "describe_file_systems", "FileSystems"))
        )
    return {
        item["FileSystemId"]: int(item.get("SizeInBytes", {}).get("Value", 0))
        for item in items
        if tags.items() <= tag_values(item.get("Tags", [])).items()
    }


def instance_types(region: str, where: str, names: Iterable[str]) -> dict[str, InstanceType]:
    """Name to type, with the zones that offer it.

    Raises:
        SpecError: the region has no such type.
    """
    types: dict[str, InstanceType] = {}
    for name in sorted(set(names)):
        wrong = f"{name!r} is not an instance type in {region}"
        with value_errors(region, where, wrong, _TYPES_PAGE):
            items = account.client("ec2", region).describe_instance_types(InstanceTypes=[name])["InstanceTypes"]
        if not items:
            raise SpecError(where, wrong, _TYPES_PAGE)
        types[name] = _instance_type(items[0], _zones_of_type(region, name))
    return types


def _zones_of_type(region: str, name: str) -> frozenset[str]:
    filters = [{"Name": "instance-type", "Values": [name]}]
    operation = ("describe_instance_type_offerings", "InstanceTypeOfferings")
    with aws_errors(region):
        items = pages(account.client("ec2", region), *operation, LocationType="availability-zone", Filters=filters)
        return frozenset(item["Location"] for item in items)


def _instance_type(item: Mapping[str, Any], zones: frozenset[str]) -> InstanceType:
    architectures = item["ProcessorInfo"]["SupportedArchitectures"]
    return InstanceType(
        name=item["InstanceType"],
        cpus=item["VCpuInfo"]["DefaultVCpus"],
        memory=item["MemoryInfo"]["SizeInMiB"] * _MIB,
        gpus=sum(gpu["Count"] for gpu in item.get("GpuInfo", {}).get("Gpus", []) if gpu["Manufacturer"] == "NVIDIA"),
        architecture=ARM if ARM in architectures else X86,
        spot="spot" in item["SupportedUsageClasses"],
        zones=zones,
    )


def quota(region: str, code: str) -> float | None:
    """A quota of the account; None where AWS does not report it.

    https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html
    """
    try:
        response = account.client("service-quotas", region).get_service_quota(ServiceCode="ec2", QuotaCode=code)
    except (BotoCoreError, ClientError):
        return None
    return float(response["Quota"]["Value"])


SSM_POLICY = "policy/AmazonSSMManagedInstanceCore"
"""The policy that the roles of machines have with `connectivity="ssm"`: the permissions of SSM's agent.
https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AmazonSSMManagedInstanceCore.html"""

ROLES_PATH = "/tfdeploy/"
"""The beginning of the IAM path of all roles."""


def partition(region: str) -> str:
    """The partition of AWS that has a region, as in ARNs.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference-arns.html
    """
    return "aws-cn" if region.startswith("cn-") else "aws-us-gov" if region.startswith("us-gov-") else "aws"
