"""What an account cannot give is refused before anything is made in it."""

from pathlib import Path
from typing import Any

import pytest

from tests.ec2.preparing import EMPTY, REGION, prepare, refusal
from tfdeploy.ec2 import account

pytestmark = pytest.mark.usefixtures("moto_account")


def test_a_subnet_in_a_zone_that_lacks_the_type_is_refused(tmp_path: Path) -> None:
    lacks = next(one for one in account.subnets(REGION, "", "") if one.zone == "us-east-2c")
    assert refusal(tmp_path, subnet_id=lacks.subnet_id, jobs={"worker": {"instance_type": "c5ad.large"}}) == (
        "mnist: subnet_id: c5ad.large, m7i.large all together are offered in us-east-2a, us-east-2b; "
        "the subnets are in us-east-2c. Choose other types, or a subnet of another zone."
    )
    assert prepare(tmp_path, jobs={"worker": {"instance_type": "c5ad.large"}}) == []


def test_a_region_without_a_default_vpc_is_refused(tmp_path: Path) -> None:
    ec2 = account.client("ec2", EMPTY)
    for vpc in ec2.describe_vpcs()["Vpcs"]:
        for subnet in account.subnets(EMPTY, vpc["VpcId"], ""):
            ec2.delete_subnet(SubnetId=subnet.subnet_id)
        ec2.delete_vpc(VpcId=vpc["VpcId"])
    assert refusal(tmp_path, region=EMPTY) == (
        "vpc_id: eu-north-1 has no default VPC. "
        "Name a subnet of yours by subnet_id, or run `aws ec2 create-default-vpc`."
    )


def test_nobody_who_is_logged_in_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    assert refusal(tmp_path) == (
        "AWS: no credentials were found (Unable to locate credentials). "
        "Run `aws configure`, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
    )


def test_a_region_that_nobody_names_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION")
    said = "region: is not given. Run `pulumi config set aws:region us-west-2`, or set AWS_REGION."
    assert refusal(tmp_path) == said


@pytest.mark.parametrize("name", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_the_region_is_the_one_that_the_aws_command_would_take(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.setenv(name, EMPTY)
    assert account.default_region() == EMPTY


def test_a_key_that_is_missing_or_private_is_refused(tmp_path: Path) -> None:
    said = f"mnist: ssh_key: there is no file {tmp_path}/none.pub. Name the file of your public key."
    assert refusal(tmp_path, ssh_key=f"{tmp_path}/none.pub") == said
    (tmp_path / "key").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    assert refusal(tmp_path, ssh_key=f"{tmp_path}/key") == (
        f"mnist: ssh_key: {tmp_path}/key holds a private key. "
        "Name the file of an ed25519 or RSA public key; it ends with .pub."
    )


def test_an_image_for_another_processor_is_refused(tmp_path: Path) -> None:
    images = account.client("ec2", REGION).describe_images()["Images"]
    arm = next(one["ImageId"] for one in images if one["Architecture"] == "arm64")
    assert refusal(tmp_path, ami=arm) == (
        f"ami: {arm} is for arm64, the type of machine for x86_64. Choose another image, or another type."
    )
    assert prepare(tmp_path, ami=arm, instance_type="m7g.large") == []


WITH_GPUS: dict[str, Any] = {"jobs": {"worker": {"instance_type": "g6.xlarge", "gpus": 1}}}


@pytest.mark.parametrize(("spot", "code"), [(False, "L-DB2E81BA"), (True, "L-3819A6DF")])
def test_more_gpu_machines_than_the_account_may_have_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spot: bool, code: str
) -> None:
    asked: list[str] = []

    def quota(region: str, wanted: str) -> float:
        asked.append(wanted)
        return 4.0

    monkeypatch.setattr(account, "quota", quota)
    jobs = {"worker": {**WITH_GPUS["jobs"]["worker"], "spot": spot}}
    assert refusal(tmp_path, jobs=jobs) == (
        f"mnist: instance_type: the machines with GPUs have 8 vCPUs, and the account may have 4 ({code}). "
        "Ask for more in AWS's Service Quotas, or for fewer machines."
    )
    assert asked == [code]
    assert prepare(tmp_path, jobs=jobs, workers=1) == []


def test_a_quota_that_aws_does_not_tell_refuses_nothing(tmp_path: Path) -> None:
    assert account.quota(REGION, "L-DB2E81BA") is None
    assert prepare(tmp_path, **WITH_GPUS) == []


def test_parameter_servers_on_spot_instances_are_warned_of(tmp_path: Path) -> None:
    lost = "ps on spot instances: when one is taken away, the variables on it are gone until it is back"
    assert prepare(tmp_path, jobs={"ps": {"spot": True}}) == [lost]
    assert prepare(tmp_path, jobs={"worker": {"spot": True}}) == []
