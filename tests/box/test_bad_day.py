"""A bad day in the box: each fault happens, and the stand-in for the provider asks again where the real one does."""

import asyncio
import contextlib
import json
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from moto.core.responses import BaseResponse
from moto.server import ThreadedMotoServer
from pulumi.provider.experimental import provider as wire

from tests.box.api import REGION
from tests.box.bad_day import BadDay, Days, Fault
from tests.box.provider.kinds import Refused
from tests.box.provider.provider import StandIn
from tests.box.provider.values import wrapped

pytestmark = pytest.mark.full

TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}],
}
IMAGE = "ami-12c6146b"


class Account:
    """An account of moto's, with the stand-in for the provider on it."""

    def __init__(self, endpoint: str, days: Days) -> None:
        self.endpoint, self.days = endpoint, days

    def client(self, service: str, region: str = REGION) -> Any:
        """A client that makes each call once."""
        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name=region,
            aws_access_key_id="box",
            aws_secret_access_key="box",
            config=Config(retries={"max_attempts": 0}),
        )

    def apply(self, *steps: tuple[str, dict[str, Any]], attempts: int = 25) -> list[str]:
        """Create resources, delete them in reverse; an input may be a function of the ids so far. The ids."""
        provider = StandIn()
        settings = {
            "region": REGION,
            "accessKey": "box",
            "secretKey": "box",
            "maxRetries": str(attempts),
            "endpoints": json.dumps([dict.fromkeys(("ec2", "iam", "efs", "sts"), self.endpoint)]),
        }

        async def work() -> list[str]:
            await provider.configure(wire.ConfigureRequest({}, wrapped(settings), False, False))
            made: list[tuple[str, str, Any]] = []
            for token, inputs in steps:
                ids = [key for _, key, _ in made]
                given = {name: value(ids) if callable(value) else value for name, value in inputs.items()}
                urn = f"urn:pulumi:test::project::{token}::x"
                answer = await provider.create(wire.CreateRequest(urn, wrapped(given), 60, False))
                made.append((token, str(answer.resource_id), answer.properties))
            for token, key, state in reversed(made):
                urn = f"urn:pulumi:test::project::{token}::x"
                await provider.delete(wire.DeleteRequest(urn, key, state, 60))
            return [key for _, key, _ in made]

        with contextlib.closing(asyncio.new_event_loop()) as loop:
            return loop.run_until_complete(work())


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    """One account for all tests of this file."""
    days = Days()
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    with patch.object(BaseResponse, "call_action", days.wrapped(BaseResponse.call_action)):
        server.start()
        endpoint = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
        urllib.request.urlopen(f"{endpoint}/moto-api/reset", data=b"").close()
        try:
            yield Account(endpoint, days)
        finally:
            server.stop()


@pytest.fixture
def on(account: Account) -> Iterator[Callable[[BadDay], BadDay]]:
    """Has it be a bad day until the test ends."""

    def begin(day: BadDay) -> BadDay:
        account.days.now = day
        return day

    yield begin
    account.days.now = None


def last(ids: list[str]) -> str:
    return ids[-1]


ROLE = ("aws:iam/role:Role", {"name": "one", "assumeRolePolicy": json.dumps(TRUST)})
GROUP = ("aws:ec2/securityGroup:SecurityGroup", {"name": "one", "description": "one"})
PROFILE = ("aws:iam/instanceProfile:InstanceProfile", {"name": "one", "role": last})
MACHINE = {"ami": IMAGE, "instanceType": "m7i.large"}


def test_all_that_a_cluster_needs_is_made_and_deleted_on_a_bad_day(
    account: Account, on: Callable[[BadDay], BadDay]
) -> None:
    subnet = account.client("ec2").describe_subnets()["Subnets"][0]
    day = on(BadDay(every=7))
    policy = json.dumps(
        {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
    )
    account.apply(
        ROLE,
        ("aws:iam/rolePolicy:RolePolicy", {"name": "may", "role": last, "policy": policy}),
        (PROFILE[0], {"name": "one", "role": lambda ids: ids[0]}),
        (GROUP[0], {**GROUP[1], "vpcId": subnet["VpcId"]}),
        (
            "aws:ec2/instance:Instance",
            {
                **MACHINE,
                "subnetId": subnet["SubnetId"],
                "iamInstanceProfile": "one",
                "vpcSecurityGroupIds": lambda ids: ids[3:4],
            },
        ),
        ("aws:ebs/volume:Volume", {"availabilityZone": subnet["AvailabilityZone"], "size": 1}),
        ("aws:efs/fileSystem:FileSystem", {"encrypted": True}),
        (
            "aws:efs/mountTarget:MountTarget",
            {"fileSystemId": last, "subnetId": subnet["SubnetId"], "securityGroups": lambda ids: ids[3:4]},
        ),
    )
    assert day.happened[Fault.NOT_FOUND] == 7
    assert (day.happened[Fault.PROFILE], day.happened[Fault.GROUP_IN_USE]) == (3, 3)
    assert day.happened[Fault.NO_CAPACITY] == 1
    assert day.happened[Fault.THROTTLED] >= 8


def test_without_capacity_the_attempts_end_and_aws_names_other_zones(
    account: Account, on: Callable[[BadDay], BadDay]
) -> None:
    day = on(BadDay(every=0, short_of={"m7i.large"}))
    with pytest.raises(Refused, match=r"sufficient m7i\.large capacity .* choosing us-west-2[abc], us-west-2[abc]"):
        account.apply(("aws:ec2/instance:Instance", MACHINE), attempts=3)
    assert day.happened == {Fault.NO_CAPACITY: 3}


@pytest.mark.parametrize(
    ("service", "call", "status", "code"),
    [
        ("ec2", "describe_instances", 503, "RequestLimitExceeded"),
        ("iam", "list_roles", 400, "Throttling"),
        ("efs", "describe_file_systems", 429, "ThrottlingException"),
    ],
)
def test_throttling_is_answered_as_each_service_does(
    account: Account, on: Callable[[BadDay], BadDay], service: str, call: str, status: int, code: str
) -> None:
    client = account.client(service)
    on(BadDay(every=2))
    getattr(client, call)()
    with pytest.raises(ClientError) as refused:
        getattr(client, call)()
    said = refused.value.response
    assert (said["ResponseMetadata"]["HTTPStatusCode"], said["Error"]["Code"]) == (status, code)


def test_another_region_has_a_good_day(account: Account, on: Callable[[BadDay], BadDay]) -> None:
    day = on(BadDay(every=1))
    assert account.client("ec2", "us-east-1").describe_instances()["Reservations"] == []
    assert not day.happened
