"""What an account cannot give is refused before anything is made in it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest

from tests.clusters import ID, cluster_ref
from tests.ec2.preparing import ARGS, EMPTY, REGION, prepare, refusal
from tests.unit.cases import spec
from tfdeploy.backends.ec2.aws import account, api
from tfdeploy.backends.ec2.machine import machines, ssh
from tfdeploy.errors import SpecError

pytestmark = pytest.mark.usefixtures("moto_account")


def test_a_subnet_in_a_zone_that_lacks_the_type_is_refused(tmp_path: Path) -> None:
    lacks = next(one for one in api.subnets(REGION, "", "") if one.zone == "us-east-2c")
    assert refusal(
        tmp_path, ec2={"subnet_id": lacks.subnet_id}, jobs={"worker": {"ec2": {"instance_type": "c5ad.large"}}}
    ) == (
        "mnist: ec2.subnet_id: c5ad.large, m7i.large are all available in us-east-2a, us-east-2b, "
        "but the subnets are in: us-east-2c. Choose other types, or a subnet in another zone."
    )
    assert prepare(tmp_path, jobs={"worker": {"ec2": {"instance_type": "c5ad.large"}}}) == []


@pytest.fixture
def volumes() -> Iterator[dict[str, str]]:
    """Zone to a volume of the user's there."""
    ec2 = account.client("ec2", REGION)
    zones = ("us-east-2a", "us-east-2b")
    found = {zone: ec2.create_volume(AvailabilityZone=zone, Size=1)["VolumeId"] for zone in zones}
    yield found
    for volume in found.values():
        ec2.delete_volume(VolumeId=volume)


def with_volumes(*names: str) -> dict[str, Any]:
    return {"workers": 1, "jobs": {"worker": {"ec2": {"ebs_volumes": [f"{name}:/{name}" for name in names]}}}}


def test_a_volume_of_yours_chooses_the_zone(tmp_path: Path, volumes: dict[str, str]) -> None:
    asked = spec(**{**ARGS, **with_volumes(volumes["us-east-2b"])})
    known = machines.take_inventory(cluster_ref("ec2", ssh.home(account.connect(asked, None), f"mnist-{ID}")), asked)
    assert known.subnet.zone == "us-east-2b"


def test_a_subnet_in_another_zone_than_its_volume_is_refused(tmp_path: Path, volumes: dict[str, str]) -> None:
    far, near = (
        next(one.subnet_id for one in api.subnets(REGION, "", "") if one.zone == zone)
        for zone in ("us-east-2a", "us-east-2b")
    )
    volume = volumes["us-east-2b"]
    assert refusal(tmp_path, ec2={"subnet_id": far}, **with_volumes(volume)) == (
        f"mnist: ec2.ebs_volumes: {volume} is in us-east-2b, but the subnets are in: us-east-2a. "
        "Choose a subnet in us-east-2b, or another volume."
    )
    assert prepare(tmp_path, ec2={"subnet_id": near}, **with_volumes(volume)) == []


def test_volumes_in_two_zones_are_refused(tmp_path: Path, volumes: dict[str, str]) -> None:
    one, other = volumes.values()
    assert refusal(tmp_path, **with_volumes(one, other)) == (
        f"mnist: ec2.ebs_volumes: {one} is in us-east-2a, {other} is in us-east-2b, "
        "but all machines of a cluster are in one zone. Choose volumes of one zone."
    )


def test_a_volume_that_another_machine_has_is_refused(tmp_path: Path) -> None:
    answers = Mock()
    volume = {"AvailabilityZone": "us-east-2a", "Attachments": [{"InstanceId": "i-0a"}]}
    answers.describe_volumes.return_value = {"Volumes": [volume]}
    asked = (REGION, "mnist: ec2.ebs_volumes", ["vol-0a1b2c3d"])
    with patch.object(account, "client", return_value=answers):
        assert api.volume_zone(*asked, ["i-0a"]) == "us-east-2a"
        with pytest.raises(SpecError) as error:
            api.volume_zone(*asked, ["i-0b"])
    assert str(error.value) == (
        "mnist: ec2.ebs_volumes: vol-0a1b2c3d is attached to i-0a. Detach it, or choose another volume."
    )


def test_a_region_without_a_default_vpc_is_refused(tmp_path: Path) -> None:
    ec2 = account.client("ec2", EMPTY)
    for vpc in ec2.describe_vpcs()["Vpcs"]:
        for subnet in api.subnets(EMPTY, vpc["VpcId"], ""):
            ec2.delete_subnet(SubnetId=subnet.subnet_id)
        ec2.delete_vpc(VpcId=vpc["VpcId"])
    assert refusal(tmp_path, ec2={"region": EMPTY}) == (
        "ec2.vpc_id: eu-north-1 has no default VPC. "
        "Set subnet_id to one of your subnets, or run `aws ec2 create-default-vpc`."
    )


def test_an_image_for_another_processor_is_refused(tmp_path: Path) -> None:
    filters = [{"Name": "architecture", "Values": ["arm64"]}]
    arm = account.client("ec2", REGION).describe_images(Filters=filters)["Images"][0]["ImageId"]
    assert refusal(tmp_path, ec2={"ami": arm}) == (
        f"ec2.ami: {arm} is an image for arm64, but the instance type is x86_64. Choose another image or another instance_type."
    )
    assert prepare(tmp_path, ec2={"ami": arm, "instance_type": "m7g.large"}) == []


@pytest.mark.parametrize(("spot", "code"), [(False, "L-DB2E81BA"), (True, "L-3819A6DF")])
def test_more_gpu_machines_than_the_account_may_have_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spot: bool, code: str
) -> None:
    asked: list[str] = []

    def quota(region: str, wanted: str) -> float:
        asked.append(wanted)
        return 4.0

    monkeypatch.setattr(api, "quota", quota)
    jobs = {"worker": {"gpus": 1, "ec2": {"instance_type": "g6.xlarge", "spot": spot}}}
    assert refusal(tmp_path, jobs=jobs) == (
        f"mnist: ec2.instance_type: the machines with GPUs have 8 vCPUs, but the quota of the account is 4 ({code}). "
        "Request an increase in AWS Service Quotas, or use fewer machines."
    )
    assert asked == [code]
    assert prepare(tmp_path, jobs=jobs, workers=1) == []


def test_parameter_servers_on_spot_instances_are_warned_of(tmp_path: Path) -> None:
    lost = "ps tasks run on spot instances: an interruption loses their variables until the machine is replaced"
    assert prepare(tmp_path, jobs={"ps": {"ec2": {"spot": True}}}) == [lost]
    assert prepare(tmp_path, jobs={"worker": {"ec2": {"spot": True}}}) == prepare(tmp_path, ec2={"spot": True}) == []
