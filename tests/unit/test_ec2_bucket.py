"""The bucket of a record: its name, what is asked of S3 (as moto answers it), and the copy that comes home."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from tests.box.policies import conditions
from tests.unit import fleets
from tfdeploy.backends.base import Cluster
from tfdeploy.backends.docker.mirror import Mirror
from tfdeploy.backends.ec2 import archive
from tfdeploy.ec2 import account, bucket
from tfdeploy.errors import BackendError, SpecError

CLUSTER: Cluster = {
    "backend": "ec2",
    "project": "Mnist_2",
    "stack": "dev",
    "name": "mnist",
    "home": "ec2://eu-west-1/Mnist_2/dev/mnist",
}


@pytest.fixture
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "unit")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "unit")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    account.client.cache_clear()
    bucket._account.cache_clear()
    with mock_aws(), conditions():
        yield boto3.client("s3", region_name="eu-west-1")
    account.client.cache_clear()
    bucket._account.cache_clear()


def written(s3: Any, at: float, files: dict[str, bytes], life: str = "a1") -> None:
    """What a machine puts there."""
    where = archive.of(CLUSTER)
    bucket.ensure(where, {})
    listed = {path: [len(data), hashlib.md5(data).hexdigest()] for path, data in files.items()}
    for path, data in files.items():
        s3.put_object(Bucket=where.name, Key=f"record/{life}/{path}", Body=data)
    text = json.dumps({"life": life, "run": "r", "verdict": None, "at": at, "files": listed})
    s3.put_object(Bucket=where.name, Key="record/current.json", Body=text)


def at_home() -> dict[str, str]:
    folder = Mirror(CLUSTER).folder
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_the_name_is_computed_and_keeps_the_rules_of_s3(s3: Any) -> None:
    name = archive.of(CLUSTER).name
    assert name == archive.of(CLUSTER).name
    assert name.startswith("tfdeploy-mnist-2-dev-mnist-")
    long = bucket.of("eu-west-1", "p" * 80, "dev", "mnist").name
    assert len(long) == 63
    assert long != bucket.of("eu-west-1", "p" * 80, "dev", "other").name
    assert name != bucket.of("us-west-2", "Mnist_2", "dev", "mnist").name


@pytest.mark.parametrize("region", ["us-east-1", "eu-west-1"])
def test_it_is_closed_and_taken_again(s3: Any, region: str) -> None:
    where = bucket.of(region, "project", "dev", "mnist")
    assert not bucket.stands(where)
    for _ in range(2):
        bucket.ensure(where, {"tfdeploy:cluster": "mnist"})
    assert bucket.stands(where)
    here = boto3.client("s3", region_name=region)
    assert all(here.get_public_access_block(Bucket=where.name)["PublicAccessBlockConfiguration"].values())
    assert "aws:SecureTransport" in here.get_bucket_policy(Bucket=where.name)["Policy"]
    assert here.get_bucket_tagging(Bucket=where.name)["TagSet"] == [{"Key": "tfdeploy:cluster", "Value": "mnist"}]


def test_the_copy_at_home_follows_what_is_newer(s3: Any) -> None:
    assert not archive.bring(CLUSTER)
    assert at_home() == {}
    written(s3, 100.0, {"life": b"a1", "runs/r/job.json": b"{}"})
    assert archive.bring(CLUSTER)
    assert at_home() == {"life": "a1", "runs/r/job.json": "{}", "alive": ""}
    assert Mirror(CLUSTER).record.last_alive() == 100.0
    written(s3, 90.0, {"life": b"a1"})
    assert not archive.bring(CLUSTER)
    assert "runs/r/job.json" in at_home()


def test_what_is_at_home_already_is_not_asked_for_again(s3: Any) -> None:
    written(s3, 100.0, {"life": b"a1", "runs/r/log": b"one"})
    archive.bring(CLUSTER)
    written(s3, 200.0, {"life": b"a1", "runs/r/log": b"one", "runs/r/more": b"two"})
    s3.delete_object(Bucket=archive.of(CLUSTER).name, Key="record/a1/runs/r/log")
    archive.bring(CLUSTER)
    assert at_home()["runs/r/log"] + at_home()["runs/r/more"] == "onetwo"


def test_a_log_that_has_grown_since_is_taken_as_far_as_the_manifest_goes(s3: Any) -> None:
    written(s3, 100.0, {"life": b"a1", "log": b"one"})
    s3.put_object(Bucket=archive.of(CLUSTER).name, Key="record/a1/log", Body=b"one, two")
    archive.bring(CLUSTER)
    assert at_home()["log"] == "one"


def test_the_record_of_another_life_puts_the_copy_by(s3: Any, tmp_path: Path) -> None:
    written(s3, 100.0, {"life": b"a1", "runs/r/job.json": b"{}"})
    archive.bring(CLUSTER)
    written(s3, 200.0, {"life": b"b2"}, "b2")
    archive.bring(CLUSTER)
    assert at_home() == {"life": "b2", "alive": ""}
    assert [path.parent.name for path in (tmp_path / "state").rglob("job.json")] == ["r"]


@pytest.mark.parametrize(
    ("text", "words"),
    [("nonsense", "is no manifest"), ("[]", "is no manifest"), ('{"life": "a1", "at": 1}', "is no manifest")],
)
def test_what_cannot_be_read_is_never_taken_for_nothing(s3: Any, text: str, words: str) -> None:
    written(s3, 100.0, {"life": b"a1"})
    s3.put_object(Bucket=archive.of(CLUSTER).name, Key="record/current.json", Body=text)
    with pytest.raises(BackendError, match=words):
        archive.bring(CLUSTER)


def test_a_missing_file_and_one_outside_are_refused(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written(s3, 100.0, {"life": b"a1", "log": b"one"})
    s3.delete_object(Bucket=archive.of(CLUSTER).name, Key="record/a1/log")
    monkeypatch.setattr(archive, "_PAUSE", 0.0)
    with pytest.raises(BackendError, match="log is not as the manifest has it"):
        archive.bring(CLUSTER)
    written(s3, 100.0, {"../log": b"one"})
    with pytest.raises(BackendError, match="no file of a record"):
        archive.bring(CLUSTER)


def test_what_is_written_anew_each_time_is_in_the_manifest(s3: Any) -> None:
    written(s3, 100.0, {"life": b"a1"})
    where, digest = archive.of(CLUSTER), hashlib.md5(b"{}").hexdigest()
    told = {"life": "a1", "at": 200.0, "files": {"life": [2, digest, "a1"], "runs/r/job.json": [2, digest, "{}"]}}
    s3.put_object(Bucket=where.name, Key="record/current.json", Body=json.dumps(told))
    archive.bring(CLUSTER)
    assert at_home() == {"life": "a1", "runs/r/job.json": "{}", "alive": ""}


def test_a_cluster_that_was_taken_away_elsewhere_is_no_longer_known_here(s3: Any) -> None:
    written(s3, 100.0, {"life": b"a1", "runs/r/job.json": b"{}"})
    archive.bring(CLUSTER)
    bucket.end(archive.of(CLUSTER), "a1")
    archive.bring(CLUSTER)
    assert at_home() == {}


def test_a_record_that_cannot_be_brought_is_that_of_an_earlier_life_all_the_same(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "_PAUSE", 0.0)
    written(s3, 100.0, {"life": b"a1", "log": b"one"})
    s3.delete_object(Bucket=archive.of(CLUSTER).name, Key="record/a1/log")
    said = archive.end(CLUSTER, keep=True)
    assert said.startswith("not all of the record could be brought here (")
    archive.bring(CLUSTER)


def test_a_record_that_may_not_be_read_is_an_error(s3: Any) -> None:
    written(s3, 100.0, {"life": b"a1"})
    where = archive.of(CLUSTER)
    denied = {"Effect": "Deny", "Principal": "*", "Action": "s3:GetObject", "Resource": f"{bucket.arn(where)}/*"}
    s3.put_bucket_policy(Bucket=where.name, Policy=json.dumps({"Version": "2012-10-17", "Statement": [denied]}))
    with pytest.raises(SpecError, match=f"s3://{where.name}: GetObject: "):
        archive.bring(CLUSTER)


def test_every_call_names_the_owner(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written(s3, 100.0, {"life": b"a1"})
    asked: list[dict[str, Any]] = []
    own = account.client("s3", "eu-west-1")
    own.meta.events.register("before-parameter-build.s3", lambda params, **_: asked.append(dict(params)))
    archive.bring(CLUSTER)
    archive.end(CLUSTER, keep=True)
    archive.end(CLUSTER, keep=False)
    assert {one["ExpectedBucketOwner"] for one in asked} == {archive.of(CLUSTER).owner}


def test_a_profile_of_the_users_must_give_the_right(s3: Any) -> None:
    assert archive.warnings(CLUSTER, fleets.spec(workers=1)) == []
    (text,) = archive.warnings(CLUSTER, fleets.spec(workers=1, instance_profile="mine"))
    assert text.startswith(
        f"instance_profile mine must allow s3:PutObject on {bucket.arn(archive.of(CLUSTER))}/record/*"
    )


def test_in_the_end_it_stays_as_an_earlier_life_or_goes(s3: Any) -> None:
    written(s3, 100.0, {"life": b"a1", "log": b"one"})
    where = archive.of(CLUSTER)
    assert archive.end(CLUSTER, keep=True) == f"its bucket is kept: s3://{where.name}"
    ended = bucket.manifest(where)
    assert ended is not None
    assert (ended.life, ended.ended) == ("a1", True)
    assert s3.get_object(Bucket=where.name, Key="record/a1/log")["Body"].read() == b"one"
    assert archive.end(CLUSTER, keep=True) == ""
    for _ in range(2):
        assert archive.end(CLUSTER, keep=False) == ""
    assert not bucket.stands(where)
