"""Our signature of a PUT is botocore's, and objects are sent over one connection; against moto's S3."""

import threading
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials
from botocore.utils import percent_encode
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.backends.ec2 import s3 as s3_store
from tests.unit.backends.ec2.s3 import BUCKET, FOLDER, REGION, Store
from tfdeploy.backends.ec2.watchdog.s3 import Credentials, PutError, S3Folder, signed_headers, url_path


@pytest.fixture(scope="module")
def s3() -> Iterator[Store]:
    with s3_store.store() as found:
        yield found


def test_what_s3_says_is_told(s3: Store) -> None:
    bucket = S3Folder("other-records", "mnist-id", REGION, s3.endpoint, lambda: Credentials("key", "secret", ""))
    with pytest.raises(PutError, match=r"PUT mnist-id/record/x: 404 (.|\n)*NoSuchBucket"):
        bucket.put("record/x", b"")


@pytest.mark.parametrize(
    ("region", "host"),
    [("us-west-2", "records.s3.us-west-2.amazonaws.com"), ("cn-north-1", "records.s3.cn-north-1.amazonaws.com.cn")],
)
def test_aws_is_asked_by_the_buckets_own_host(region: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Connection:
        sock = None

        def __init__(self, host: str, timeout: float) -> None:
            asked.append(host)

        def request(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> None:
            asked.extend([method, path, headers["host"]])
            raise OSError("no way")

        def close(self) -> None:
            asked.append("closed")

    monkeypatch.setattr("tfdeploy.backends.ec2.watchdog.s3.HTTPSConnection", Connection)
    with pytest.raises(OSError, match="no way"):
        S3Folder(BUCKET, FOLDER, region, "", lambda: Credentials("key", "secret", "")).put("record/a b", b"")
    assert asked == [host, "PUT", f"/{FOLDER}/record/a%20b", host, "closed"]


NOW = datetime(2026, 11, 21, 12, 0, 1)


@settings(max_examples=examples(50))
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.binary())
def test_botocore_writes_and_signs_any_key_and_content_alike(key: str, body: bytes) -> None:
    assert url_path(key) == "/" + percent_encode(key, safe="/~")
    for where in ("https://records.s3.us-west-2.amazonaws.com", "http://127.0.0.1:5000/records"):
        place = urlsplit(where)
        address = place.path + url_path(key)
        who = Credentials("ASIAEXAMPLE", "secret/of+theirs", "token==")
        ours = signed_headers("PUT", place.netloc, address, {}, body, who, "us-west-2", f"{NOW:%Y%m%dT%H%M%SZ}")
        request = AWSRequest("PUT", f"{place.scheme}://{place.netloc}{address}", {}, body)
        with patch("botocore.auth.get_current_datetime", lambda *_: NOW):
            S3SigV4Auth(BotoCredentials(*who), "s3", "us-west-2").add_auth(request)
        assert ours["authorization"] == request.headers["Authorization"]


def test_objects_are_sent_over_one_connection_which_is_opened_again_when_s3_has_closed_it() -> None:
    connections, closes = [], threading.Event()

    class S3(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            connections.append(self.client_address)

        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.close_connection = closes.is_set()  # without a header that says so, as after a time without a request
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), S3) as server:
        threading.Thread(target=server.serve_forever).start()
        folder = S3Folder(
            "records",
            "x",
            "us-west-2",
            f"http://127.0.0.1:{server.server_port}",
            lambda: Credentials("key", "secret", ""),
        )
        for number in range(3):
            folder.put(f"{number}", b"content")
        assert len(connections) == 1
        closes.set()
        for number in range(3):
            folder.put(f"{number}", b"content")
        assert len(connections) == 3
        server.shutdown()
        folder._connection.close()
