"""Artifacts that are replaced: at any time the bucket has one of them whole, and no more objects than it needs."""

import json
import shutil
import time
from itertools import groupby
from pathlib import Path
from typing import IO, Any

import pytest

from tests.unit.backends.ec2.watchdog.sending import RUN, Sent, consistent, store, uploaded
from tfdeploy.agent.record.record import Record
from tfdeploy.backends.ec2.watchdog import record_upload
from tfdeploy.backends.ec2.watchdog.record_upload import PART, RecordUpload
from tfdeploy.backends.ec2.watchdog.s3 import PutError


def test_an_artifact_that_is_replaced_is_sent_from_its_start(
    record: Record, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, tail, now = f"runs/{RUN.id}/artifacts/k.keras", b"the same tail", 1000.0
    bringing = RecordUpload(record.folder, sent.put)

    def write(letter: bytes) -> bytes:
        content = letter * PART + tail
        store(record, {"k.keras": content})
        return content

    for letter in (b"a", b"b"):
        content = write(letter)
        assert bringing.upload()
        assert uploaded(sent.objects, consistent(sent.objects), listed, len(content)) == content

    def slow(key: str, body: bytes) -> None:
        nonlocal now
        now += record_upload.AT_ONCE
        sent.put(key, body)

    monkeypatch.setattr(time, "monotonic", lambda: now)
    bringing = RecordUpload(record.folder, slow)
    write(b"c")
    while not any("artifacts@" in key for key in sent.news()):
        bringing.upload()
    content = write(b"d")
    while not bringing.upload():
        pass
    assert uploaded(sent.objects, consistent(sent.objects), listed, len(content)) == content


def replace_checkpoint(record: Record, step: int, size: int = 9) -> None:
    index, data = f"index {step}".encode(), bytes([step]) * size
    store(
        record, {f"c-{step}": b"", f"c-{step}.data": data, f"c-{step}.index": index, "checkpoint": f"c-{step}".encode()}
    )


def checkpoint_in(objects: dict[str, bytes]) -> str:
    """The checkpoint that the bucket has whole."""
    told = consistent(objects)
    (artifact,) = json.loads(told["files"][f"runs/{RUN.id}/artifacts.json"][2])["artifacts"]
    for file in artifact["files"]:
        assert told["files"][f"runs/{RUN.id}/artifacts/{file['name']}"] == [file["size"], file["sha256"]]
    return str(artifact["name"])


def with_checkpoint(record: Record, sent: Sent) -> RecordUpload:
    """An upload that has the first checkpoint in the bucket."""
    replace_checkpoint(record, 1)
    bringing = RecordUpload(record.folder, sent.put)
    assert bringing.upload()
    return bringing


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_checkpoint_that_is_replaced_while_it_is_uploaded_is_whole_in_the_bucket(
    record: Record, sent: Sent, monkeypatch: pytest.MonkeyPatch, is_restarted: bool
) -> None:
    """However often it is replaced, and when the watchdog is restarted: until the new one is whole, the list has the former one."""
    replace_checkpoint(record, 1)
    bringing, now, seen = RecordUpload(record.folder, sent.put), 1000.0, []

    def slow(key: str, body: bytes) -> None:
        nonlocal now
        now += record_upload.AT_ONCE if "artifacts" in key else 0.0
        sent.put(key, body)

    assert bringing.upload()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    bringing = RecordUpload(record.folder, sent.put) if is_restarted else bringing
    monkeypatch.setattr(bringing, "_put", slow)
    for step in range(2, 12):
        replace_checkpoint(record, step, 2 * PART)
        bringing.upload()
        seen.append(checkpoint_in(sent.objects))
    assert [name for name, _ in groupby(seen)] == ["c-1", "c-2", "c-6"]


@pytest.mark.parametrize("is_first", [False, True])
def test_what_was_replaced_while_it_was_opened_is_opened_again(
    record: Record, sent: Sent, monkeypatch: pytest.MonkeyPatch, is_first: bool
) -> None:
    """The list has the former checkpoint meanwhile, and the next upload comes soon."""
    bringing = RecordUpload(record.folder, sent.put) if is_first else with_checkpoint(record, sent)
    replace_checkpoint(record, 2)
    open_ = Path.open

    def replaced_meanwhile(path: Path, mode: str = "r", **text: Any) -> IO[Any]:
        if path.parent.name == "artifacts":
            monkeypatch.setattr(Path, "open", open_)
            replace_checkpoint(record, 3)
        return open_(path, mode, **text)

    monkeypatch.setattr(Path, "open", replaced_meanwhile)
    assert not bringing.upload()
    assert is_first or checkpoint_in(sent.objects) == "c-1"
    assert bringing._next <= time.monotonic() + record_upload.AT_ONCE
    assert bringing.upload()
    assert checkpoint_in(sent.objects) == "c-3"


def test_an_upload_that_failed_sends_what_is_whole_not_again(record: Record, sent: Sent) -> None:
    """Also the next watchdog, of what is listed."""
    bringing = with_checkpoint(record, sent)
    replace_checkpoint(record, 2)
    sent.news()
    refused = sent.put

    def put(key: str, body: bytes) -> None:
        if body == b"c-2":
            raise PutError(key)
        refused(key, body)

    bringing._put = put
    with pytest.raises(PutError):
        bringing.upload()
    assert checkpoint_in(sent.objects) == "c-1"
    assert len([key for key in sent.news() if "artifacts@" in key]) == 2
    bringing._put = sent.put
    assert bringing.upload()
    assert len([key for key in sent.news() if "artifacts@" in key]) == 1
    assert RecordUpload(record.folder, sent.put).upload()
    assert not [key for key in sent.news() if "artifacts@" in key]


def test_artifacts_of_a_run_that_was_deleted_are_not_listed(record: Record, sent: Sent) -> None:
    bringing = with_checkpoint(record, sent)
    shutil.rmtree(record.run_folder(RUN.id))
    assert bringing.upload()
    assert not [name for name in sent.told["files"] if "artifacts" in name]


def test_checkpoints_that_replace_each_other_use_the_same_objects_again(record: Record, sent: Sent) -> None:
    bringing, counts = RecordUpload(record.folder, sent.put), []
    for step in range(1, 9):
        replace_checkpoint(record, step)
        assert bringing.upload()
        assert checkpoint_in(sent.objects) == f"c-{step}"
        counts.append(len([key for key in sent.objects if "artifacts" in key]))
    assert counts[-1] == counts[1] == 6
