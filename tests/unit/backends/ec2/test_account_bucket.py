"""tfdeploy's bucket of an account and a region, and the folders of clusters in it (as moto answers)."""

import fnmatch
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.box.policies import conditions
from tests.clusters import ID, cluster_ref
from tests.unit.backends.ec2.moto_account import moto_account
from tfdeploy.backends.base import ClusterRef
from tfdeploy.backends.ec2 import account_bucket, discover, record_bucket, resources
from tfdeploy.backends.ec2.machine.machines import tags

REGION, ACCOUNT = "eu-west-1", "123456789012"
OTHER_ID = f"{ID[:-1]}e"


@pytest.fixture(autouse=True)
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with moto_account(tmp_path / "state", monkeypatch), conditions():
        yield boto3.client("s3", region_name=REGION)


def cluster(cluster_id: str, name: str = "mnist") -> ClusterRef:
    return cluster_ref("ec2", f"ec2://{REGION}/{name}-{cluster_id}", name=name, cluster_id=cluster_id)


def stored(cluster_id: str, name: str = "mnist") -> account_bucket.BucketFolder:
    """A cluster's folder with a record, as the resource and the machine create it."""
    ref = cluster(cluster_id, name)
    props = {"cluster": ref, "bucket": record_bucket.bucket_of(ref).name, "tags": tags(ref)}
    record_bucket.RecordBucketProvider().create(props)
    bucket = record_bucket.bucket_of(ref)
    account_bucket.write_json(bucket, record_bucket.MANIFEST, {"record_id": "a1", "at": 1.0, "files": {}})
    return bucket


def keys(s3: Any) -> set[str]:
    name = account_bucket.locate(REGION, "").name
    return {item["Key"] for item in s3.list_objects_v2(Bucket=name).get("Contents", [])}


def test_an_account_has_one_bucket_in_each_region_and_a_cluster_has_a_folder_in_it() -> None:
    first, second = (account_bucket.locate(REGION, f"mnist-{one}") for one in (ID, OTHER_ID))
    assert first.name == second.name == f"tfdeploy-{ACCOUNT}-{REGION}"
    assert (first.url, second.url) == (f"s3://{first.name}/mnist-{ID}", f"s3://{first.name}/mnist-{OTHER_ID}")
    assert account_bucket.locate("us-west-2", f"mnist-{ID}").name != first.name
    longest = max(boto3.session.Session().get_available_regions("s3", "aws"), key=len)
    assert len(account_bucket.locate(longest, "").name) <= 63


@pytest.mark.parametrize("region", ["us-east-1", REGION])
def test_it_is_private_tagged_and_created_once(region: str) -> None:
    bucket, here = account_bucket.locate(region, f"mnist-{ID}"), boto3.client("s3", region_name=region)
    assert not account_bucket.exists(bucket)
    for _ in range(2):
        account_bucket.create(bucket)
    assert account_bucket.exists(bucket)
    assert all(here.get_public_access_block(Bucket=bucket.name)["PublicAccessBlockConfiguration"].values())
    assert "aws:SecureTransport" in here.get_bucket_policy(Bucket=bucket.name)["Policy"]
    assert here.get_bucket_tagging(Bucket=bucket.name)["TagSet"] == [{"Key": "tfdeploy:purpose", "Value": "records"}]


def test_what_the_account_has_set_stays_and_what_is_missing_is_set_again(s3: Any) -> None:
    bucket = account_bucket.locate(REGION, f"mnist-{ID}")
    account_bucket.create(bucket)
    own = {"Key": "team", "Value": "vision"}
    s3.put_bucket_tagging(Bucket=bucket.name, Tagging={"TagSet": [own]})
    denied = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:DeleteBucket",
        "Resource": f"arn:aws:s3:::{bucket.name}",
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [denied]})
    s3.put_bucket_policy(Bucket=bucket.name, Policy=policy)
    s3.delete_public_access_block(Bucket=bucket.name)
    account_bucket.create(bucket)
    found = s3.get_bucket_tagging(Bucket=bucket.name)["TagSet"]
    assert sorted(tag["Key"] for tag in found) == ["team", "tfdeploy:purpose"]
    assert s3.get_bucket_policy(Bucket=bucket.name)["Policy"] == policy
    assert all(s3.get_public_access_block(Bucket=bucket.name)["PublicAccessBlockConfiguration"].values())


def test_removing_one_clusters_record_leaves_all_others(s3: Any) -> None:
    stored(ID)
    others = stored(OTHER_ID), stored(ID, "mnist-2"), stored(f"{ID}e")
    mine = {key for key in keys(s3) if key.startswith(f"mnist-{ID}/")}
    before = keys(s3) - mine
    assert len(mine) == 2
    assert record_bucket.retire(cluster(ID), keep=False) == ""
    assert keys(s3) == before
    assert all(record_bucket.read_manifest(other) for other in others)
    assert record_bucket.retire(cluster(OTHER_ID), keep=True) == f"the record is retained: {others[0].url}"
    assert keys(s3) == before
    record_bucket.retire(cluster(""), keep=False)
    assert keys(s3) == before, "a cluster without an id has nothing"


def test_the_machines_may_write_their_own_clusters_record_alone() -> None:
    mine, other = (record_bucket.bucket_of(cluster(one)) for one in (ID, OTHER_ID))
    (statement,) = json.loads(resources.put_record(mine))["Statement"]
    assert statement["Action"] == "s3:PutObject"
    assert statement["Condition"] == {"StringEquals": {"s3:ResourceAccount": ACCOUNT}}

    def allowed(bucket: account_bucket.BucketFolder, path: str) -> bool:
        key = f"arn:aws:s3:::{bucket.name}/{bucket.folder}/{path}"
        return fnmatch.fnmatchcase(key, statement["Resource"])

    assert allowed(mine, "record/current.json")
    assert not allowed(mine, "cluster.json"), "what decides whose the folder is"
    assert not allowed(other, "record/current.json")
    assert not allowed(record_bucket.bucket_of(cluster(f"{ID}e")), "record/current.json")


def records() -> dict[str, discover.TaggedResource]:
    found = [one for one in discover.tagged_resources(REGION) if one.kind == "record"]
    return {one.labels["tfdeploy:cluster-id"]: one for one in found}


def test_each_folder_is_found_as_that_of_its_cluster(s3: Any) -> None:
    assert records() == {}
    stored(ID)
    record_bucket.mark_ended(stored(OTHER_ID), "a1")
    name = record_bucket.bucket_of(cluster(ID)).name
    s3.put_object(Bucket=name, Key="somebody-else/notes", Body=b"")
    s3.put_object(Bucket=name, Key=f"copy-{ID}/cluster.json", Body=json.dumps(tags(cluster(ID))).encode())
    found = records()
    assert found.keys() == {ID}, "the record of a destroyed cluster is not part of a cluster"
    assert found[ID].labels == tags(cluster(ID))
    assert found[ID].created > 0


def test_a_renamed_stack_changes_the_tags_in_the_folder() -> None:
    bucket = stored(ID)
    ref = cluster(ID)
    old = {"cluster": ref, "bucket": bucket.name, "tags": tags(ref)}
    renamed: ClusterRef = {**ref, "stack": "prod"}
    new = {"cluster": renamed, "bucket": bucket.name, "tags": tags(renamed)}
    provider = record_bucket.RecordBucketProvider()
    diff = provider.diff(bucket.name, old, new)
    assert (diff.changes, diff.replaces) == (True, [])
    provider.update(bucket.name, old, new)
    assert record_bucket.read_tags(bucket)["tfdeploy:stack"] == "prod"
    assert record_bucket.read_manifest(bucket) is not None
