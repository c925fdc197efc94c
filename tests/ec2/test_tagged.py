"""What carries our tags in an account is found, told by cluster, with its price."""

from collections.abc import Iterator

import pytest

from tests.clusters import ID, cluster_ref
from tests.ec2.preparing import REGION
from tfdeploy.backends.ec2 import aws_api, aws_session, discover, machines, prices, record_bucket, shared_bucket

CLUSTER = cluster_ref("ec2", f"ec2://{REGION}/mnist-{ID}", "tagged")


@pytest.fixture
def made(moto_account: None) -> Iterator[None]:
    """A volume, a security group, a role and a record with our tags, and a volume of somebody else's."""
    ec2, iam = aws_session.client("ec2", REGION), aws_session.client("iam", REGION)
    own = [{"Key": key, "Value": value} for key, value in machines.tags(CLUSTER).items()]
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
    path = aws_api.role_path(f"mnist-{ID}")
    iam.create_role(RoleName="tagged", Path=path, AssumeRolePolicyDocument="{}")
    stored = record_bucket.bucket_of(CLUSTER)
    shared_bucket.create(stored)
    # moto is reached without TLS, which the policy refuses.
    aws_session.client("s3", REGION).delete_bucket_policy(Bucket=stored.name)
    shared_bucket.write_json(stored, record_bucket.TAGS, machines.tags(CLUSTER))
    yield
    record_bucket.retire(CLUSTER, keep=False)
    iam.delete_role(RoleName="tagged")
    ec2.delete_security_group(GroupId=group)
    for one in (volume, other):
        ec2.delete_volume(VolumeId=one)


@pytest.mark.usefixtures("made")
def test_what_carries_our_tags_is_told_by_cluster() -> None:
    (found,) = [one for one in discover.discover_clusters() if one.cluster["project"] == "tagged"]
    assert found.cluster == CLUSTER
    assert found.has == {"volume": 1, "group": 1, "role": 1, "record": 1}
    month = prices.price_table().rows["ebs gp3"][REGION]
    assert found.per_hour == pytest.approx(round(month * 10 / 720, 4))
    assert found.since > 0
    (again,) = [one for one in discover.discover_clusters(found.cluster["home"]) if one.cluster["project"] == "tagged"]
    assert again == found


@pytest.mark.usefixtures("made")
def test_the_record_of_a_destroyed_cluster_is_no_leftover() -> None:
    record_bucket.mark_ended(record_bucket.bucket_of(CLUSTER), "life")
    (found,) = [one for one in discover.discover_clusters() if one.cluster["project"] == "tagged"]
    assert found.has == {"volume": 1, "group": 1, "role": 1}
