"""The record of a cluster in S3, so that it survives the machines.

The manager's watchdog writes it below `NAME-ID/record/` of tfdeploy's bucket (`shared_bucket`): the files of the record, in parts,
below the record's id, and a manifest that lists what is complete of them. This module reads, retains and deletes it.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypedDict, cast

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, UpdateResult

from ...agent.launch.workdir import locked
from ...agent.record import artifact_precedence
from ...agent.record.artifact_manifest import load_manifest
from ...agent.record.record import FORMAT, RecordFormatError
from ...agent.run_state import RunState
from ...errors import BackendError, SpecError
from ...paths import cluster_folder
from ...spec.cluster import ClusterSpec
from ..base import ClusterRef
from ..record_copy import RecordCopy
from ..stack_config import StackProvider
from ..state_values import plain_values
from . import shared_bucket
from .machine import ssh
from .shared_bucket import BucketFolder
from .watchdog.record_upload import part_name

PREFIX = "record/"
MANIFEST = f"{PREFIX}current.json"

TAGS = "cluster.json"
"""The object with the tags of the cluster, because S3 has no tags for folders."""

_READ = 4 << 20

_TRIES, _PAUSE = 5, 2.0
"""How often a record is downloaded again that the manager changed during the download, and the seconds between."""


@dataclass(frozen=True)
class StoredFile:
    """A complete file of a record, as the manifest lists it."""

    size: int
    md5: str
    """Hexadecimal digits."""
    text: str | None = None
    """The content, for small files that change; the bucket has no object for these."""

    @classmethod
    def from_list(cls, item: Any) -> "StoredFile":
        """From the manifest's list."""
        size, md5, *text = item
        return cls(int(size), str(md5), text[0] if text else None)


@dataclass(frozen=True)
class Manifest:
    """The list of a record's files in the bucket."""

    record_id: str
    at: float
    """When it was written, in seconds since 1970."""
    files: Mapping[str, StoredFile]
    """By path in the record."""
    part: int = 0
    """The bytes of a part of a file; 0 where each file is one object."""
    ended: bool = False
    """True when the cluster was destroyed, and its record is retained."""

    def text(self, path: str) -> str:
        """The content of a small file that changes; empty where the record does not have it."""
        file = self.files.get(path)
        return file.text or "" if file else ""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Manifest":
        """From the watchdog's JSON (`watchdog.record_upload`), or from that of `mark_ended`."""
        if "ended" in data:
            return cls(str(data["ended"]), 0.0, {}, ended=True)
        files = {path: StoredFile.from_list(item) for path, item in data["files"].items()}
        return cls(str(data["record_id"]), float(data["at"]), files, int(data.get("part", 0)))


def bucket_of(cluster: ClusterRef) -> BucketFolder:
    """The folder of a cluster in tfdeploy's bucket, whether it exists or not."""
    return shared_bucket.locate(ssh.region(cluster), cluster_folder(cluster))


