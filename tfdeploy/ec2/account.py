"""What EC2 is asked, over boto3: images, networks, and the machines of a cluster.

The calls: https://boto3.amazonaws.com/v1/documentation/api/latest/reference/services/ec2.html.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError, PartialCredentialsError

from ..errors import SpecError, Unreachable
from .facts import LIVE, Instance, Subnet

T = TypeVar("T")

PREFIX = "tfdeploy:"
MACHINE, LIFE, ROLE, IMAGE, FILES, DISKS, ACCESS = (
    f"{PREFIX}{key}" for key in ("machine", "life", "role", "image", "files", "disks", "access")
)
"""Tags of an instance, beside those that all of a cluster's things carry."""

MASTER, WORKER = "Master", "Worker"
"""What the tag for the role says."""

_SECONDS = 20
_ENDED = ["shutting-down", "terminated"]
_DENIED = ("AccessDenied", "AccessDeniedException")
_NO_ACCESS = (
    "AuthFailure",
    "UnauthorizedOperation",
    *_DENIED,
    "ExpiredToken",
    "RequestExpired",
    "InvalidClientTokenId",
)


@cache
def client(service: str, region: str) -> Any:
    """A client of one of AWS's services; one for each in a process."""
    settings = Config(connect_timeout=_SECONDS, read_timeout=_SECONDS, retries={"mode": "standard", "max_attempts": 4})
    return boto3.client(service, region_name=region, config=settings)


def partition(region: str) -> str:
    """The part of AWS that a region is in, as ARNs name it.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference-arns.html
    """
    return "aws-cn" if region.startswith("cn-") else "aws-us-gov" if region.startswith("us-gov-") else "aws"


def endpoint(service: str, region: str) -> str:
    """The address of a service when it is not AWS's own (AWS_ENDPOINT_URL and the like); else empty."""
    url: str = client(service, region).meta.endpoint_url
    return "" if re.search(r"\.amazonaws\.com(\.cn)?/?$", url) else url


def default_region() -> str:
    """The region that the AWS command would take; empty for none. boto3 does not know AWS_REGION."""
    return os.environ.get("AWS_REGION") or boto3.Session().region_name or ""


@contextmanager
def answers(region: str) -> Iterator[None]:
    """AWS's ways not to answer, as ours.

    Raises:
        SpecError: nobody is logged in, or may not ask that.
        Unreachable: AWS does not answer.
    """
    try:
        yield
    except (NoCredentialsError, PartialCredentialsError) as error:
        remedy = "Run `aws configure`, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        raise SpecError("AWS", f"no credentials were found ({error})", remedy) from None
    except NoRegionError:
        raise _no_region() from None
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code not in _NO_ACCESS:
            raise
        remedy = "Log in again, or have the right given to you."
        raise SpecError("AWS", f"{region} refuses: {error.response['Error']['Message']} ({code})", remedy) from None
    except BotoCoreError as error:
        raise Unreachable(f"AWS in {region} does not answer ({error})") from None


def listed(call: Callable[[], list[T]]) -> list[T]:
    """What a call lists; nothing for somebody who may not even list, and so has made none. Within `answers`."""
    try:
        return call()
    except ClientError as error:
        if error.response["Error"]["Code"] in _DENIED:
            return []
        raise


def _no_region() -> SpecError:
    return SpecError("region", "is not given", "Run `pulumi config set aws:region us-west-2`, or set AWS_REGION.")


def refuse_no_region(region: str) -> None:
    """A region must be known.

    Raises:
        SpecError: it is not.
    """
    if not region:
        raise _no_region()


def subnets(region: str, vpc_id: str, subnet_id: str) -> list[Subnet]:
    """The subnets that machines can be made in: the one asked for, else those of the VPC, else of the default VPC.

    Raises:
        SpecError: there is none.
    """
    ec2 = client("ec2", region)
    filters = [{"Name": "vpc-id", "Values": [vpc_id]}] if vpc_id else []
    with answers(region):
        try:
            if subnet_id:
                found = ec2.describe_subnets(SubnetIds=[subnet_id])["Subnets"]
                vpc = found[0]["VpcId"]
            else:
                default = [{"Name": "is-default", "Values": ["true"]}]
                vpcs = ec2.describe_vpcs(Filters=filters or default)["Vpcs"]
                if not vpcs:
                    raise _no_vpc(region, vpc_id)
                vpc = vpcs[0]["VpcId"]
                found = ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["Subnets"]
            cidrs = ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"][0]
        except ClientError as error:
            if error.response["Error"]["Code"] in _NO_ACCESS:
                raise
            name = "subnet_id" if subnet_id else "vpc_id"
            raise SpecError(name, f"{subnet_id or vpc_id} is not in {region} ({_words(error)})", "Mend it.") from None
    blocks = [block["CidrBlock"] for block in cidrs.get("CidrBlockAssociationSet", [])] or [cidrs["CidrBlock"]]
    return [
        Subnet(item["SubnetId"], vpc, item["AvailabilityZone"], tuple(blocks))
        for item in sorted(found, key=lambda item: (not item.get("DefaultForAz"), item["AvailabilityZone"]))
    ]


