"""What AWS knows late, and what it has no capacity for (as moto answers, with some answers put before its own)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError
from moto import mock_aws

from tests.unit.fleets import CLUSTER
from tfdeploy.backends.ec2 import forming
from tfdeploy.ec2 import account, bucket, capacity, offers, roles
from tfdeploy.ec2.facts import InstanceType, Subnet
from tfdeploy.errors import BackendError

REGION = "us-west-2"
NOWHERE = "i-0a1b2c3d4e5f60718"
PATH = "/tfdeploy/project/dev/mnist/"


@pytest.fixture(autouse=True)
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An account of moto's in this process."""
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "unit")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "unit")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    account.client.cache_clear()
    with mock_aws():
        yield
    account.client.cache_clear()


class Before:
    """Answers that come before moto's own; each is given once."""

    def __init__(self, service: str, operation: str, status: int, code: str) -> None:
        self.given = 0
        self._status = status
        self._body = (
            f"<ErrorResponse><Error><Code>{code}</Code><Message>late</Message></Error></ErrorResponse>".encode()
        )
        account.client(service, REGION).meta.events.register_first(f"before-send.{service}.{operation}", self._answer)

    def _answer(self, request: Any, **_: Any) -> AWSResponse | None:
        if self.given:
            return None
        self.given += 1
        return AWSResponse(request.url, self._status, {"Content-Type": "text/xml"}, _Raw(self._body))


class _Raw:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self._body


def test_a_new_bucket_is_waited_for_before_it_is_closed() -> None:
    late = Before("s3", "HeadBucket", 404, "NoSuchBucket")
    where = bucket.Bucket(REGION, "tfdeploy-late", "123456789012")
    bucket.ensure(where, {"tfdeploy:cluster": "mnist"})
    assert (late.given, bucket.stands(where)) == (1, True)


def test_a_role_that_seems_to_be_in_use_is_deleted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roles, "_POLL_SECONDS", 0.01)
    iam = account.client("iam", REGION)
    iam.create_role(RoleName="late", Path=PATH, AssumeRolePolicyDocument="{}")
    allowed = {"Effect": "Allow", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::bucket/record/*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    iam.put_role_policy(RoleName="late", PolicyName="own", PolicyDocument=policy)
    late = Before("iam", "DeleteRole", 409, "DeleteConflict")
    roles.remove(REGION, PATH)
    assert (late.given, iam.list_roles(PathPrefix=PATH)["Roles"]) == (1, [])


def test_a_role_that_stays_in_use_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roles, "_SECONDS", 0.0)
    account.client("iam", REGION).create_role(RoleName="late", Path=PATH, AssumeRolePolicyDocument="{}")
    Before("iam", "DeleteRole", 409, "DeleteConflict")
    with pytest.raises(ClientError, match="DeleteConflict"):
        roles.remove(REGION, PATH)


def member() -> Any:
    return {"machine": "mnist-worker-m0", "instance_id": NOWHERE, "kind": {}, "life": "a1"}


def test_a_new_instance_that_ec2_does_not_know_yet_is_not_lost() -> None:
    assert account.console(REGION, NOWHERE) == ""
    forming._refuse_lost(CLUSTER, member(), "", 1.0)


def test_an_instance_that_ec2_still_does_not_know_is_gone() -> None:
    with pytest.raises(BackendError, match=f"EC2 says that {NOWHERE} is gone"):
        forming._refuse_lost(CLUSTER, member(), "", forming.UNKNOWN_SECONDS + 1)


HERE = Subnet("subnet-a", "vpc-1", f"{REGION}a", ())
OTHERS = [Subnet(f"subnet-{name}", "vpc-1", f"{REGION}{name[0]}", ()) for name in ("b", "b2", "c")]


def kind(name: str) -> InstanceType:
    return offers.instance_types(REGION, "instance_type", [name])[name]


def test_no_capacity_is_told_with_the_zones_and_types_that_would_do() -> None:
    said = capacity.sentence(REGION, "mnist-ps-m0", kind("m7i.large"), HERE, OTHERS, False)
    zones = "us-west-2b (subnet_id=subnet-b); us-west-2c (subnet_id=subnet-c)"
    begin = f"mnist-ps-m0: us-west-2a has no capacity for m7i.large now. Choose another zone that offers the type: {zones}, "
    assert said.startswith(f"{begin}or another instance_type that us-west-2a offers: ")
    assert said.endswith(", or `pulumi up` again later.")
    named = said.partition("offers: ")[2].partition(", or `")[0].split(", ")
    assert len(named) == 3
    assert "m7i.large" not in named
    for name in named:
        found = kind(name)
        assert HERE.zone in found.zones
        assert (found.cpus >= 2, found.memory >= 8 << 30, found.architecture) == (True, True, "x86_64")


def test_where_the_zone_cannot_change_only_types_are_told() -> None:
    said = capacity.sentence(REGION, "mnist-ps-m0", kind("m7i.large"), HERE, [], True)
    assert said.startswith(
        "mnist-ps-m0: us-west-2a has no spot capacity for m7i.large now. Choose another instance_type"
    )
    assert ", or spot=False, or" in said


def test_a_type_is_alike_that_has_no_less_and_can_be_had_the_same_way() -> None:
    wanted = InstanceType("m7i.large", 2, 8 << 30)
    near = [
        InstanceType("m5.large", 2, 8 << 30),
        InstanceType("m5.xlarge", 4, 16 << 30),
        InstanceType("m6a.large", 2, 8 << 30, spot=False),
        InstanceType("c7i.large", 2, 4 << 30),
        InstanceType("t3.large", 2, 8 << 30),
        InstanceType("m7g.large", 2, 8 << 30, architecture="arm64"),
        InstanceType("g6.xlarge", 4, 16 << 30, gpus=1),
        wanted,
    ]
    assert [one.name for one in capacity.alike(wanted, REGION, near, False)] == ["m6a.large", "m5.large"]
    assert [one.name for one in capacity.alike(wanted, REGION, near, True)] == ["m5.large"]