def read_manifest(bucket: BucketFolder) -> Manifest | None:
    """The manifest; None where the bucket has none.

    Raises:
        SpecError, BackendError, Unreachable: it cannot be read.
    """
    text = shared_bucket.read_object(bucket, MANIFEST)
    if text is None:
        return None
    try:
        return Manifest.from_dict(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BackendError(f"{bucket.url}/{MANIFEST} is not a valid manifest ({error!r})") from None


def fetch(bucket: BucketFolder, manifest: Manifest, folder: Path, copy: Path) -> None:
    """Download the record into an empty folder. Files that `copy`, an older copy, has already are not downloaded. An artifact that was
    replaced while it was uploaded, and then the machine was lost, is missing; without the rest there is no record.

    Raises:
        BackendError: a file is missing, or differs from the manifest.
    """
    for path, file in manifest.files.items():
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise BackendError(f"{bucket.url}/{MANIFEST} lists {path!r}, which is not a path in a record")
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.text is not None:
            target.write_bytes(file.text.encode()[: file.size])
        elif not _copy_local(copy / path, target, file) and not _download_file(bucket, manifest, path, target):
            if PurePosixPath(path).parts[2:3] != ("artifacts",):
                raise BackendError(f"{bucket.url}/{PREFIX}{manifest.record_id}/{path} differs from the manifest")
            target.unlink()


def _download_file(bucket: BucketFolder, manifest: Manifest, path: str, target: Path) -> bool:
    """Write a file from its parts; False where it differs from the manifest. The last part may have grown beyond that."""
    folder, file = f"{PREFIX}{manifest.record_id}", manifest.files[path]
    count = -(-file.size // manifest.part) if manifest.part else 1
    names = [f"{folder}/{part_name(path, number)}" for number in range(count)]
    return _write(target, (shared_bucket.read_object(bucket, name) for name in names), file)


def _copy_local(source: Path, target: Path, file: StoredFile) -> bool:
    """Write a file from an older copy; False where it differs. A log may have grown there beyond the manifest."""
    if not source.is_file() or source.stat().st_size < file.size:
        return False
    with source.open("rb") as content:
        return _write(target, iter(lambda: content.read(_READ), b""), file)


def _write(target: Path, parts: Iterable[bytes | None], file: StoredFile) -> bool:
    """Write as many bytes as the file has; whether these are its content."""
    md5, missing = hashlib.md5(usedforsecurity=False), file.size
    with target.open("wb") as content:
        for part in parts:
            if part is None:
                return False
            data = part[:missing]
            md5.update(data)
            content.write(data)
            missing -= len(data)
            if not missing:
                break
    return not missing and md5.hexdigest() == file.md5


def mark_ended(bucket: BucketFolder, record_id: str) -> None:
    """Mark the record as that of a destroyed cluster, for every computer; its files are retained."""
    shared_bucket.write_json(bucket, MANIFEST, {"ended": record_id})


def warnings(cluster: ClusterRef, spec: ClusterSpec) -> list[str]:
    """The permission that the user's own instance profile must have."""
    profile = spec.ec2.instance_profile
    if not profile:
        return []
    permission = f"s3:PutObject on {bucket_of(cluster).arn}{PREFIX}*"
    return [f"instance_profile {profile} must allow {permission}; without it the record is lost with the machines"]


def stored_run(cluster: ClusterRef) -> RunState | None:
    """The current run as the newer of bucket and local copy has it. Changes nothing.

    Raises:
        SpecError, BackendError, Unreachable: the bucket cannot be read.
        RecordFormatError: the record was written by another version.
    """
    record, manifest = RecordCopy(cluster).record, read_manifest(bucket_of(cluster))
    if manifest is None:
        return record.current()
    if manifest.ended:
        identity = record.folder / "record_id"
        is_same = identity.exists() and identity.read_text() == manifest.record_id
        return None if is_same else record.current()
    if manifest.at <= record.last_alive():
        return record.current()
    if manifest.text("format") not in ("", FORMAT):
        raise RecordFormatError(record.folder, manifest.text("format"))
    run_state = manifest.text("current") and manifest.text(f"runs/{manifest.text('current')}/run_state.json")
    return RunState.from_dict(json.loads(run_state)) if run_state else None


def download(cluster: ClusterRef) -> bool:
    """Update the local copy of the record from the bucket if the bucket's is newer; True when the copy changed.

    Raises:
        SpecError, BackendError, Unreachable: the record cannot be read. That is never taken for "no record".
    """
    record_copy, changed = RecordCopy(cluster), False
    for tries_left in reversed(range(_TRIES)):
        manifest = read_manifest(bucket_of(cluster))
        if (
            manifest
            and manifest.ended
            and record_copy.folder.exists()
            and record_copy.record.record_id() == manifest.record_id
        ):
            record_copy.set_aside()
            changed = True
        if manifest is None or manifest.ended or manifest.at <= record_copy.record.last_alive():
            return changed
        try:
            _replace_copy(cluster, manifest, record_copy)
            return True
        except BackendError:
            if not tries_left:
                raise
        time.sleep(_PAUSE)
    return changed


def _replace_copy(cluster: ClusterRef, manifest: Manifest, record_copy: RecordCopy) -> None:
    draft = record_copy.home / "record.draft"
    with locked(record_copy.home):
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        fetch(bucket_of(cluster), manifest, draft, record_copy.folder)
        (draft / "alive").touch()
        os.utime(draft / "alive", (manifest.at, manifest.at))
        if record_copy.folder.exists() and record_copy.record.record_id() != manifest.record_id:
            record_copy.set_aside()
        _keep_what_the_bucket_lacks(record_copy.folder, draft)
        shutil.rmtree(record_copy.folder, ignore_errors=True)
        draft.rename(record_copy.folder)


def _keep_what_the_bucket_lacks(copy: Path, draft: Path) -> None:
    """Take over into the draft what only this computer has: runs, output, events and artifacts. The machines ended before they were
    uploaded, or while newer ones were."""
    for run_folder in copy.glob("runs/*"):
        target = draft / run_folder.relative_to(copy)
        if not target.exists():
            shutil.copytree(run_folder, target, copy_function=artifact_precedence.link_or_copy)
            continue
        present = {file.name: file for file in load_manifest(run_folder).files}
        for file in load_manifest(target).files:
            source, missing = run_folder / "artifacts" / file.name, target / "artifacts" / file.name
            if present.get(file.name) == file and source.is_file() and not missing.exists():
                artifact_precedence.link_or_copy(str(source), str(missing))
        artifact_precedence.retain(run_folder, target)
        for path in (*run_folder.glob("logs/*/*.log"), *run_folder.glob("events.jsonl")):
            shorter = target / path.relative_to(run_folder)
            if not shorter.exists() or _begins_with(path, shorter):
                artifact_precedence.link_or_copy(str(path), str(shorter))


def _begins_with(longer: Path, shorter: Path) -> bool:
    """Whether a file has only grown since the other one."""
    if longer.stat().st_size <= shorter.stat().st_size:
        return False
    with longer.open("rb") as first, shorter.open("rb") as second:
        parts = iter(lambda: second.read(_READ), b"")
        return all(first.read(len(part)) == part for part in parts)


def retire(cluster: ClusterRef, keep: bool) -> str:
    """Delete the record, or mark it as that of a destroyed cluster; a sentence about what is retained. The bucket remains: other
    clusters use it.

    Raises:
        SpecError, Unreachable: it cannot be deleted.
    """
    bucket = bucket_of(cluster)
    if not keep:
        shared_bucket.delete_folder(bucket)
        return ""
    lines: list[str] = []
    try:
        download(cluster)
    except (BackendError, SpecError) as error:
        lines.append(f"the record could not be downloaded completely ({error})")
    try:
        manifest = read_manifest(bucket)
        if manifest and not manifest.ended:
            mark_ended(bucket, manifest.record_id)
            lines.append(f"the record is retained: {bucket.url}")
        elif manifest is None and not shared_bucket.has_objects(bucket, PREFIX):
            shared_bucket.delete_folder(bucket)
    except (BackendError, SpecError) as error:
        lines.append(f"the record in {bucket.url} was not changed ({error})")
    return "; ".join(lines)


def read_tags(bucket: BucketFolder) -> dict[str, str]:
    """The tags of the cluster; empty where the folder has none.

    Raises:
        SpecError, Unreachable: they cannot be read.
    """
    try:
        tags = json.loads(shared_bucket.read_object(bucket, TAGS) or "{}")
    except (ValueError, RecursionError):
        return {}
    return {str(key): str(value) for key, value in tags.items()} if isinstance(tags, dict) else {}


class RecordBucketProps(TypedDict):
    """The inputs of the resource, as Pulumi's state has them."""

    cluster: ClusterRef
    bucket: str
    tags: dict[str, str]


class RecordBucketProvider(StackProvider):
    """Creates the bucket, and the cluster's folder in it. `Cleanup` decides whether the folder is deleted."""

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Create the bucket unless it exists, and store the cluster's tags in its folder."""
        self._create(props)
        return CreateResult(props["bucket"], props)

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Other tags are an update."""
        old, new = plain_values(olds), plain_values(news)
        changed = [key for key in ("cluster", "bucket", "tags") if old.get(key) != new[key]]
        return DiffResult(changes=bool(changed), replaces=[key for key in changed if key == "bucket"])

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Set the new tags."""
        self._create(news)
        return UpdateResult(news)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Report it as gone when S3 does not have it."""
        return ReadResult(id_, props) if shared_bucket.exists(bucket_of(props["cluster"])) else ReadResult(None, {})

    def _create(self, props: dict[str, Any]) -> None:
        inputs = cast(RecordBucketProps, props)
        bucket = bucket_of(inputs["cluster"])
        shared_bucket.create(bucket)
        shared_bucket.write_json(bucket, TAGS, inputs["tags"])


class RecordBucket(Resource, module="tfdeploy", name="RecordBucket"):
    """The bucket, with the folder of a cluster's record."""

    def __init__(self, name: str, cluster: ClusterRef, tags: Mapping[str, str], opts: pulumi.ResourceOptions) -> None:
        props: RecordBucketProps = {"cluster": cluster, "bucket": bucket_of(cluster).name, "tags": dict(tags)}
        super().__init__(RecordBucketProvider(), name, dict(props), opts)
