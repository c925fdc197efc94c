"""The record on its way into the bucket: what is sent, in which order, and what the list says; against moto's S3."""

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.s3 import BUCKET, REGION, Store, store
from tfdeploy.agent.record import Record
from tfdeploy.agent.states import Job, Verdict
from tfdeploy.caretaker import upload
from tfdeploy.caretaker.bucket import Bucket, NotPut
from tfdeploy.caretaker.signing import Credentials
from tfdeploy.caretaker.upload import LIST, Upload

RUN: dict[str, Any] = {
    "id": "0123456789ab",
    "tasks": [{"hostname": "worker-0", "job": "worker", "index": 0}],
    "serve": False,
    "success": "worker 0",
}


class Sent:
    """Remembers what is put; refuses what it is told to."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.order: list[str] = []
        self.refused = ""

    def put(self, key: str, body: bytes) -> None:
        if self.refused and self.refused in key:
            raise NotPut(key)
        self.objects[key] = body
        self.order.append(key)

    def news(self) -> list[str]:
        """What has been put since the last call, without the life in it."""
        found, self.order = self.order, []
        return [key.split("/", 2)[2] if key != LIST else LIST for key in found]

    @property
    def told(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.objects[LIST])
        return told


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """A record with a run and some output."""
    record = Record(tmp_path / "record")
    record.save(Job(RUN, 1.0))
    record.live("first-life")
    record.event(RUN["id"], "run given", 1.0)
    for name in ("stdout", "index"):
        record.log(RUN["id"], "worker-0").streams[name].put(0, b"step 1\n")
    record.touch()
    return record


@pytest.fixture
def sent() -> Sent:
    return Sent()


def decide(record: Record, state: str) -> None:
    job = Job(RUN, 1.0)
    job.verdict = Verdict(state, "", 2.0)
    record.save(job)


def consistent(objects: dict[str, bytes]) -> dict[str, Any]:
    """The list, when each file that it names is there as it says."""
    told: dict[str, Any] = json.loads(objects[LIST])
    for name, (size, md5, *text) in told["files"].items():
        content = text[0].encode() if text else objects[f"record/{told['life']}/{name}"]
        assert bool(text) == (name.rpartition("/")[2] in ("life", "current", "job.json"))
        assert (size, md5) == (len(content), hashlib.md5(content).hexdigest())
    return told


def test_all_is_brought_and_the_list_comes_last(record: Record, sent: Sent) -> None:
    assert Upload(record.folder, sent.put).bring()
    assert sent.order[-1] == LIST
    told = consistent(sent.objects)
    assert (told["life"], told["run"], told["verdict"]) == ("first-life", RUN["id"], None)
    logs = f"runs/{RUN['id']}/logs/worker-0"
    account = {"alive", "current", "life", f"runs/{RUN['id']}/job.json", f"runs/{RUN['id']}/events.jsonl"}
    assert told["files"].keys() == account | {f"{logs}/stdout.0.log", f"{logs}/index.0.log"}
    assert sent.order[0].endswith("index.0.log")


def test_code_locks_and_drafts_stay(record: Record, sent: Sent) -> None:
    (record.folder / "code").mkdir()
    for name in ("code/0123.zip", "lock", "life.draft"):
        (record.folder / name).write_text("x")
    assert Upload(record.folder, sent.put).bring()
    assert not [key for key in sent.order if key.endswith((".zip", "lock", ".draft"))]


def test_only_what_has_changed_is_sent_again(record: Record, sent: Sent) -> None:
    brought = Upload(record.folder, sent.put)
    assert brought.bring()
    sent.news()
    record.touch()
    assert brought.bring()
    assert sent.news() == []
    record.event(RUN["id"], "worker-0 started", 2.0)
    assert brought.bring()
    assert sent.news() == [f"runs/{RUN['id']}/events.jsonl", LIST]
    consistent(sent.objects)


def test_what_has_not_changed_is_not_even_read(record: Record, sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    brought = Upload(record.folder, sent.put)
    assert brought.bring()
    read: list[str] = []
    original = Path.read_bytes

    def remembered(path: Path) -> bytes:
        read.append(path.name)
        return original(path)

    monkeypatch.setattr(Path, "read_bytes", remembered)
    assert brought.bring()
    assert sorted(read) == ["current", "job.json", "life"]


def test_a_file_that_goes_is_listed_no_more(record: Record, sent: Sent) -> None:
    brought = Upload(record.folder, sent.put)
    assert brought.bring()
    (record.folder / "runs" / RUN["id"] / "logs" / "worker-0" / "stdout.0.log").unlink()
    assert brought.bring()
    assert not [name for name in consistent(sent.objects)["files"] if "stdout" in name]


def test_a_verdict_is_brought_at_once(record: Record, sent: Sent) -> None:
    brought = Upload(record.folder, sent.put)
    assert brought.due()
    assert brought.bring()
    assert not brought.due()
    record.event(RUN["id"], "something", 2.0)
    assert not brought.due()
    decide(record, "succeeded")
    assert brought.due()
    assert brought.bring()
    assert not brought.due()
    assert sent.told["verdict"] == "succeeded"


def test_what_changes_is_brought_after_a_while(record: Record, sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    brought = Upload(record.folder, sent.put)
    assert brought.bring()
    now += upload.EVERY - 1
    assert not brought.due()
    now += 1
    assert brought.due()


def test_another_life_is_brought_whole(record: Record, sent: Sent) -> None:
    brought = Upload(record.folder, sent.put)
    assert brought.bring()
    sent.news()
    record.live("second-life")
    assert brought.bring()
    assert len(sent.news()) == 5
    assert consistent(sent.objects)["life"] == "second-life"


def test_what_has_not_arrived_is_not_listed_and_comes_later(record: Record, sent: Sent) -> None:
    brought = Upload(record.folder, sent.put)
    sent.refused = "stdout"
    with pytest.raises(NotPut):
        brought.bring()
    assert LIST not in sent.objects
    before = sent.news()
    sent.refused = ""
    assert brought.bring()
    assert not set(before) & set(sent.news())
    consistent(sent.objects)


def test_a_long_upload_goes_on_where_it_ended(record: Record, sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0

    def slow(key: str, body: bytes) -> None:
        nonlocal now
        now += upload.AT_ONCE / 2
        sent.put(key, body)

    monkeypatch.setattr(time, "monotonic", lambda: now)
    brought = Upload(record.folder, slow)
    rounds = 0
    while not brought.bring():
        rounds += 1
        assert brought.due()
        assert LIST not in sent.objects
    assert rounds == 1
    assert len(sent.order) == 5
    consistent(sent.objects)


def test_a_keeper_that_has_no_run_yet_has_a_record_too(tmp_path: Path, sent: Sent) -> None:
    (tmp_path / "life").write_text("young")
    assert Upload(tmp_path, sent.put).bring()
    assert (sent.told["run"], sent.told["verdict"]) == ("", None)


@pytest.fixture(scope="module")
def s3() -> Iterator[Store]:
    with store() as found:
        yield found


def test_s3_has_the_record_as_it_changes(record: Record, s3: Store) -> None:
    bucket = Bucket(BUCKET, REGION, s3.endpoint, lambda: Credentials("key", "secret", "token"))
    brought = Upload(record.folder, bucket.put)
    assert brought.bring()
    assert consistent(s3.objects())["verdict"] is None
    record.log(RUN["id"], "worker-0").streams["stdout"].put(7, "step 2: 0.9 ü\n".encode())
    decide(record, "succeeded")
    assert brought.bring()
    told = consistent(s3.objects())
    assert (told["verdict"], told["run"]) == ("succeeded", RUN["id"])
    log = s3.objects()[f"record/first-life/runs/{RUN['id']}/logs/worker-0/stdout.0.log"]
    assert log == "step 1\nstep 2: 0.9 ü\n".encode()


def test_what_s3_says_is_told(s3: Store) -> None:
    bucket = Bucket("other-records", REGION, s3.endpoint, lambda: Credentials("key", "secret", ""))
    with pytest.raises(NotPut, match=r"PUT record/x: 404 (.|\n)*NoSuchBucket"):
        bucket.put("record/x", b"")


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("us-west-2", "records.s3.us-west-2.amazonaws.com"),
        ("cn-north-1", "records.s3.cn-north-1.amazonaws.com.cn"),
    ],
)
def test_aws_is_asked_by_the_buckets_own_host(region: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Connection:
        def __init__(self, host: str, timeout: float) -> None:
            asked.append(host)

        def request(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> None:
            asked.extend([method, path, headers["host"]])
            raise OSError("no way")

        def close(self) -> None:
            asked.append("closed")

    monkeypatch.setattr("tfdeploy.caretaker.bucket.HTTPSConnection", Connection)
    with pytest.raises(OSError, match="no way"):
        Bucket(BUCKET, region, "", lambda: Credentials("key", "secret", "")).put("record/a b", b"")
    assert asked == [host, "PUT", "/record/a%20b", host, "closed"]


def test_credentials_are_asked_for_now_and_then(s3: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now, asked = 1000.0, []

    def credentials() -> Credentials:
        asked.append(now)
        return Credentials("key", "secret", "")

    monkeypatch.setattr("tfdeploy.caretaker.bucket.time.monotonic", lambda: now)
    bucket = Bucket(BUCKET, REGION, s3.endpoint, credentials)
    for wait in (0.0, 59.0, 1.0):
        now += wait
        bucket.put("record/x", b"")
    assert asked == [1000.0, 1060.0]
