"""What has our tags in an account is found, told by cluster, with its price."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.backends.ec2.fleets import CLUSTER
from tests.unit.backends.ec2.moto_account import moto_account
from tests.unit.backends.ec2.s3 import REGION
from tfdeploy.backends.ec2 import costs, discover, record_bucket
from tfdeploy.backends.ec2.aws import account
from tfdeploy.backends.ec2.machine import machines, model


@pytest.fixture(autouse=True)
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_REGION", REGION)
    with moto_account(tmp_path, monkeypatch):
        yield


def test_what_carries_our_tags_is_told_by_cluster() -> None:
    """A volume, a security group, a role and a record with our tags; another volume has our words but no cluster's id."""
    ec2, iam = account.client("ec2", REGION), account.client("iam", REGION)
    own = [{"Key": key, "Value": value} for key, value in machines.tags(CLUSTER).items()]
    others = [tag for tag in own if tag["Key"] != model.CLUSTER_ID]
    for size, tags in ((10, own), (1, others)):
        tagged = [{"ResourceType": "volume", "Tags": tags}]
        ec2.create_volume(AvailabilityZone=f"{REGION}a", Size=size, VolumeType="gp3", TagSpecifications=tagged)
    tagged = [{"ResourceType": "security-group", "Tags": own}]
    ec2.create_security_group(GroupName="tagged", Description="x", TagSpecifications=tagged)
    iam.create_role(RoleName="tagged", Path=machines.role_path(CLUSTER), AssumeRolePolicyDocument="{}")
    stored = record_bucket.bucket_of(CLUSTER)
    record_bucket.create(stored)
    # moto is reached without TLS, which the policy refuses.
    account.client("s3", REGION).delete_bucket_policy(Bucket=stored.name)
    record_bucket.write_json(stored, record_bucket.TAGS, machines.tags(CLUSTER))
    (found,) = discover.discover_clusters()
    assert found.cluster == CLUSTER
    assert found.has == {"volume": 1, "group": 1, "role": 1, "record": 1}
    month = costs.price_table().rows["ebs gp3"][REGION]
    assert found.per_hour == pytest.approx(round(month * 10 / 720, 4))
    assert found.since > 0
    assert discover.discover_clusters(found.cluster["home"]) == [found]


def test_a_cluster_exists_since_its_oldest_thing_and_has_no_price_if_one_is_unknown() -> None:
    tags = machines.tags(CLUSTER)
    machine = discover.TaggedResource("instance", tags, 5.0, costs.Amount(0.1))
    for amount, per_hour in ((costs.Amount(0.02), 0.12), (costs.Amount(unknown=("x",)), None)):
        (found,) = discover.grouped(REGION, [machine, discover.TaggedResource("volume", tags, 4.0, amount)])
        assert found.cluster == CLUSTER
        assert (found.has, found.since, found.per_hour) == ({"instance": 1, "volume": 1}, 4.0, per_hour)
