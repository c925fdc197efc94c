"""Artifacts that are replaced: at any time the bucket has one of them whole, and no more objects than it needs."""

import errno
import hashlib
import json
import os
import shutil
import time
from itertools import groupby
from pathlib import Path

import pytest

from tests.unit.backends.ec2.watchdog.sending import RUN, Sent, consistent, uploaded
from tfdeploy.agent.record.artifact_manifest import ArtifactList, ManifestArtifact, ManifestFile, save_manifest
from tfdeploy.agent.record.record import Record
from tfdeploy.backends.ec2.watchdog import record_upload
from tfdeploy.backends.ec2.watchdog.record_upload import PART, RecordUpload


def test_an_artifact_that_is_replaced_is_sent_from_its_start(
    record: Record, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = record.artifacts_folder(RUN.id) / "k.keras"
    path.parent.mkdir(parents=True)
    listed, tail = path.relative_to(record.folder).as_posix(), b"the same tail"
    bringing, now = RecordUpload(record.folder, sent.put), 1000.0

    def write(content: bytes, changed: int) -> bytes:
        path.with_name("draft").write_bytes(content)
        os.utime(path.with_name("draft"), ns=(changed, changed))
        path.with_name("draft").replace(path)
        save_manifest(record.run_folder(RUN.id), ArtifactList())
        return content

    for changed, letter in enumerate((b"a", b"b"), 1):
        content = write(letter * PART + tail, changed)
        assert bringing.upload()
        assert uploaded(sent.objects, consistent(sent.objects), listed, len(content)).startswith(letter)

    def slow(key: str, body: bytes) -> None:
        nonlocal now
        now += record_upload.AT_ONCE
        sent.put(key, body)

    monkeypatch.setattr(time, "monotonic", lambda: now)
    bringing = RecordUpload(record.folder, slow)
    write(b"c" * PART + tail, 3)
    while not any("artifacts@" in key for key in sent.news()):
        bringing.upload()
    content = write(b"d" * PART + tail, 4)
    while not bringing.upload():
        pass
    assert uploaded(sent.objects, consistent(sent.objects), listed, len(content)).startswith(b"d")


def replace_checkpoint(record: Record, step: int, size: int = 9) -> None:
    """What a controller does when a newer checkpoint has arrived."""
    folder = record.artifacts_folder(RUN.id)
    files = {f"c-{step}.data": bytes([step]) * size, f"c-{step}.index": b"index", "checkpoint": f"c-{step}".encode()}
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / "draft").write_bytes(content)
        os.utime(folder / "draft", ns=(step, step))
        (folder / "draft").replace(folder / name)
    listed = [ManifestFile(name, len(data), "1", hashlib.sha256(data).hexdigest()) for name, data in files.items()]
    save_manifest(
        record.run_folder(RUN.id), ArtifactList([ManifestArtifact("checkpoint", f"c-{step}", "a", 0, listed)])
    )
    for path in folder.iterdir():
        if path.name not in files:
            path.unlink()


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
def test_what_was_replaced_while_it_was_linked_is_linked_again(
    record: Record, sent: Sent, monkeypatch: pytest.MonkeyPatch, is_first: bool
) -> None:
    """The list has the former checkpoint meanwhile, and the next upload comes soon."""
    bringing = RecordUpload(record.folder, sent.put) if is_first else with_checkpoint(record, sent)
    replace_checkpoint(record, 2)
    link = os.link

    def replaced_meanwhile(path: str, target: str) -> None:
        link(path, target)
        if Path(path).name == "checkpoint":
            monkeypatch.setattr(os, "link", link)
            replace_checkpoint(record, 3)

    monkeypatch.setattr(os, "link", replaced_meanwhile)
    assert not bringing.upload()
    assert is_first or checkpoint_in(sent.objects) == "c-1"
    assert bringing._next <= time.monotonic() + record_upload.AT_ONCE
    assert bringing.upload()
    assert checkpoint_in(sent.objects) == "c-3"


def test_a_full_disk_keeps_the_former_checkpoint_listed(
    record: Record, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    bringing = with_checkpoint(record, sent)
    replace_checkpoint(record, 2)
    link = os.link

    def full(path: str, target: str) -> None:
        if Path(path).name != "checkpoint":
            raise OSError(errno.ENOSPC, "No space left on device")
        link(path, target)

    with monkeypatch.context() as disk:
        disk.setattr(os, "link", full)
        assert not bringing.upload()
    assert checkpoint_in(sent.objects) == "c-1"
    assert bringing.upload()
    assert checkpoint_in(sent.objects) == "c-2"


def test_links_of_a_run_that_was_deleted_are_deleted(record: Record, sent: Sent) -> None:
    bringing = with_checkpoint(record, sent)
    links = record.folder / "uploading" / RUN.id
    assert (links / "artifacts" / "checkpoint").exists()
    shutil.rmtree(record.run_folder(RUN.id))
    assert bringing.upload()
    assert not links.exists()
    assert not [name for name in sent.told["files"] if "artifacts" in name]


def test_checkpoints_that_replace_each_other_use_the_same_objects_again(record: Record, sent: Sent) -> None:
    bringing, counts = RecordUpload(record.folder, sent.put), []
    for step in range(1, 9):
        replace_checkpoint(record, step)
        assert bringing.upload()
        assert checkpoint_in(sent.objects) == f"c-{step}"
        counts.append(len([key for key in sent.objects if "artifacts" in key]))
    assert counts[-1] == counts[1] == 6
