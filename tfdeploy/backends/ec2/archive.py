"""The record's bucket as a resource, and the copy at home brought on to what is in it.

The resource's provider is named in the state by this module's name: never rename it.
"""

import os
import shutil
import time
from collections.abc import Mapping
from typing import Any, cast

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult

from ...agent.workplace import held
from ...ec2 import bucket
from ...errors import BackendError, SpecError
from ...spec import ClusterSpec
from ..base import Cluster, as_given
from ..docker.mirror import Mirror
from . import reach

Props = dict[str, Any]

_TRIES, _PAUSE = 5, 2.0
"""How often a record is asked for that its machine writes meanwhile, and the seconds between."""


def of(cluster: Cluster) -> bucket.Bucket:
    """The bucket of a cluster, whether it is there or not."""
    return bucket.of(reach.region(cluster), cluster["project"], cluster["stack"], cluster["name"])


def warnings(cluster: Cluster, spec: ClusterSpec) -> list[str]:
    """What a profile of the user's must allow, since nobody else gives the right."""
    if not spec.fleet.instance_profile:
        return []
    what = f"s3:PutObject on {bucket.arn(of(cluster))}/{bucket.PREFIX}*"
    return [
        f"instance_profile {spec.fleet.instance_profile} must allow {what}, or the record does not outlive the machines"
    ]


def bring(cluster: Cluster) -> bool:
    """Bring the copy at home on to the record in the bucket, when that is the newer one; whether that has changed it.

    Raises:
        SpecError, BackendError, Unreachable: what is there cannot be read; that is never taken for nothing.
    """
    mirror, changed = Mirror(cluster), False
    for further in reversed(range(_TRIES)):
        found = bucket.manifest(of(cluster))
        if found and found.ended and mirror.folder.exists() and mirror.record.life() == found.life:
            mirror.put_by()
            changed = True
        if found is None or found.ended or found.at <= mirror.record.last_alive():
            return changed
        try:
            _take(cluster, found, mirror)
            return True
        except BackendError:
            if not further:
                raise
        time.sleep(_PAUSE)
    return changed


def end(cluster: Cluster, keep: bool) -> str:
    """The record's end: what is in the bucket stays as that of an earlier life, or goes; where it is kept, in a sentence.

    Raises:
        SpecError, Unreachable: it cannot be removed.
    """
    found = of(cluster)
    if not keep:
        bucket.remove(found)
        return ""
    said: list[str] = []
    try:
        bring(cluster)
    except (BackendError, SpecError) as error:
        said.append(f"not all of the record could be brought here ({error})")
    try:
        told = bucket.manifest(found)
        if told and not told.ended:
            bucket.end(found, told.life)
            said.append(f"its bucket is kept: s3://{found.name}")
    except (BackendError, SpecError) as error:
        said.append(f"the record's bucket is left as it is ({error})")
    return "; ".join(said)


def _take(cluster: Cluster, found: bucket.Manifest, mirror: Mirror) -> None:
    draft = mirror.home / "record.draft"
    with held(mirror.home):
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        bucket.fetch(of(cluster), found, draft, mirror.folder)
        (draft / "alive").touch()
        os.utime(draft / "alive", (found.at, found.at))
        if mirror.folder.exists() and mirror.record.life() != found.life:
            mirror.put_by()
        shutil.rmtree(mirror.folder, ignore_errors=True)
        draft.rename(mirror.folder)


class ArchiveProvider(ResourceProvider):
    """Thin and stateless: `ec2.bucket` does the work. The sweeper decides what becomes of the bucket in the end."""

    serialize_as_secret_always = False

    def create(self, props: Props) -> CreateResult:
        """Make the bucket, or take the one that an earlier life of the cluster has left."""
        self._ensure(props)
        return CreateResult(props["bucket"], props)

    def diff(self, _id: str, olds: Props, news: Props) -> DiffResult:
        """Other tags are an update."""
        old, new = as_given(olds), as_given(news)
        changed = [key for key in ("cluster", "bucket", "tags") if old.get(key) != new[key]]
        return DiffResult(changes=bool(changed), replaces=[key for key in changed if key != "tags"])

    def update(self, _id: str, _olds: Props, news: Props) -> UpdateResult:
        """Give it its new tags."""
        self._ensure(news)
        return UpdateResult(news)

    def read(self, id_: str, props: Props) -> ReadResult:
        """Gone when S3 no longer has it."""
        return ReadResult(id_, props) if bucket.stands(of(props["cluster"])) else ReadResult(None, {})

    def _ensure(self, props: Props) -> None:
        bucket.ensure(of(cast(Cluster, props["cluster"])), props["tags"])


class Archive(Resource, module="tfdeploy", name="Archive"):
    """The bucket of a cluster's record."""

    def __init__(self, name: str, cluster: Cluster, tags: Mapping[str, str], opts: pulumi.ResourceOptions) -> None:
        given = {"cluster": cluster, "bucket": of(cluster).name, "tags": dict(tags)}
        super().__init__(ArchiveProvider(), name, given, opts)