def _no_vpc(region: str, vpc_id: str) -> SpecError:
    if vpc_id:
        return SpecError("vpc_id", f"{vpc_id} is not in {region}", "Mend it, or leave it out for the default VPC.")
    remedy = "Name a subnet of yours by subnet_id, or run `aws ec2 create-default-vpc`."
    return SpecError("vpc_id", f"{region} has no default VPC", remedy)


def parameter(region: str, name: str) -> str:
    """The id of the image that a public parameter names.

    Raises:
        SpecError: there is no such parameter in the region.
    """
    try:
        with answers(region):
            value: str = client("ssm", region).get_parameter(Name=name)["Parameter"]["Value"]
            return value
    except ClientError as error:
        raise SpecError(
            "ami", f"{region} has no parameter {name} ({_words(error)})", 'Name an image: "ami-…".'
        ) from None


def refuse_image(region: str, image_id: str, architecture: str) -> None:
    """An image that is named must be there, and for the type's processor.

    Raises:
        SpecError: it is not.
    """
    try:
        with answers(region):
            found = client("ec2", region).describe_images(ImageIds=[image_id])["Images"]
    except ClientError as error:
        raise SpecError("ami", f"{image_id} is not in {region} ({_words(error)})", "Mend it.") from None
    if found and found[0]["Architecture"] != architecture:
        wrong = f"{image_id} is for {found[0]['Architecture']}, the type of machine for {architecture}"
        raise SpecError("ami", wrong, "Choose another image, or another type.")


def key_of(tags: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Tags as a mapping."""
    return {tag["Key"]: tag["Value"] for tag in tags}


def filters(tags: Mapping[str, str]) -> list[dict[str, Any]]:
    """The filter that finds what carries these tags."""
    return [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]


def instances(region: str, tags: Mapping[str, str]) -> list[Instance]:
    """The machines that carry these tags and are still there, the oldest first."""
    with answers(region):
        wanted = [*filters(tags), {"Name": "instance-state-name", "Values": list(LIVE)}]
        pages = client("ec2", region).get_paginator("describe_instances").paginate(Filters=wanted)
        found = [item for page in pages for group in page["Reservations"] for item in group["Instances"]]
    return sorted(map(_instance, found), key=lambda item: (item.launched, item.instance_id))


def state(region: str, instance_id: str) -> str:
    """The state of one instance; empty where EC2 no longer knows it."""
    try:
        with answers(region):
            found = client("ec2", region).describe_instances(InstanceIds=[instance_id])["Reservations"]
    except ClientError as error:
        if "NotFound" in error.response["Error"]["Code"]:
            return ""
        raise
    return str(found[0]["Instances"][0]["State"]["Name"]) if found else ""


def endings(region: str, instance_ids: Sequence[str]) -> dict[str, str]:
    """Why, and when, each of these changed its state: the id to EC2's words. Those that EC2 no longer knows are left out.

    An instance is told of for about an hour after its end.
    """
    if not instance_ids:
        return {}
    wanted = [{"Name": "instance-id", "Values": list(instance_ids)}, {"Name": "instance-state-name", "Values": _ENDED}]
    with answers(region):
        pages = client("ec2", region).get_paginator("describe_instances").paginate(Filters=wanted)
        found = [item for page in pages for group in page["Reservations"] for item in group["Instances"]]
    return {item["InstanceId"]: item.get("StateTransitionReason", "") for item in found}


def _instance(item: Mapping[str, Any]) -> Instance:
    tags = key_of(item.get("Tags", []))
    return Instance(
        machine=tags.get(MACHINE, ""),
        instance_id=item["InstanceId"],
        state=item["State"]["Name"],
        instance_type=item["InstanceType"],
        image_id=item["ImageId"],
        life=tags.get(LIFE, ""),
        manages=tags.get(ROLE) == MASTER,
        subnet_id=item.get("SubnetId", ""),
        public_ip=item.get("PublicIpAddress", ""),
        private_ip=item.get("PrivateIpAddress", ""),
        launched=item["LaunchTime"].timestamp(),
        spot=item.get("InstanceLifecycle") == "spot",
        image=tags.get(IMAGE, ""),
        files=tags.get(FILES, ""),
        disks=tags.get(DISKS, ""),
        access=tags.get(ACCESS, ""),
    )


def console(region: str, instance_id: str) -> str:
    """What the machine has written on its console so far; the newest where the type can tell it.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_GetConsoleOutput.html
    """
    ec2 = client("ec2", region)
    with answers(region):
        try:
            answer = ec2.get_console_output(InstanceId=instance_id, Latest=True)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if "NotFound" in code:  # of a new instance that not all of EC2 knows yet
                return ""
            if code != "UnsupportedOperation":
                raise
            answer = ec2.get_console_output(InstanceId=instance_id)
    text: str = answer.get("Output", "")
    return text


def quota(region: str, code: str) -> float | None:
    """How much of something the account may have; None where AWS does not tell.

    https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html
    """
    try:
        answer = client("service-quotas", region).get_service_quota(ServiceCode="ec2", QuotaCode=code)
    except (BotoCoreError, ClientError):
        return None
    return float(answer["Quota"]["Value"])


def _words(error: ClientError) -> str:
    return str(error.response["Error"]["Message"])
