"""The record of a cluster in S3, so that it survives the machines.

tfdeploy has one bucket in an account and a region, which the first cluster creates. It is never deleted by tfdeploy, because several
clusters, of several people, use it. Each cluster has a folder in it: the keys that begin with `NAME-ID/`. The manager's watchdog writes
the record below `NAME-ID/record/`: its files, in parts, below the record's id, and a manifest that lists what is complete of them. This
module creates the bucket, and reads, retains and deletes the record.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pulumi
from botocore.exceptions import ClientError
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, UpdateResult

from ...agent.model.run_state import RunState
from ...agent.record.record import FORMAT, RecordFormatError
from ...agent.record.record_files import Range, RecordList, is_artifact
from ...agent.record.replica import Read
from ...errors import BackendError, SpecError
from ...paths import cluster_folder
from ...spec.cluster import ClusterSpec
from ...units import text_of_seconds
from ..base import ClusterRef
from ..record_copy import RecordCopy, RecordUpdate
from ..stack_config import StackProvider, changed_inputs
from .aws import account, api
from .aws.api import tag_values
from .aws.errors import Kind, aws_errors, error_code, kind_of
from .machine import model, ssh
from .watchdog.record_upload import part_name
from .watchdog.shutdown_rule import UNSAVED

PREFIX = "record/"
MANIFEST = f"{PREFIX}current.json"

TAGS = "cluster.json"
"""The object with the tags of the cluster, because S3 has no tags for folders."""

_SHOWN = 3
"""So many of the files that cannot be downloaded are named."""

FIRST_UPLOAD_SECONDS = 600.0
"""So long after its submission the record of a run is in the bucket."""

REMEDY = (
    "`pulumi up --refresh` creates the cluster's bucket, role and instance profile again where they are gone, and has its machine "
    "upload the whole record. Policies of your own must allow that. This computer copies the record at each `tfdeploy status`."
)
"""What to do about a record that is not in the bucket."""

_TRIES, _PAUSE = 5, 2.0
"""How often a record is downloaded again that the manager changed during the download, and the seconds between."""


PURPOSE = f"{model.PREFIX}purpose"
"""The tag of the bucket; it has no tag of a cluster."""

_RECORDS = "records"
_BLOCKS = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
_DEFAULT_REGION = "us-east-1"
"""The one region that must not be named when a bucket is created in it.
https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateBucket.html"""

CONFLICT_SECONDS, PAUSE_SECONDS = 120.0, 2.0
"""How long a call is repeated that conflicts with another, and the time between: another cluster may create the bucket too."""

T = TypeVar("T")


class RecordIncomplete(BackendError):
    """Files of the record in the bucket are not as its manifest lists them. What is as listed is in the copy."""


@dataclass(frozen=True)
class BucketFolder:
    """The folder of a cluster in the bucket of its account and region."""

    region: str
    owner: str
    """The id of the account: S3 refuses a bucket with this name that another account owns."""
    folder: str
    """The cluster's folder name."""

    @property
    def name(self) -> str:
        """The name of the bucket. An account has one in each region."""
        return f"tfdeploy-{self.owner}-{self.region}"

    @property
    def arn(self) -> str:
        """The objects of the folder in policies, without the `*`."""
        return f"{_arn(self)}/{self.folder}/"

    @property
    def url(self) -> str:
        """The folder, for people."""
        return f"s3://{self.name}/{self.folder}"


@dataclass(frozen=True)
class Manifest:
    """The list of a record's files in the bucket: of those that are whole there."""

    record: RecordList
    part: int = 0
    """The bytes of a part of a file; 0 where each file is one object."""
    places: Mapping[str, str] = field(default_factory=dict)
    """The name of an artifact to that of its objects; those of other files have the names of the files."""
    ended: bool = False
    """True when the cluster was destroyed, and its record is retained."""

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Manifest":
        """From the watchdog's JSON (`watchdog.record_upload`), or from that of `mark_ended`."""
        if "ended" in data:
            return cls(RecordList(str(data["ended"]), 0.0, []), ended=True)
        return cls(RecordList.from_dict(data), int(data.get("part", 0)), dict(data.get("places", {})))


