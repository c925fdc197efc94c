"""tfdeploy's bucket, the record in a cluster's folder in it (as moto answers), and the copy that comes home."""

import fnmatch
import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.box.policies import conditions
from tests.clusters import ID, cluster_ref
from tests.unit.backends.ec2 import fleets
from tests.unit.backends.ec2.moto_account import moto_account
from tests.unit.backends.ec2.watchdog.sending import TEXTS
from tfdeploy.agent.model.run_spec import RunSpec, TaskSpec
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.agent.record.artifact_manifest import ArtifactList, ManifestArtifact, ManifestFile, stored_artifacts
from tfdeploy.agent.record.record import FORMAT, RecordFormatError
from tfdeploy.backends.base import ClusterRef
from tfdeploy.backends.ec2 import discover, record_bucket, resources
from tfdeploy.backends.ec2.aws import account
from tfdeploy.backends.ec2.machine.machines import tags
from tfdeploy.backends.ec2.record_bucket import RecordBucketProvider
from tfdeploy.backends.ec2.watchdog.record_upload import part_name
from tfdeploy.backends.record_copy import RecordCopy
from tfdeploy.errors import BackendError

CLUSTER = cluster_ref("ec2", f"ec2://eu-west-1/Mnist-2-{ID}", name="Mnist-2")
FOLDER = f"Mnist-2-{ID}"
MANIFEST = f"{FOLDER}/record/current.json"
REGION, ACCOUNT = "eu-west-1", "123456789012"
OTHER_ID = f"{ID[:-1]}e"


@pytest.fixture(autouse=True)
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with moto_account(tmp_path / "state", monkeypatch), conditions():
        yield boto3.client("s3", region_name="eu-west-1")


RUN, STATE = "runs/r", "runs/r/run_state.json"
EMPTY = '{"spec": {"id": "r", "tasks": []}, "tasks": {}}'
LOG = f"{RUN}/logs/worker-0/0.log"


