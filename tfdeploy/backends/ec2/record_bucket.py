"""The record of a cluster in S3, so that it survives the machines.

The manager's watchdog writes it below `NAME-ID/record/` of tfdeploy's bucket (`shared_bucket`): the files of the record, in parts,
below the record's id, and a manifest that lists what is complete of them. This module reads, retains and deletes it.
"""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pulumi
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
from . import account_bucket
from .account_bucket import BucketFolder
from .machine import ssh
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


class RecordIncomplete(BackendError):
    """Files of the record in the bucket are not as its manifest lists them. What is as listed is in the copy."""


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


def bucket_of(cluster: ClusterRef) -> BucketFolder:
    """The folder of a cluster in tfdeploy's bucket, whether it exists or not."""
    return account_bucket.locate(ssh.region(cluster), cluster_folder(cluster))


def read_manifest(bucket: BucketFolder) -> Manifest | None:
    """The manifest; None where the bucket has none.

    Raises:
        SpecError, BackendError, Unreachable: it cannot be read.
    """
    text = account_bucket.read_object(bucket, MANIFEST)
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
        return [account_bucket.read_object(bucket, path, begin, size) or b""]

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
        is_deleted = account_bucket.read_object(bucket, TAGS) is None
        return f"{bucket.url}/{MANIFEST} does not exist" if is_late or is_deleted else ""
    prefix, places = f"{PREFIX}{manifest.record.record_id}/", manifest.places
    files = [file.name for file in manifest.record.files if file.text is None and file.size]
    lost = {prefix + part_name(name, 0, places.get(name, "")) for name in files} - account_bucket.objects(
        bucket, prefix
    )
    return f"{len(lost)} of the files that {bucket.url}/{MANIFEST} lists do not exist" if lost else ""


def not_uploaded(cluster: ClusterRef, problem: str) -> str:
    """That the manager's machine cannot upload the record, and what to do."""
    end = f"{text_of_seconds(UNSAVED)} after it is idle it ends without"
    return f"The record cannot be stored in {bucket_of(cluster).url} ({problem}): {end}. {REMEDY}"


def mark_ended(bucket: BucketFolder, record_id: str) -> None:
    """Mark the record as that of a destroyed cluster, for every computer; its files are retained."""
    account_bucket.write_json(bucket, MANIFEST, {"ended": record_id})


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
        account_bucket.delete_folder(bucket)
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
        elif manifest is None and not account_bucket.objects(bucket, PREFIX):
            account_bucket.delete_folder(bucket)
    except (BackendError, SpecError) as error:
        lines.append(f"the record in {bucket.url} was not changed ({error})")
    return "; ".join(lines)


def read_tags(bucket: BucketFolder) -> dict[str, str]:
    """The tags of the cluster; empty where the folder has none.

    Raises:
        SpecError, Unreachable: they cannot be read.
    """
    try:
        tags = json.loads(account_bucket.read_object(bucket, TAGS) or "{}")
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
        account_bucket.create(bucket)
        account_bucket.write_json(bucket, TAGS, props["tags"])


class RecordBucket(Resource, module="tfdeploy", name="RecordBucket"):
    """The bucket, with the folder of a cluster's record."""

    def __init__(self, name: str, cluster: ClusterRef, tags: Mapping[str, str], opts: pulumi.ResourceOptions) -> None:
        props = {"cluster": cluster, "bucket": bucket_of(cluster).name, "tags": dict(tags)}
        super().__init__(RecordBucketProvider(), name, props, opts)
