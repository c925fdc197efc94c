"""What carries our tags in an account is found, told by cluster, with its price."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clusters import ID, cluster_ref
from tests.unit.backends.ec2.moto_account import moto_account
from tfdeploy.backends.ec2 import costs, discover, record_bucket
from tfdeploy.backends.ec2.aws import account
from tfdeploy.backends.ec2.machine import machines, model

REGION = "eu-west-1"
CLUSTER = cluster_ref("ec2", f"ec2://{REGION}/mnist-{ID}", "tagged")


@pytest.fixture(autouse=True)
def _account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A volume, a security group, a role and a record with our tags, and a volume that has our words but no cluster's id."""
    monkeypatch.setenv("AWS_REGION", REGION)
    with moto_account(tmp_path, monkeypatch):
        ec2, iam = account.client("ec2", REGION), account.client("iam", REGION)
        own = [{"Key": key, "Value": value} for key, value in machines.tags(CLUSTER).items()]
        others = [tag for tag in own if tag["Key"] != model.CLUSTER_ID]
        for size, tags in ((10, own), (1, others)):
            tagged = [{"ResourceType": "volume", "Tags": tags}]
            zone = f"{REGION}a"
            ec2.create_volume(AvailabilityZone=zone, Size=size, VolumeType="gp3", TagSpecifications=tagged)
        tagged = [{"ResourceType": "security-group", "Tags": own}]
        ec2.create_security_group(GroupName="tagged", Description="x", TagSpecifications=tagged)
        path = machines.role_path(CLUSTER)
        iam.create_role(RoleName="tagged", Path=path, AssumeRolePolicyDocument="{}")
        stored = record_bucket.bucket_of(CLUSTER)
        record_bucket.create(stored)
        # moto is reached without TLS, which the policy refuses.
        account.client("s3", REGION).delete_bucket_policy(Bucket=stored.name)
        record_bucket.write_json(stored, record_bucket.TAGS, machines.tags(CLUSTER))
        yield


def test_what_carries_our_tags_is_told_by_cluster() -> None:
    (found,) = discover.discover_clusters()
    assert found.cluster == CLUSTER
    assert found.has == {"volume": 1, "group": 1, "role": 1, "record": 1}
    month = costs.price_table().rows["ebs gp3"][REGION]
    assert found.per_hour == pytest.approx(round(month * 10 / 720, 4))
    assert found.since > 0
    assert discover.discover_clusters(found.cluster["home"]) == [found]
