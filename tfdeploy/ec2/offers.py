"""The types of machines that a region offers.

https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypes.html
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from ..errors import SpecError
from . import account
from .facts import ARM, X86, InstanceType

_TYPES = "See https://aws.amazon.com/ec2/instance-types/ for those that there are."
_MIB = 1 << 20


def instance_types(region: str, where: str, names: Iterable[str]) -> dict[str, InstanceType]:
    """Name to type.

    Raises:
        SpecError: there is no such type in the region.
    """
    found: dict[str, InstanceType] = {}
    for name in sorted(set(names)):
        try:
            with account.answers(region):
                answer = account.client("ec2", region).describe_instance_types(InstanceTypes=[name])["InstanceTypes"]
        except ClientError as error:
            raise SpecError(
                where, f"{name!r} is no type of {region} ({error.response['Error']['Message']})", _TYPES
            ) from None
        if not answer:
            raise SpecError(where, f"{name!r} is no type of {region}", _TYPES)
        found[name] = _type(answer[0], _zones(region, name))
    return found


def in_zone(region: str, zone: str) -> list[str]:
    """The names of the types that a zone offers."""
    return [item["InstanceType"] for item in _offerings(region, "location", zone)]


def described(region: str, names: Sequence[str]) -> list[InstanceType]:
    """Types that the region has, at most 100; where each is offered is left out."""
    if not names:
        return []
    with account.answers(region):
        answer = account.client("ec2", region).describe_instance_types(InstanceTypes=list(names))["InstanceTypes"]
    return [_type(item, frozenset()) for item in answer]


def _zones(region: str, name: str) -> frozenset[str]:
    return frozenset(item["Location"] for item in _offerings(region, "instance-type", name))


def _offerings(region: str, key: str, value: str) -> list[Mapping[str, str]]:
    wanted = [{"Name": key, "Values": [value]}]
    with account.answers(region):
        pages = (
            account.client("ec2", region)
            .get_paginator("describe_instance_type_offerings")
            .paginate(LocationType="availability-zone", Filters=wanted)
        )
        return [item for page in pages for item in page["InstanceTypeOfferings"]]


def _type(item: Mapping[str, Any], zones: frozenset[str]) -> InstanceType:
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