def locate(region: str, folder: str) -> BucketFolder:
    """The folder of a cluster in the bucket, whether it exists or not."""
    return BucketFolder(region, account.account_id(region), folder)


def create(bucket: BucketFolder) -> None:
    """Create the bucket if it does not exist: no public access, TLS only. S3 encrypts its objects. Of an existing one only what is
    missing is set, because the account may have further tags, or a stricter policy. It is not created again: a role may be allowed
    to use it only, and in us-east-1 that would reset its ACL.

    Raises:
        SpecError: S3 refuses it, or another account has a bucket with this name.
    """
    s3, arguments = _s3(bucket), _arguments(bucket)
    with aws_errors(bucket.region):
        if not exists(bucket):
            _repeat(lambda: _create(bucket))
        # A new bucket is not visible everywhere at once.
        s3.get_waiter("bucket_exists").wait(**arguments, WaiterConfig={"Delay": 2, "MaxAttempts": 30})
        access = _none_if_not_found(lambda: s3.get_public_access_block(**arguments))
        blocks = dict.fromkeys(_BLOCKS, True)
        if access is None or access["PublicAccessBlockConfiguration"] != blocks:
            _repeat(lambda: s3.put_public_access_block(**arguments, PublicAccessBlockConfiguration=blocks))
        response = _none_if_not_found(lambda: s3.get_bucket_tagging(**arguments))
        tags = tag_values(response["TagSet"]) if response else {}
        if PURPOSE not in tags:
            tags[PURPOSE] = _RECORDS
            tag_set = [{"Key": key, "Value": value} for key, value in tags.items()]
            _repeat(lambda: s3.put_bucket_tagging(**arguments, Tagging={"TagSet": tag_set}))
        if _none_if_not_found(lambda: s3.get_bucket_policy(**arguments)) is None:
            _repeat(lambda: s3.put_bucket_policy(**arguments, Policy=json.dumps(_tls_only(bucket))))


def _create(bucket: BucketFolder) -> None:
    region = {} if bucket.region == _DEFAULT_REGION else {"LocationConstraint": bucket.region}
    configuration = {"CreateBucketConfiguration": region} if region else {}
    try:
        _s3(bucket).create_bucket(Bucket=bucket.name, **configuration)
    except ClientError as error:
        if error_code(error) == "BucketAlreadyExists":
            wrong = f"belongs to another AWS account, and tfdeploy stores the records of account {bucket.owner} in it"
            raise SpecError(f"s3://{bucket.name}", wrong, "Choose another region.") from None
        if error_code(error) != "BucketAlreadyOwnedByYou":
            raise


def exists(bucket: BucketFolder) -> bool:
    """True when the bucket exists."""
    with aws_errors(bucket.region):
        return _none_if_not_found(lambda: _s3(bucket).head_bucket(**_arguments(bucket))) is not None


def read_object(bucket: BucketFolder, path: str, begin: int = 0, size: int = 0) -> bytes | None:
    """The content of an object in the folder, or, with a `size`, so many bytes of it; None where it does not exist, or is shorter.

    Raises:
        SpecError, Unreachable: it cannot be read.
    """
    place = {**_arguments(bucket), "Key": f"{bucket.folder}/{path}"}
    if size:
        place["Range"] = f"bytes={begin}-{begin + size - 1}"
    with aws_errors(bucket.region):
        response = _none_if_not_found(lambda: _s3(bucket).get_object(**place))
        return response["Body"].read() if response else None


def modified(bucket: BucketFolder, path: str) -> float:
    """When an object of the folder was written, in seconds since 1970; 0 where it does not exist.

    Raises:
        SpecError, Unreachable: S3 refuses the call.
    """
    key = f"{bucket.folder}/{path}"
    with aws_errors(bucket.region):
        response = _none_if_not_found(lambda: _s3(bucket).head_object(**_arguments(bucket), Key=key))
        return float(response["LastModified"].timestamp()) if response else 0.0


