"""Our signature of a PUT is botocore's, and objects are sent over one connection."""

import threading
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials
from botocore.utils import percent_encode
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tfdeploy.backends.ec2.watchdog.s3 import Credentials, S3Folder, signed_headers, url_path

ROLE = Credentials("ASIAEXAMPLE", "secret/of+theirs", "token==")
USER = Credentials("AKIAEXAMPLE", "secret", "")
NOW = datetime(2026, 11, 21, 12, 0, 1)
WHERE = ["https://records.s3.us-west-2.amazonaws.com", "http://127.0.0.1:5000/records"]


def of_botocore(
    url: str, headers: dict[str, str], body: bytes, who: Credentials, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The header that botocore makes."""
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda *_: NOW)
    request = AWSRequest("PUT", url, headers, body)
    S3SigV4Auth(BotoCredentials(who.key, who.secret, who.token or None), "s3", "us-west-2").add_auth(request)
    return str(request.headers["Authorization"])


def check(where: str, key: str, body: bytes, who: Credentials) -> None:
    """Both make the same of it."""
    place = urlsplit(where)
    address = place.path + url_path(key)
    ours = signed_headers("PUT", place.netloc, address, {}, body, who, "us-west-2", f"{NOW:%Y%m%dT%H%M%SZ}")
    with pytest.MonkeyPatch.context() as patch:
        theirs = of_botocore(f"{place.scheme}://{place.netloc}{address}", {}, body, who, patch)
    assert ours["authorization"] == theirs


@settings(max_examples=examples(50))
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.binary())
def test_botocore_signs_any_key_and_content_alike(key: str, body: bytes) -> None:
    for where in WHERE:
        check(where, key, body, ROLE)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_botocore_writes_any_key_alike(key: str) -> None:
    assert url_path(key) == "/" + percent_encode(key, safe="/~")


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
        folder = S3Folder("records", "x", "us-west-2", f"http://127.0.0.1:{server.server_port}", lambda: USER)
        for number in range(3):
            folder.put(f"{number}", b"content")
        assert len(connections) == 1
        closes.set()
        for number in range(3):
            folder.put(f"{number}", b"content")
        assert len(connections) == 3
        server.shutdown()
        folder._connection.close()
