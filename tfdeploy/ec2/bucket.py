"""The bucket in which a cluster's record outlives its machines.

The machine that manages writes it (`caretaker`), under `record/`: the record's own files below the name of its life, and, last, a
manifest that says which of them are whole. Here it is made, read and removed.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from botocore.exceptions import ClientError

from ..errors import BackendError, SpecError
from . import account

PREFIX = "record/"
MANIFEST = f"{PREFIX}current.json"

_LONGEST = 63
"""Of a bucket's name: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html."""

_DIGEST = 12
_NOT_THERE = ("NoSuchBucket", "NoSuchKey", "NoSuchTagSet", "301", "404")
_OLD_REGION = "us-east-1"
"""The one region that must not be named when a bucket is made in it.
https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateBucket.html"""


@dataclass(frozen=True)
class Bucket:
    """Where a cluster's record is kept."""

    region: str
    name: str
    owner: str
    """The number of the account: another's bucket of that name is refused by S3 itself."""


@dataclass(frozen=True)
class Manifest:
    """What of a record is in the bucket."""

    life: str
    at: float
    """When it was written, in seconds since 1970."""
    files: Mapping[str, tuple[int, str, str | None]]
    """Path in the record to its bytes, the hexadecimal digits of their MD5, and the text itself where it is told here."""
    ended: bool = False
    """The cluster was taken away: the record is that of an earlier life."""


def of(region: str, project: str, stack: str, cluster: str) -> Bucket:
    """The bucket of a cluster: its name can be computed from whose it is, and nobody else's is the same."""
    owner = _account(region)
    words = re.sub(r"[^a-z0-9-]+", "-", f"tfdeploy-{project}-{stack}-{cluster}".lower())
    digest = hashlib.sha256("/".join((owner, region, project, stack, cluster)).encode()).hexdigest()[:_DIGEST]
    return Bucket(region, f"{words[: _LONGEST - _DIGEST - 1].rstrip('-')}-{digest}", owner)


@cache
def _account(region: str) -> str:
    with account.answers(region):
        return str(account.client("sts", region).get_caller_identity()["Account"])


def ensure(bucket: Bucket, tags: Mapping[str, str]) -> None:
    """Make it, or take the one that is there: closed to the public, reached by TLS alone. S3 itself encrypts what is in it.

    Raises:
        SpecError: it may not be made.
    """
    s3, mine = _s3(bucket), _mine(bucket)
    where = {} if bucket.region == _OLD_REGION else {"LocationConstraint": bucket.region}
    with _answers(bucket):
        try:
            s3.create_bucket(Bucket=bucket.name, **({"CreateBucketConfiguration": where} if where else {}))
        except ClientError as error:
            if error.response["Error"]["Code"] != "BucketAlreadyOwnedByYou":
                raise
        else:
            # Not all of S3 knows a new bucket at once.
            s3.get_waiter("bucket_exists").wait(**mine, WaiterConfig={"Delay": 2, "MaxAttempts": 30})
        closed = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
        s3.put_public_access_block(**mine, PublicAccessBlockConfiguration=dict.fromkeys(closed, True))
        s3.put_bucket_policy(**mine, Policy=json.dumps(_tls_alone(bucket)))
        s3.put_bucket_tagging(**mine, Tagging={"TagSet": [{"Key": key, "Value": tags[key]} for key in tags]})


def arn(bucket: Bucket) -> str:
    """Its name as policies have it."""
    return f"arn:{account.partition(bucket.region)}:s3:::{bucket.name}"


def stands(bucket: Bucket) -> bool:
    """Whether it is there."""
    with _answers(bucket):
        return _or_none(lambda: _s3(bucket).head_bucket(**_mine(bucket))) is not None


def region_of(region: str, name: str) -> str:
    """Where a bucket of this account is; empty where that is not told. Within `account.answers`."""
    found = _or_none(lambda: account.client("s3", region).head_bucket(Bucket=name))
    return str(found["ResponseMetadata"]["HTTPHeaders"].get("x-amz-bucket-region", region)) if found else ""