def write_json(bucket: BucketFolder, path: str, data: Mapping[str, object]) -> None:
    """Write an object into the folder.

    Raises:
        SpecError, Unreachable: S3 refuses it.
    """
    with aws_errors(bucket.region):
        body = json.dumps(data).encode()
        _s3(bucket).put_object(**_arguments(bucket), Key=f"{bucket.folder}/{path}", Body=body)


def objects(bucket: BucketFolder, prefix: str) -> set[str]:
    """The objects of the folder below this prefix, by their paths in the folder."""
    folder = f"{bucket.folder}/"
    with aws_errors(bucket.region):
        items = _listed(bucket, "Contents", Prefix=f"{folder}{prefix}")
    return {str(item["Key"]).removeprefix(folder) for item in items}


def delete_folder(bucket: BucketFolder) -> None:
    """Delete all objects of the folder. "Not found" is success.

    Raises:
        SpecError, Unreachable: an object cannot be deleted.
    """
    s3, arguments = _s3(bucket), _arguments(bucket)
    with aws_errors(bucket.region):
        if _none_if_not_found(lambda: s3.head_bucket(**arguments)) is None:
            return
        for page in s3.get_paginator("list_objects_v2").paginate(**arguments, Prefix=f"{bucket.folder}/"):
            keys = [{"Key": item["Key"]} for item in page.get("Contents", [])]
            if keys:
                response = s3.delete_objects(**arguments, Delete={"Objects": keys, "Quiet": True})
                for error in response.get("Errors", []):
                    wrong = f"DeleteObjects failed: {error['Key']}: {error['Message']}"
                    raise SpecError(bucket.url, wrong, "Check your permissions for this bucket.")


def folders(region: str) -> list[str]:
    """The folders of all clusters in the bucket of a region. Within `aws_errors`."""
    prefixes = _listed(locate(region, ""), "CommonPrefixes", Delimiter="/")
    return [str(item["Prefix"]).rstrip("/") for item in prefixes]


def _listed(bucket: BucketFolder, key: str, **arguments: str) -> list[Any]:
    """What the pages of a list have by this key; empty where the bucket does not exist."""
    pages = _s3(bucket).get_paginator("list_objects_v2").paginate(**_arguments(bucket), **arguments)
    return _none_if_not_found(lambda: [item for page in pages for item in page.get(key, [])]) or []


def _repeat(call: Callable[[], object]) -> None:
    """Call until no other call changes the bucket at the same time."""
    api.repeat(call, CONFLICT_SECONDS, PAUSE_SECONDS)


def _s3(bucket: BucketFolder) -> Any:
    return account.client("s3", bucket.region)


def _arguments(bucket: BucketFolder) -> dict[str, str]:
    return {"Bucket": bucket.name, "ExpectedBucketOwner": bucket.owner}


def _arn(bucket: BucketFolder) -> str:
    return f"arn:{api.partition(bucket.region)}:s3:::{bucket.name}"


def _none_if_not_found(call: Callable[[], T]) -> T | None:
    try:
        return call()
    except ClientError as error:
        if kind_of(error) is Kind.GONE or error_code(error) == "InvalidRange":
            return None
        raise


def _tls_only(bucket: BucketFolder) -> dict[str, Any]:
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Deny",
                "Principal": "*",
                "Action": "s3:*",
                "Resource": [_arn(bucket), f"{_arn(bucket)}/*"],
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            }
        ],
    }


def bucket_of(cluster: ClusterRef) -> BucketFolder:
    """The folder of a cluster in tfdeploy's bucket, whether it exists or not."""
    return locate(ssh.region(cluster), cluster_folder(cluster))


