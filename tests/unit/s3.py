"""An S3 of moto's in this process, with one bucket."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

BUCKET, REGION = "records", "us-west-2"


class Store:
    """What is in the bucket."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.client: Any = boto3.client(
            "s3", REGION, endpoint_url=endpoint, aws_access_key_id="test", aws_secret_access_key="test"
        )
        self.client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})

    def objects(self) -> dict[str, bytes]:
        """Key to content."""
        found = self.client.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        return {one["Key"]: self.client.get_object(Bucket=BUCKET, Key=one["Key"])["Body"].read() for one in found}


@contextmanager
def store() -> Iterator[Store]:
    """The bucket, empty, until the block ends."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    found = Store(f"http://{host}:{port}")
    try:
        yield found
    finally:
        for key in found.objects():
            found.client.delete_object(Bucket=BUCKET, Key=key)
        found.client.delete_bucket(Bucket=BUCKET)
        server.stop()
