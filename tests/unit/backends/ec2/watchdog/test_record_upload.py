"""The record on its way into the bucket: what is sent, in which order, and what the list says; against moto's S3. Our signature
of a PUT is botocore's, and objects are sent over one connection."""

import threading
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
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
from tests.unit.backends.ec2.watchdog.sending import RUN, Sent, consistent, store, stored_record, uploaded
from tfdeploy.agent.model.events import RUN_SUBMITTED, Event
from tfdeploy.agent.model.run_state import RunResult, RunState
from tfdeploy.agent.record import record_files
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.record.record_files import RecordList, list_files
from tfdeploy.agent.system.files import append
from tfdeploy.backends.ec2.watchdog.record_upload import LIST, PART, RecordUpload
from tfdeploy.backends.ec2.watchdog.s3 import Credentials, PutError, S3Folder, signed_headers, url_path


def decide(record: Record, state: str) -> None:
    job = RunState(RUN, 1.0)
    job.result = RunResult(state, "", 2.0)
    record.save(job)


def test_the_list_is_the_one_that_a_controller_makes(record: Record, sent: Sent) -> None:
    """Also of a task that was removed, and of a run that is not the current one."""
    append(record.log(RUN.id, "worker-7").path(0), b"last words\n")
    append(record.log("earlier", "worker-0").path(0), b"earlier\n")
    store(record, {"k.keras": b"model"})
    (record.run_folder(RUN.id) / "search.json").write_text("{}")
    strange = ["artifacts.draft/0", ".events.jsonl.7.draft", "../../lock", "../../code/a.zip", "../../import/record_id"]
    for path in [record.run_folder(RUN.id) / name for name in strange]:
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    assert RecordUpload(record.folder, sent.put).upload()
    listed = {file.name: (file.size, file.text) for file in list_files(record.folder)}
    uploaded = RecordList.from_dict(sent.told)
    assert {file.name: (file.size, file.text) for file in uploaded.files} == listed
    assert (sent.told["part"], PART) == (record_files.PART, record_files.PART)


def test_a_verdict_is_brought_at_once(record: Record, sent: Sent) -> None:
    brought = RecordUpload(record.folder, sent.put)
    assert brought.due()
    assert brought.upload()
    assert not brought.due()
    record.add_events(RUN.id, [Event(RUN_SUBMITTED, 2.0)])
    assert not brought.due()
    decide(record, "succeeded")
    assert brought.due()
    assert brought.upload()
    assert not brought.due()
    assert sent.told["result"] == "succeeded"


def test_a_folder_that_s3_refuses_does_not_keep_the_others_back(record: Record, sent: Sent) -> None:
    for number in range(5):
        append(record.log(RUN.id, f"worker-{number}").path(0), b"one\n")
    brought = RecordUpload(record.folder, sent.put)
    sent.refused = "worker-0"
    for _ in range(3):
        with pytest.raises(PutError):
            brought.upload()
    files = consistent(sent.objects)["files"]
    assert f"runs/{RUN.id}/logs/worker-0/0.log" not in files
    assert all(f"runs/{RUN.id}/logs/worker-{number}/0.log" in files for number in range(1, 5))


def test_of_a_log_that_grows_only_its_last_part_is_sent_again(record: Record, sent: Sent) -> None:
    path = record.log(RUN.id, "worker-0").path(0)
    name = f"runs/{RUN.id}/logs/worker-0/0.log"
    brought = RecordUpload(record.folder, sent.put)
    content = b"step 1\n" + bytes(2 * PART)
    append(path, content[7:])
    assert brought.upload()
    sent.news()
    for more in (b"a", bytes(PART)):
        append(path, more)
        content += more
        assert brought.upload()
        assert uploaded(sent.objects, consistent(sent.objects), name, len(content)) == content
    assert sent.news() == [f"{name}@2", LIST, f"{name}@2", f"{name}@3", LIST]


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
WHERE = ["https://records.s3.us-west-2.amazonaws.com", "http://127.0.0.1:5000/records"]


def check(where: str, key: str, body: bytes) -> None:
    """Botocore makes the same header."""
    place = urlsplit(where)
    address = place.path + url_path(key)
    who = Credentials("ASIAEXAMPLE", "secret/of+theirs", "token==")
    ours = signed_headers("PUT", place.netloc, address, {}, body, who, "us-west-2", f"{NOW:%Y%m%dT%H%M%SZ}")
    request = AWSRequest("PUT", f"{place.scheme}://{place.netloc}{address}", {}, body)
    with patch("botocore.auth.get_current_datetime", lambda *_: NOW):
        S3SigV4Auth(BotoCredentials(*who), "s3", "us-west-2").add_auth(request)
    assert ours["authorization"] == request.headers["Authorization"]


@settings(max_examples=examples(50))
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.binary())
def test_botocore_writes_and_signs_any_key_and_content_alike(key: str, body: bytes) -> None:
    assert url_path(key) == "/" + percent_encode(key, safe="/~")
    for where in WHERE:
        check(where, key, body)


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


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """A record with a run and some output."""
    return stored_record(tmp_path / "record")


@pytest.fixture
def sent() -> Sent:
    return Sent()