def read_manifest(bucket: BucketFolder) -> Manifest | None:
    """The manifest; None where the bucket has none.

    Raises:
        SpecError, BackendError, Unreachable: it cannot be read.
    """
    text = read_object(bucket, MANIFEST)
    if text is None:
        return None
    try:
        return Manifest.from_dict(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BackendError(f"{bucket.url}/{MANIFEST} is not a valid manifest ({error!r})") from None


def _reader(bucket: BucketFolder, manifest: Manifest) -> Read:
    """Reads the first of some ranges, as far as one object has it. The last part of a file may have grown beyond the list."""

    def read(ranges: Sequence[Range]) -> list[bytes]:
        name, offset, size = ranges[0]
        number, begin = divmod(offset, manifest.part) if manifest.part else (0, offset)
        size = min(size, manifest.part - begin) if manifest.part else size
        path = f"{PREFIX}{manifest.record.record_id}/{part_name(name, number, manifest.places.get(name, ''))}"
        return [read_object(bucket, path, begin, size) or b""]

    return read


def missing(cluster: ClusterRef) -> str:
    """What the bucket does not have any more of a record that was uploaded, in words; empty where it has all, or there is none yet.

    Raises:
        SpecError, BackendError, Unreachable: the bucket cannot be read.
    """
    bucket, run = bucket_of(cluster), RecordCopy(cluster).record.current()
    manifest = read_manifest(bucket)
    if manifest is None:
        is_late = run is not None and time.time() - run.submitted_at > FIRST_UPLOAD_SECONDS
        is_deleted = read_object(bucket, TAGS) is None
        return f"{bucket.url}/{MANIFEST} does not exist" if is_late or is_deleted else ""
    prefix, places = f"{PREFIX}{manifest.record.record_id}/", manifest.places
    files = [file.name for file in manifest.record.files if file.text is None and file.size]
    lost = {prefix + part_name(name, 0, places.get(name, "")) for name in files} - objects(bucket, prefix)
    return f"{len(lost)} of the files that {bucket.url}/{MANIFEST} lists do not exist" if lost else ""


def not_uploaded(cluster: ClusterRef, problem: str) -> str:
    """That the manager's machine cannot upload the record, and what to do."""
    end = f"{text_of_seconds(UNSAVED)} after it is idle it ends without"
    return f"The record cannot be stored in {bucket_of(cluster).url} ({problem}): {end}. {REMEDY}"


def mark_ended(bucket: BucketFolder, record_id: str) -> None:
    """Mark the record as that of a destroyed cluster, for every computer; its files are retained."""
    write_json(bucket, MANIFEST, {"ended": record_id})


def warnings(cluster: ClusterRef, spec: ClusterSpec) -> list[str]:
    """The permission that the user's own instance profile must have."""
    profile = spec.ec2.instance_profile
    if not profile:
        return []
    permission = f"s3:PutObject on {bucket_of(cluster).arn}{PREFIX}*"
    return [f"instance_profile {profile} must allow {permission}; without it the record is lost with the machines"]


def stored_run(cluster: ClusterRef) -> RecordUpdate:
    """The current run as the newer of bucket and local copy has it, and when its controller last ran. Changes nothing.

    Raises:
        SpecError, BackendError, Unreachable: the bucket cannot be read.
        RecordFormatError: the record was written by another version.
    """
    record, manifest = RecordCopy(cluster).record, read_manifest(bucket_of(cluster))
    copied = RecordUpdate(record.last_alive(), record.current())
    if manifest is None:
        return copied
    if manifest.ended:
        identity = record.folder / "record_id"
        is_same = identity.exists() and identity.read_text() == manifest.record.record_id
        return RecordUpdate(0.0, None) if is_same else copied
    listed = manifest.record
    if listed.at <= copied.at:
        return copied
    if listed.text("format") not in ("", FORMAT):
        raise RecordFormatError(record.folder, listed.text("format"))
    run_state = listed.text("current") and listed.text(f"runs/{listed.text('current')}/run_state.json")
    return RecordUpdate(listed.at, RunState.from_dict(json.loads(run_state)) if run_state else None)


def download(cluster: ClusterRef) -> bool:
    """Update the local copy of the record from the bucket if the bucket's is newer; True when the copy changed.

    Raises:
        SpecError, BackendError, Unreachable: the record cannot be read. That is never taken for "no record".
        RecordIncomplete: a part of it cannot be read, now or ever: its manager may be gone.
    """
    record_copy, bucket, changed = RecordCopy(cluster), bucket_of(cluster), False
    lacking: list[str] = []
    for _ in range(_TRIES):
        manifest = read_manifest(bucket)
        listed = manifest.record if manifest else None
        is_copy = record_copy.folder.exists() and listed and record_copy.record.record_id() == listed.record_id
        if manifest and manifest.ended and is_copy:
            record_copy.set_aside()
            changed = True
        if manifest is None or listed is None or manifest.ended or listed.at <= record_copy.record.last_alive():
            return changed
        read = _reader(bucket, manifest)
        missing = record_copy.follow(listed, read)
        lacking = [name for name in missing if not is_artifact(name)]
        if not lacking:
            return True
        time.sleep(_PAUSE)
    raise RecordIncomplete(f"{bucket.url}/{PREFIX}: {', '.join(lacking[:_SHOWN])} differs from the manifest")


def retire(cluster: ClusterRef, keep: bool) -> str:
    """Delete the record, or mark it as that of a destroyed cluster; a sentence about what is retained. The bucket remains: other
    clusters use it.

    Raises:
        SpecError, Unreachable: it cannot be deleted.
    """
    bucket = bucket_of(cluster)
    if not keep:
        delete_folder(bucket)
        return ""
    lines: list[str] = []
    try:
        download(cluster)
    except (BackendError, SpecError) as error:
        lines.append(f"the record could not be downloaded completely ({error})")
    try:
        manifest = read_manifest(bucket)
        if manifest and not manifest.ended:
            mark_ended(bucket, manifest.record.record_id)
            lines.append(f"the record is retained: {bucket.url}")
        elif manifest is None and not objects(bucket, PREFIX):
            delete_folder(bucket)
    except (BackendError, SpecError) as error:
        lines.append(f"the record in {bucket.url} was not changed ({error})")
    return "; ".join(lines)


def read_tags(bucket: BucketFolder) -> dict[str, str]:
    """The tags of the cluster; empty where the folder has none.

    Raises:
        SpecError, Unreachable: they cannot be read.
    """
    try:
        tags = json.loads(read_object(bucket, TAGS) or "{}")
    except (ValueError, RecursionError):
        return {}
    return {str(key): str(value) for key, value in tags.items()} if isinstance(tags, dict) else {}


class RecordBucketProvider(StackProvider):
    """Creates the bucket, and the cluster's folder in it. `Cleanup` decides whether the folder is deleted."""

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Create the bucket unless it exists, store the cluster's tags in its folder, and have its machine upload the record again."""
        self._create(props)
        with suppress(BackendError, SpecError):
            if manager := ssh.read(props["cluster"]).manager:
                ssh.run(props["cluster"], manager, "sudo", "systemctl", "restart", "tfdeploy-watchdog")
        return CreateResult(props["bucket"], props)

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Other tags are an update."""
        return changed_inputs(olds, news, ["bucket"])

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Set the new tags."""
        self._create(news)
        return UpdateResult(news)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Report it as gone when S3 does not have all of it."""
        return ReadResult(None, {}) if missing(props["cluster"]) else ReadResult(id_, props)

    def _create(self, props: dict[str, Any]) -> None:
        bucket = bucket_of(props["cluster"])
        create(bucket)
        write_json(bucket, TAGS, props["tags"])


class RecordBucket(Resource, module="tfdeploy", name="RecordBucket"):
    """The bucket, with the folder of a cluster's record."""

    def __init__(self, name: str, cluster: ClusterRef, tags: Mapping[str, str], opts: pulumi.ResourceOptions) -> None:
        props = {"cluster": cluster, "bucket": bucket_of(cluster).name, "tags": dict(tags)}
        super().__init__(RecordBucketProvider(), name, props, opts)
