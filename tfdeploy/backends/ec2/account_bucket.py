"""The S3 bucket that tfdeploy has in an account and a region. Each cluster has a folder in it: the keys that begin with `NAME-ID/`.

The bucket is created by the first cluster and is never deleted by tfdeploy, because several clusters, of several people, use it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from ...errors import SpecError
from .aws import account, api
from .aws.api import tag_values
from .aws.errors import Kind, aws_errors, error_code, kind_of
from .machine import model

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