def tags_of(region: str, name: str) -> list[dict[str, str]]:
    """What a bucket of this account is tagged with. Within `account.answers`."""
    found = _or_none(lambda: account.client("s3", region).get_bucket_tagging(Bucket=name))
    return list(found["TagSet"]) if found else []


def manifest(bucket: Bucket) -> Manifest | None:
    """What it has of the record of the cluster's present life; None where it has nothing.

    Raises:
        SpecError, BackendError, Unreachable: that cannot be known.
    """
    with _answers(bucket):
        text = _object(bucket, MANIFEST)
    if text is None:
        return None
    try:
        data = json.loads(text)
        if "ended" in data:
            return Manifest(str(data["ended"]), 0.0, {}, ended=True)
        files = {path: _file(*told) for path, told in data["files"].items()}
        return Manifest(str(data["life"]), float(data["at"]), files)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BackendError(f"s3://{bucket.name}/{MANIFEST} is no manifest of a record ({error!r})") from None


def fetch(bucket: Bucket, found: Manifest, folder: Path, known: Path) -> None:
    """Bring the record into an empty folder; what `known`, an older copy, has already is not asked for again.

    Raises:
        BackendError: a file is missing or not as the manifest has it.
    """
    for path, (size, digest, text) in found.files.items():
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise BackendError(f"s3://{bucket.name}/{MANIFEST} names {path!r}, which is no file of a record")
        data = _same(known / path, size, digest) if text is None else text.encode()
        if data is None:
            with _answers(bucket):
                data = _object(bucket, f"{PREFIX}{found.life}/{path}")
            if data is None or _md5(data[:size]) != digest:
                raise BackendError(f"s3://{bucket.name}/{PREFIX}{found.life}/{path} is not as the manifest has it")
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data[:size])


def end(bucket: Bucket, life: str) -> None:
    """Let the record of this life be that of an earlier one, for every computer; it stays."""
    with _answers(bucket):
        _s3(bucket).put_object(**_mine(bucket), Key=MANIFEST, Body=json.dumps({"ended": life}).encode())


def remove(bucket: Bucket) -> None:
    """Take it away with all that is in it; not there is as good."""
    s3 = _s3(bucket)
    with _answers(bucket):
        if _or_none(lambda: s3.head_bucket(**_mine(bucket))) is None:
            return
        for page in s3.get_paginator("list_objects_v2").paginate(**_mine(bucket)):
            if keys := [{"Key": item["Key"]} for item in page.get("Contents", [])]:
                s3.delete_objects(**_mine(bucket), Delete={"Objects": keys, "Quiet": True})
        s3.delete_bucket(**_mine(bucket))


def _s3(bucket: Bucket) -> Any:
    return account.client("s3", bucket.region)


def _mine(bucket: Bucket) -> dict[str, str]:
    return {"Bucket": bucket.name, "ExpectedBucketOwner": bucket.owner}


def _object(bucket: Bucket, key: str) -> bytes | None:
    found = _or_none(lambda: _s3(bucket).get_object(**_mine(bucket), Key=key))
    return found["Body"].read() if found else None


def _or_none(call: Any) -> Any:
    """The answer; None where what is asked for is not there."""
    try:
        return call()
    except ClientError as error:
        if error.response["Error"]["Code"] in _NOT_THERE:
            return None
        raise


@contextmanager
def _answers(bucket: Bucket) -> Iterator[None]:
    with account.answers(bucket.region):
        try:
            yield
        except ClientError as error:
            wrong = f"{error.operation_name}: {error.response['Error'].get('Message') or error}"
            raise SpecError(f"s3://{bucket.name}", wrong, "Have the right to it given to you.") from None


def _same(path: Path, size: int, digest: str) -> bytes | None:
    if not path.is_file() or path.stat().st_size < size:
        return None
    data = path.read_bytes()[:size]
    return data if _md5(data) == digest else None


def _file(size: int, digest: str, text: str | None = None) -> tuple[int, str, str | None]:
    return int(size), str(digest), text


def _md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _tls_alone(bucket: Bucket) -> dict[str, Any]:
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Deny",
                "Principal": "*",
                "Action": "s3:*",
                "Resource": [arn(bucket), f"{arn(bucket)}/*"],
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            }
        ],
    }
