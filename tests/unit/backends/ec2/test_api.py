"""What AWS knows late and denies (as moto answers, with some answers put before its own)."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError

from tests.unit.backends.ec2.moto_account import moto_account
from tfdeploy.backends.ec2 import cleanup, record_bucket
from tfdeploy.backends.ec2.aws import account, api
from tfdeploy.errors import SpecError

REGION = "us-west-2"
NOT_OF_THE_BOX = "eu-west-1"
"""In the region of the box each instance is a machine, for as long as the process of its tests lives."""

PATH = "/tfdeploy/mnist-k3v9x2abcd/"


@pytest.fixture(autouse=True)
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with moto_account(tmp_path, monkeypatch):
        yield


class Before:
    """Answers that come before moto's own; each is given once, or so many times."""

    def __init__(
        self, service: str, operation: str, status: int, code: str, times: int = 1, region: str = REGION
    ) -> None:
        self.given = 0
        self._times = times
        self._status = status
        self._body = (
            f"<ErrorResponse><Error><Code>{code}</Code><Message>late</Message></Error></ErrorResponse>".encode()
        )
        account.client(service, region).meta.events.register_first(f"before-send.{service}.{operation}", self._answer)

    def _answer(self, request: Any, **_: Any) -> AWSResponse | None:
        if self.given >= self._times:
            return None
        self.given += 1
        raw = SimpleNamespace(stream=lambda **_: iter([self._body]))
        return AWSResponse(request.url, self._status, {"Content-Type": "text/xml"}, raw)


def test_a_bucket_that_may_not_be_seen_or_is_another_accounts_is_refused() -> None:
    bucket = record_bucket.locate(REGION, "mnist-k3v9x2abcd")
    denied, created = Before("s3", "HeadBucket", 403, "403"), Before("s3", "CreateBucket", 409, "BucketAlreadyExists")
    changed = Before("s3", "PutPublicAccessBlock", 409, "AccessDenied")
    with pytest.raises(SpecError, match=r"calling the HeadBucket operation: .* Ask those who administer"):
        record_bucket.create(bucket)
    assert (denied.given, created.given) == (1, 0)
    with pytest.raises(
        SpecError, match=f"s3://{bucket.name}: belongs to another AWS account, and tfdeploy stores .* 123456789012"
    ):
        record_bucket.create(bucket)
    assert (created.given, changed.given) == (1, 0)


def test_a_role_that_seems_to_be_in_use_is_deleted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleanup, "POLL_SECONDS", 0.01)
    iam = account.client("iam", REGION)
    iam.create_role(RoleName="late", Path=PATH, AssumeRolePolicyDocument="{}")
    allowed = {"Effect": "Allow", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::bucket/record/*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    iam.put_role_policy(RoleName="late", PolicyName="own", PolicyDocument=policy)
    late = Before("iam", "DeleteRole", 409, "DeleteConflict")
    cleanup.delete_roles(REGION, PATH)
    assert (late.given, iam.list_roles(PathPrefix=PATH)["Roles"]) == (1, [])


@pytest.mark.parametrize("operation", ["DescribeInstances", "TerminateInstances"])
def test_a_call_that_is_throttled_more_often_than_the_client_repeats_it_is_repeated(
    operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    ec2 = account.client("ec2", NOT_OF_THE_BOX)
    launched = ec2.run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"]
    throttled = Before("ec2", operation, 503, "RequestLimitExceeded", 9, NOT_OF_THE_BOX)
    if operation == "DescribeInstances":
        assert api.instances(NOT_OF_THE_BOX, {}) != []
    else:
        cleanup.terminate(NOT_OF_THE_BOX, [launched])
    assert throttled.given == 9
    assert len(pauses) >= 9


def created_files(tags: dict[str, str]) -> str:
    """A file system with a mount target, as the AWS provider creates it."""
    efs, ec2 = account.client("efs", REGION), account.client("ec2", REGION)
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]
    created = str(efs.create_file_system(CreationToken=str(tags), Tags=listed)["FileSystemId"])
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    efs.create_mount_target(FileSystemId=created, SubnetId=subnet)
    return created


def test_shared_files_that_are_kept_are_the_users_own_from_then_on() -> None:
    mine, others = ({"tfdeploy:cluster": name} for name in ("mnist", "other"))
    kept, other = created_files(mine), created_files(others)
    efs = account.client("efs", REGION)
    assert cleanup.delete_tagged(REGION, mine, keep_files=True) == [kept]
    assert (api.file_systems(REGION, mine), efs.describe_mount_targets(FileSystemId=kept)["MountTargets"]) == ({}, [])
    assert list(api.file_systems(REGION, others)) == [other]
    assert cleanup.delete_tagged(REGION, others, keep_files=False) == []
    assert [item["FileSystemId"] for item in efs.describe_file_systems()["FileSystems"]] == [kept]


def test_a_profile_of_another_cluster_remains() -> None:
    iam = account.client("iam", REGION)
    other = "/tfdeploy/mnist-another-id/"
    for name, path in (("mine", PATH), ("other", other)):
        iam.create_instance_profile(InstanceProfileName=name, Path=path)
    cleanup.delete_roles(REGION, PATH)
    assert [item["Path"] for item in iam.list_instance_profiles()["InstanceProfiles"]] == [other]


def test_who_may_not_even_list_has_made_none_and_any_other_no_is_one() -> None:
    def listed(code: str) -> list[str]:
        if code:
            raise ClientError({"Error": {"Code": code, "Message": "no"}}, "ListRoles")
        return ["one"]

    assert api.empty_if_denied(lambda: listed("")) == ["one"]
    for code in ("AccessDenied", "AccessDeniedException"):
        assert api.empty_if_denied(partial(listed, code)) == []
    with pytest.raises(ClientError, match="Throttling"):
        api.empty_if_denied(lambda: listed("Throttling"))
