"""What carries our tags in an account is found, told by cluster, with its price."""

from collections.abc import Iterator

import pytest

from tests.ec2.preparing import REGION
from tfdeploy.backends.base import Cluster
from tfdeploy.backends.ec2 import fleet, search
from tfdeploy.ec2 import account, bucket, prices, roles

CLUSTER: Cluster = {
    "backend": "ec2",
    "project": "tagged",
    "stack": "dev",
    "name": "mnist",
    "home": f"ec2://{REGION}/x/y/z",
}


@pytest.fixture
def made(moto_account: None) -> Iterator[None]:
    """A volume, a security group, a role and a bucket with our tags, and a volume of somebody else's."""
    ec2, iam = account.client("ec2", REGION), account.client("iam", REGION)
    own = [{"Key": key, "Value": value} for key, value in fleet.tags(CLUSTER).items()]
    volume = ec2.create_volume(
        AvailabilityZone=f"{REGION}a",
        Size=10,
        VolumeType="gp3",
        TagSpecifications=[{"ResourceType": "volume", "Tags": own}],
    )["VolumeId"]
    other = ec2.create_volume(AvailabilityZone=f"{REGION}a", Size=1)["VolumeId"]
    group = ec2.create_security_group(
        GroupName="tagged", Description="x", TagSpecifications=[{"ResourceType": "security-group", "Tags": own}]
    )["GroupId"]
    path = roles.path("tagged", "dev", "mnist")
    iam.create_role(RoleName="tagged", Path=path, AssumeRolePolicyDocument="{}")
    kept = bucket.of(REGION, "tagged", "dev", "mnist")
    bucket.ensure(kept, fleet.tags(CLUSTER))
    # moto is reached without TLS, which the policy refuses.
    account.client("s3", REGION).delete_bucket_policy(Bucket=kept.name)
    yield
    bucket.remove(kept)
    iam.delete_role(RoleName="tagged")
    ec2.delete_security_group(GroupId=group)
    for one in (volume, other):
        ec2.delete_volume(VolumeId=one)


@pytest.mark.usefixtures("made")
def test_what_carries_our_tags_is_told_by_cluster() -> None:
    (found,) = [one for one in search.found() if one.cluster["project"] == "tagged"]
    assert found.cluster == {**CLUSTER, "home": f"ec2://{REGION}/tagged/dev/mnist"}
    assert found.has == {"volume": 1, "group": 1, "role": 1, "bucket": 1}
    month = prices.table().rows["ebs gp3"][REGION]
    assert found.per_hour == pytest.approx(round(month * 10 / 720, 4))
    assert found.since > 0
    (again,) = [one for one in search.found(found.cluster["home"]) if one.cluster["project"] == "tagged"]
    assert again == found


@pytest.mark.usefixtures("made")
def test_a_bucket_that_keeps_a_destroyed_clusters_record_is_no_leftover() -> None:
    bucket.end(bucket.of(REGION, "tagged", "dev", "mnist"), "life")
    (found,) = [one for one in search.found() if one.cluster["project"] == "tagged"]
    assert found.has == {"volume": 1, "group": 1, "role": 1}