def written(s3: Any, at: float, files: dict[str, bytes], life: str = "a1", part: int = 0, run: str = "r") -> None:
    """What a machine puts there."""
    where = record_bucket.bucket_of(CLUSTER)
    record_bucket.create(where)
    files = {"record_id": life.encode(), **files}
    listed = {
        path: [
            len(data),
            hashlib.sha256(data).hexdigest(),
            *([data.decode()] if path.rpartition("/")[2] in TEXTS else []),
        ]
        for path, data in files.items()
    }
    for path, data in files.items():
        for number in range(-(-len(data) // part) if part else 1):
            content = data[number * part :][:part] if part else data
            key = f"{where.folder}/record/{life}/{part_name(path, number)}"
            s3.put_object(Bucket=where.name, Key=key, Body=content)
    text = json.dumps({"record_id": life, "run": run, "result": None, "at": at, "part": part, "files": listed})
    s3.put_object(Bucket=where.name, Key=MANIFEST, Body=text)


def written_run(s3: Any, at: float, run_id: str) -> None:
    run = RunState(RunSpec(run_id, [TaskSpec("worker-0", "worker", 0)], {}, success="worker-0"), 1.0)
    texts = {"format": FORMAT, "current": run_id, f"runs/{run_id}/run_state.json": json.dumps(run.to_dict())}
    written(s3, at, {path: text.encode() for path, text in texts.items()}, run=run_id)


def at_home() -> dict[str, str]:
    folder = RecordCopy(CLUSTER).folder
    names = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_text() for name, path in names.items() if name not in ("format", f"{RUN}/run_state.copy")}


def test_the_copy_at_home_follows_what_is_newer(s3: Any) -> None:
    assert not record_bucket.download(CLUSTER)
    assert at_home() == {}
    written(s3, 100.0, {STATE: EMPTY.encode(), LOG: b"one"})
    assert record_bucket.download(CLUSTER)
    assert at_home() == {"record_id": "a1", STATE: EMPTY, LOG: "one", "alive": ""}
    assert RecordCopy(CLUSTER).record.last_alive() == 100.0
    written(s3, 90.0, {})
    assert not record_bucket.download(CLUSTER)
    assert STATE in at_home()


def test_a_record_of_another_version_is_refused(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written_run(s3, 100.0, "first")
    monkeypatch.setattr(record_bucket, "FORMAT", "99")
    with pytest.raises(RecordFormatError, match="its record has format 4, and this version reads"):
        record_bucket.stored_run(CLUSTER)


def test_the_current_run_is_read_without_a_copy(s3: Any, tmp_path: Path) -> None:
    assert record_bucket.stored_run(CLUSTER).run_state is None
    written_run(s3, 100.0, "first")
    at, run = record_bucket.stored_run(CLUSTER)
    assert run is not None
    assert (at, run.spec.id) == (100.0, "first")
    assert not (tmp_path / "state").exists(), "a preview leaves nothing behind"
    record_bucket.download(CLUSTER)
    written_run(s3, 90.0, "older")
    at, run = record_bucket.stored_run(CLUSTER)
    assert run is not None
    assert (at, run.spec.id) == (100.0, "first"), "the copy is newer"
    record_bucket.mark_ended(record_bucket.bucket_of(CLUSTER), "b2")
    assert record_bucket.stored_run(CLUSTER).run_state is not None, "another cluster was destroyed"
    record_bucket.mark_ended(record_bucket.bucket_of(CLUSTER), "a1")
    assert record_bucket.stored_run(CLUSTER).run_state is None


def test_the_bucket_replaces_nothing_that_only_this_computer_has(s3: Any) -> None:
    """The manager was lost while it uploaded a newer checkpoint, and before it uploaded the last lines."""

    def listed(step: int) -> bytes:
        files = [ManifestFile(name, 1, str(step)) for name in (f"c-{step}.index", "checkpoint")]
        return json.dumps(ArtifactList([ManifestArtifact("checkpoint", f"c-{step}", "m", 0, files)]).to_dict()).encode()

    artifacts, removed = f"{RUN}/artifacts", f"{RUN}/logs/worker-1/0.log"
    first = {f"{artifacts}.json": listed(5), f"{artifacts}/c-5.index": b"5", f"{artifacts}/checkpoint": b"5"}
    lines = {LOG: b"one\ntwo\n", f"{RUN}/events.jsonl": b"{}\n{}\n", "runs/earlier/events.jsonl": b"{}"}
    written(s3, 100.0, {**first, **lines, removed: b"removed\n"})
    record_bucket.download(CLUSTER)
    partial = {f"{artifacts}.json": listed(9), f"{artifacts}/checkpoint": b"9", LOG: b"one\n"}
    written(s3, 200.0, {**partial, f"{RUN}/events.jsonl": b"{}\n{}\n{}\n"})
    record_bucket.download(CLUSTER)
    home = at_home()
    assert (home[f"{artifacts}/c-5.index"], home[f"{artifacts}/checkpoint"]) == ("5", "5")
    rows, _ = stored_artifacts(RecordCopy(CLUSTER).folder / RUN)
    assert [(row.name, row.is_complete) for row in rows] == [("c-5", True), ("c-9", False)]
    assert (home[LOG], home[removed]) == ("one\ntwo\n", "removed\n")
    assert home[f"{RUN}/events.jsonl"] == "{}\n{}\n{}\n"
    assert "runs/earlier/events.jsonl" in home


@pytest.mark.parametrize("is_there", [False, True])
def test_a_missing_file_is_an_error_and_one_outside_is_ignored(
    s3: Any, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    written(s3, 100.0, {LOG: b"one", STATE: EMPTY.encode(), "../log": b"one", "lock": b"one", "runs/r/../../x": b"one"})
    place = {"Bucket": record_bucket.bucket_of(CLUSTER).name, "Key": f"{FOLDER}/record/a1/{LOG}"}
    s3.put_object(**place, Body=b"") if is_there else s3.delete_object(**place)
    monkeypatch.setattr(record_bucket, "_PAUSE", 0.0)
    with pytest.raises(record_bucket.RecordIncomplete, match=f"{LOG} differs from the manifest"):
        record_bucket.download(CLUSTER)
    assert RecordCopy(CLUSTER).record.last_alive() == 0.0, "the next call tries again"
    assert at_home() == {"record_id": "a1", STATE: EMPTY}, "what is whole is used where the manager is gone"


@pytest.mark.parametrize("text", ["nonsense", "[]", '{"record_id": "a1", "at": 1}'])
def test_what_cannot_be_read_is_never_taken_for_nothing(s3: Any, text: str) -> None:
    written(s3, 100.0, {})
    s3.put_object(Bucket=record_bucket.bucket_of(CLUSTER).name, Key=MANIFEST, Body=text)
    with pytest.raises(BackendError, match="is not a valid manifest"):
        record_bucket.download(CLUSTER)


def test_every_call_names_the_owner(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written(s3, 100.0, {})
    asked: list[dict[str, Any]] = []
    own = account.client("s3", "eu-west-1")
    own.meta.events.register("before-parameter-build.s3", lambda params, **_: asked.append(dict(params)))
    record_bucket.download(CLUSTER)
    record_bucket.retire(CLUSTER, keep=True)
    record_bucket.retire(CLUSTER, keep=False)
    assert {one["ExpectedBucketOwner"] for one in asked} == {record_bucket.bucket_of(CLUSTER).owner}


def test_a_profile_of_the_users_must_give_the_right(s3: Any) -> None:
    assert record_bucket.warnings(CLUSTER, fleets.spec(workers=1)) == []
    (text,) = record_bucket.warnings(CLUSTER, fleets.spec(workers=1, ec2={"instance_profile": "mine"}))
    assert text.startswith(
        f"instance_profile mine must allow s3:PutObject on {record_bucket.bucket_of(CLUSTER).arn}record/*"
    )


def test_in_the_end_it_stays_as_an_earlier_life_or_goes(s3: Any) -> None:
    written(s3, 100.0, {LOG: b"one"})
    where = record_bucket.bucket_of(CLUSTER)
    assert record_bucket.retire(CLUSTER, keep=True) == f"the record is retained: {where.url}"
    ended = record_bucket.read_manifest(where)
    assert ended is not None
    assert (ended.record.record_id, ended.ended) == ("a1", True)
    assert s3.get_object(Bucket=where.name, Key=f"{FOLDER}/record/a1/{LOG}")["Body"].read() == b"one"
    assert record_bucket.retire(CLUSTER, keep=True) == ""
    for _ in range(2):
        assert record_bucket.retire(CLUSTER, keep=False) == ""
    assert "Contents" not in s3.list_objects_v2(Bucket=where.name, Prefix=f"{FOLDER}/")
    assert record_bucket.exists(where), "other clusters use it"


def is_gone() -> bool:
    """Whether `pulumi up --refresh` makes the folder again."""
    return not RecordBucketProvider().read("bucket", {"cluster": CLUSTER}).id


def test_what_was_deleted_of_the_record_is_missing(s3: Any) -> None:
    written(s3, 100.0, {STATE: EMPTY.encode(), LOG: b"one line"}, part=4)
    where = record_bucket.bucket_of(CLUSTER)
    record_bucket.write_json(where, record_bucket.TAGS, {})
    assert record_bucket.missing(CLUSTER) == ""
    assert not is_gone()
    s3.delete_object(Bucket=where.name, Key=f"{FOLDER}/record/a1/{LOG}")
    assert record_bucket.missing(CLUSTER).startswith("1 of the files")
    assert is_gone()
    record_bucket.delete_folder(where)
    assert record_bucket.missing(CLUSTER) == f"{where.url}/record/current.json does not exist"
    s3.delete_bucket(Bucket=where.name)
    assert record_bucket.missing(CLUSTER) == f"{where.url}/record/current.json does not exist"
    assert is_gone()


@pytest.mark.parametrize(("age", "words"), [(60.0, ""), (700.0, "does not exist")])
def test_a_record_that_is_not_uploaded_yet_is_not_missing(s3: Any, age: float, words: str) -> None:
    where = record_bucket.bucket_of(CLUSTER)
    record_bucket.create(where)
    record_bucket.write_json(where, record_bucket.TAGS, {})
    assert record_bucket.missing(CLUSTER) == ""
    record = RecordCopy(CLUSTER).record
    record.save(RunState(RunSpec("r", [TaskSpec("worker-0", "worker", 0)], {}, success="worker-0"), time.time() - age))
    assert record_bucket.missing(CLUSTER).endswith(words)
    assert bool(record_bucket.missing(CLUSTER)) == bool(words)


def cluster(cluster_id: str, name: str = "mnist") -> ClusterRef:
    return cluster_ref("ec2", f"ec2://{REGION}/{name}-{cluster_id}", name=name, cluster_id=cluster_id)


def stored(cluster_id: str, name: str = "mnist") -> record_bucket.BucketFolder:
    """A cluster's folder with a record, as the resource and the machine create it."""
    ref = cluster(cluster_id, name)
    props = {"cluster": ref, "bucket": record_bucket.bucket_of(ref).name, "tags": tags(ref)}
    record_bucket.RecordBucketProvider().create(props)
    bucket = record_bucket.bucket_of(ref)
    record_bucket.write_json(bucket, record_bucket.MANIFEST, {"record_id": "a1", "at": 1.0, "files": {}})
    return bucket


def keys(s3: Any) -> set[str]:
    name = record_bucket.locate(REGION, "").name
    return {item["Key"] for item in s3.list_objects_v2(Bucket=name).get("Contents", [])}


def test_an_account_has_one_bucket_in_each_region_and_a_cluster_has_a_folder_in_it() -> None:
    first, second = (record_bucket.locate(REGION, f"mnist-{one}") for one in (ID, OTHER_ID))
    assert first.name == second.name == f"tfdeploy-{ACCOUNT}-{REGION}"
    assert (first.url, second.url) == (f"s3://{first.name}/mnist-{ID}", f"s3://{first.name}/mnist-{OTHER_ID}")
    assert record_bucket.locate("us-west-2", f"mnist-{ID}").name != first.name
    longest = max(boto3.session.Session().get_available_regions("s3", "aws"), key=len)
    assert len(record_bucket.locate(longest, "").name) <= 63


@pytest.mark.parametrize("region", ["us-east-1", REGION])
def test_it_is_private_tagged_and_created_once(region: str) -> None:
    bucket, here = record_bucket.locate(region, f"mnist-{ID}"), boto3.client("s3", region_name=region)
    assert not record_bucket.exists(bucket)
    for _ in range(2):
        record_bucket.create(bucket)
    assert record_bucket.exists(bucket)
    assert all(here.get_public_access_block(Bucket=bucket.name)["PublicAccessBlockConfiguration"].values())
    assert "aws:SecureTransport" in here.get_bucket_policy(Bucket=bucket.name)["Policy"]
    assert here.get_bucket_tagging(Bucket=bucket.name)["TagSet"] == [{"Key": "tfdeploy:purpose", "Value": "records"}]


def test_what_the_account_has_set_stays_and_what_is_missing_is_set_again(s3: Any) -> None:
    bucket = record_bucket.locate(REGION, f"mnist-{ID}")
    record_bucket.create(bucket)
    own = {"Key": "team", "Value": "vision"}
    s3.put_bucket_tagging(Bucket=bucket.name, Tagging={"TagSet": [own]})
    what = {"Action": "s3:DeleteBucket", "Resource": f"arn:aws:s3:::{bucket.name}"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Principal": "*", **what}]})
    s3.put_bucket_policy(Bucket=bucket.name, Policy=policy)
    s3.delete_public_access_block(Bucket=bucket.name)
    record_bucket.create(bucket)
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

    def allowed(bucket: record_bucket.BucketFolder, path: str) -> bool:
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
