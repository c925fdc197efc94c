"""A user of the box may do what docs/iam-policy.json names, and nothing else."""

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.box.cloud import ACTIONS
from tests.box.permissions import Permissions
from tests.ec2.preparing import moto_server

REGION, KEY = "eu-west-3", "limited"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with moto_server() as found:
        yield found


@pytest.fixture(scope="module")
def permissions() -> Iterator[Permissions]:
    """Those of the box, of another user."""
    found = Permissions({KEY}, ACTIONS)
    with found.enforced():
        yield found


@pytest.fixture
def client(endpoint: str, permissions: Permissions) -> Callable[..., Any]:
    """The client of a service, of this user."""

    def made(service: str, key: str = KEY) -> Any:
        return boto3.client(
            service,
            endpoint_url=endpoint,
            region_name=REGION,
            aws_access_key_id=key,
            aws_secret_access_key=key,
        )

    return made


def machine(ec2: Any, **more: Any) -> None:
    ec2.run_instances(MinCount=1, MaxCount=1, ImageId="ami-1", DryRun=True, **more)


TAGS = [{"Key": "a", "Value": "b"}]
TAGGED = [{"ResourceType": "instance", "Tags": TAGS}]
TRUST = '{"Version": "2012-10-17", "Statement": []}'
BUCKET = {"Bucket": "tfdeploy-permissions", "CreateBucketConfiguration": {"LocationConstraint": REGION}}

CALLS: list[tuple[str, str, Callable[[Any], Any], str]] = [
    ("ec2:DescribeVpcs", "ec2", lambda ec2: ec2.describe_vpcs(), "UnauthorizedOperation"),
    ("ec2:RunInstances", "ec2", machine, "UnauthorizedOperation"),
    ("ec2:CreateTags", "ec2", lambda ec2: machine(ec2, TagSpecifications=TAGGED), "UnauthorizedOperation"),
    ("iam:PassRole", "ec2", lambda ec2: machine(ec2, IamInstanceProfile={"Name": "x"}), "UnauthorizedOperation"),
    ("iam:ListRoles", "iam", lambda iam: iam.list_roles(), "AccessDenied"),
    (
        "iam:TagRole",
        "iam",
        lambda iam: iam.create_role(RoleName="x", AssumeRolePolicyDocument=TRUST, Tags=TAGS),
        "AccessDenied",
    ),
    (
        "iam:PassRole",
        "iam",
        lambda iam: iam.add_role_to_instance_profile(InstanceProfileName="x", RoleName="x"),
        "AccessDenied",
    ),
    (
        "elasticfilesystem:TagResource",
        "efs",
        lambda efs: efs.create_file_system(CreationToken="x", Tags=TAGS),
        "AccessDeniedException",
    ),
    ("elasticfilesystem:DescribeFileSystems", "efs", lambda efs: efs.describe_file_systems(), "AccessDeniedException"),
    ("ssm:GetParameter", "ssm", lambda ssm: ssm.get_parameter(Name="/x"), "AccessDeniedException"),
    ("s3:CreateBucket", "s3", lambda s3: s3.create_bucket(**BUCKET), "AccessDenied"),
    ("s3:ListBucket", "s3", lambda s3: s3.head_bucket(Bucket="absent"), "403"),
    ("s3:GetBucketTagging", "s3", lambda s3: s3.get_bucket_tagging(Bucket="absent"), "AccessDenied"),
    ("s3:GetObject", "s3", lambda s3: s3.get_object(Bucket="absent", Key="x/y"), "AccessDenied"),
]


def code_of(call: Callable[[], Any]) -> str:
    """The code of its error; empty for none."""
    try:
        call()
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return ""


@pytest.mark.parametrize(
    ("action", "service", "call", "code"), CALLS, ids=lambda value: value if ":" in str(value) else ""
)
def test_a_call_without_its_action_is_denied_as_aws_does(
    action: str,
    service: str,
    call: Callable[[Any], Any],
    code: str,
    client: Callable[..., Any],
    permissions: Permissions,
) -> None:
    before = permissions.denied[action]
    with permissions.without(action):
        assert code_of(lambda: call(client(service))) == code
    assert permissions.denied[action] == before + 1
    assert code_of(lambda: call(client(service))) != code
    assert permissions.denied[action] == before + 1


def test_what_no_policy_names_is_denied(client: Callable[..., Any]) -> None:
    assert code_of(lambda: client("ec2").create_vpc_peering_connection(VpcId="x")) == "UnauthorizedOperation"
    assert code_of(lambda: client("s3").list_objects_v2(Bucket="absent")) == "NoSuchBucket"
    assert code_of(lambda: client("s3").delete_bucket(Bucket="absent")) == "AccessDenied"


def test_others_may_do_everything(client: Callable[..., Any], permissions: Permissions) -> None:
    with permissions.without("ec2:DescribeVpcs"):
        assert code_of(lambda: client("ec2", "administrator").describe_vpcs()) == ""


def test_who_one_is_needs_no_permission(client: Callable[..., Any]) -> None:
    assert code_of(lambda: client("sts").get_caller_identity()) == ""
