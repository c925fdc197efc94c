"""An S3 of moto's in this process, with one bucket."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

BUCKET, FOLDER, REGION = "records", "mnist-k3v9x2abcd", "us-west-2"


class Store:
    """What is in the bucket."""

    def __init__(self, endpoint: str, prefix: str) -> None:
        self.endpoint = endpoint
        self._prefix = prefix
        self.client: Any = boto3.client(
            "s3", REGION, endpoint_url=endpoint, aws_access_key_id="test", aws_secret_access_key="test"
        )
        self.client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})

    def objects(self) -> dict[str, bytes]:
        found = self.client.list_objects_v2(Bucket=BUCKET, Prefix=self._prefix).get("Contents", [])
        contents = {one["Key"]: self.client.get_object(Bucket=BUCKET, Key=one["Key"])["Body"].read() for one in found}
        return {key.removeprefix(self._prefix): content for key, content in contents.items()}

    def clear(self) -> None:
        for item in self.client.list_objects_v2(Bucket=BUCKET).get("Contents", []):
            self.client.delete_object(Bucket=BUCKET, Key=item["Key"])
        self.client.delete_bucket(Bucket=BUCKET)


@contextmanager
def store(prefix: str = f"{FOLDER}/") -> Iterator[Store]:
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    found = Store(f"http://{host}:{port}", prefix)
    try:
        yield found
    finally:
        found.clear()
        server.stop()
