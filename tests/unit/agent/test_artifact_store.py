"""Parts become artifacts only when all of them have arrived as they were sent."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from tfdeploy.agent.record import artifact_precedence, artifact_store
from tfdeploy.agent.record.artifact_manifest import load_manifest, stored_artifacts
from tfdeploy.agent.record.artifact_store import ArtifactStore, UploadUnknown
from tfdeploy.agent.record.artifacts import relative_checkpoint
from tfdeploy.agent.record.stored_artifact import (
    CLUSTER_LIMIT,
    LIMIT,
    MAX_BYTES,
    MAX_FILES,
    OTHER_MACHINE,
    RUN_LIMIT,
    LeftOut,
)

RUN = "0123456789ab"


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def declared(kind: str, name: str, files: dict[str, bytes], version: str = "1") -> dict[str, Any]:
    listed = [{"name": path, "size": len(data), "version": version} for path, data in files.items()]
    return {"kind": kind, "name": name, "files": listed}


class Sending:
    """A launcher that sends files."""

    def __init__(
        self, store: ArtifactStore, machine: str = "a", rank: int = 0, run: str = RUN, storage: str = ""
    ) -> None:
        self.store, self.machine, self.rank, self.run, self.storage = store, machine, rank, run, storage

    def begin(self, *items: dict[str, Any]) -> list[int]:
        return self.store.begin(self.run, self.machine, self.rank, list(items), storage=self.storage)

    def put(self, index: int, offset: int, data: bytes, sha256: str = "") -> int:
        return self.store.put(self.run, self.machine, index, offset, sha256 or sha(data), data)

    def finish(self, index: int, data: bytes) -> int:
        return self.store.finish_file(self.run, self.machine, index, sha(data))

    def send(self, kind: str, name: str, files: dict[str, bytes], version: str = "1") -> list[int]:
        """Declare one artifact and send what is not there."""
        ends = self.begin(declared(kind, name, files, version))
        for index, (end, data) in enumerate(zip(ends, files.values(), strict=True)):
            if end >= 0:
                self.put(index, end, data[end:])
                assert self.finish(index, data) == -1
        return ends

    def end(self, *left_out: LeftOut) -> list[str]:
        return [item.name for item in self.store.end(self.run, self.machine, list(left_out)).artifacts]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    (tmp_path / "runs" / RUN).mkdir(parents=True)
    return tmp_path / "runs"


@pytest.fixture
def sending(runs: Path) -> Sending:
    return Sending(ArtifactStore(runs))


def files(runs: Path, run: str = RUN) -> dict[str, bytes]:
    folder = runs / run / "artifacts"
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_artifact_is_stored_when_all_of_its_files_are_complete(runs: Path, sending: Sending) -> None:
    content = {"export/saved_model.pb": b"graph", "export/variables/v": b"values"}
    assert sending.begin(declared("model", "export", content)) == [0, 0]
    assert sending.put(0, 0, b"gra") == 3
    assert sending.finish(0, b"graph") == 3
    assert sending.put(0, 3, b"ph") == 5
    assert sending.finish(0, b"graph") == -1
    assert files(runs) == {}
    assert sending.put(1, 0, b"values") == 6
    assert sending.finish(1, b"values") == -1
    assert files(runs) == content
    assert sending.end() == ["export"]
    (row,), left_out = stored_artifacts(runs / RUN)
    assert (row.kind, row.name, row.path, row.size, row.is_complete, left_out) == (
        "model",
        "export",
        "export",
        11,
        True,
        [],
    )
    assert not (runs / RUN / "artifacts.draft").exists()


def test_a_part_with_another_hash_or_position_is_not_stored(sending: Sending) -> None:
    sending.begin(declared("keras", "k", {"k": b"content"}))
    assert sending.put(0, 0, b"con", sha(b"other")) == 0
    assert sending.put(0, 1, b"con") == 0
    assert sending.put(0, 0, b"content and more") == 0
    assert sending.put(0, 0, b"con") == 3


def test_a_file_with_another_hash_is_sent_again(runs: Path, sending: Sending) -> None:
    sending.begin(declared("keras", "k", {"k": b"content"}))
    sending.put(0, 0, b"damaged")
    assert sending.finish(0, b"content") == 0
    assert files(runs) == {}
    sending.put(0, 0, b"content")
    assert sending.finish(0, b"content") == -1
    assert files(runs) == {"k": b"content"}


def test_an_upload_continues_at_another_controller(runs: Path, sending: Sending) -> None:
    item = declared("keras", "k", {"k": b"content"})
    sending.begin(item)
    sending.put(0, 0, b"con")
    after = Sending(ArtifactStore(runs))
    with pytest.raises(UploadUnknown):
        after.put(0, 3, b"tent")
    assert after.begin(item) == [3]
    assert after.put(0, 3, b"tent") == 7
    assert after.finish(0, b"content") == -1
    assert after.begin(item) == [-1]
    assert after.begin(declared("keras", "k", {"k": b"content"}, "2")) == [0]


def test_what_has_arrived_of_files_that_are_not_declared_again_is_deleted(runs: Path, sending: Sending) -> None:
    other = Sending(sending.store, "b", 1)
    other.begin(declared("keras", "o", {"o": b"content"}))
    other.put(0, 0, b"con")
    for version in ("1", "2"):
        sending.begin(declared("keras", "k", {"k": b"content"}, version))
        sending.put(0, 0, b"con")
    assert len(list((runs / RUN / "artifacts.draft").iterdir())) == 2
    assert (sending.put(0, 3, b"t"), other.put(0, 3, b"t")) == (4, 4)


@pytest.mark.parametrize(
    "names", [["../x"], ["/etc/x"], [""], ["a/./b"], ["a", "a"], ["a", "a/b"], ["a\0b"], ["x" * 300], [1], [None]]
)
def test_names_outside_of_train_dir_are_refused(runs: Path, sending: Sending, names: list[Any]) -> None:
    listed = [{"name": name, "size": 1, "version": "1"} for name in names]
    with pytest.raises((ValueError, TypeError)):
        sending.begin({"kind": "files", "name": "x", "files": listed})
    assert files(runs) == {}


def test_the_limits_of_a_run_are_those_of_the_controller_too(sending: Sending) -> None:
    for size, count in ((MAX_BYTES + 1, 1), (1, MAX_FILES + 1), (-1, 1)):
        listed = [{"name": f"{number}", "size": size, "version": "1"} for number in range(count)]
        with pytest.raises(ValueError, match="has at most"):
            sending.begin({"kind": "files", "name": "x", "files": listed})


def test_a_second_upload_replaces_the_first_one(runs: Path, sending: Sending) -> None:
    sending.send("checkpoint", "ckpt-1", {"ckpt-1.index": b"1", "checkpoint": b"one"})
    sending.end()
    sending.send("checkpoint", "ckpt-2", {"ckpt-2.index": b"2", "checkpoint": b"two"}, "2")
    assert files(runs) == {"ckpt-2.index": b"2", "checkpoint": b"two"}
    assert sending.end() == ["ckpt-2"]
    sending.send("keras", "k", {"checkpoint/k": b"k"}, "3")
    assert files(runs) == {"checkpoint/k": b"k"}
    sending.begin()
    assert sending.end(LeftOut("k", 1, LIMIT)) == ["k"]


def test_of_two_machines_with_one_name_the_lower_rank_is_stored(runs: Path, sending: Sending) -> None:
    other = Sending(sending.store, "b", 1)
    other.send("keras", "k", {"k": b"other"})
    assert sending.send("keras", "k", {"k": b"first"}, "2") == [0]
    assert files(runs) == {"k": b"first"}
    assert other.begin(declared("keras", "k", {"k": b"other"})) == [-1]
    other.end()
    assert [(item.name, item.machine, item.reason) for item in load_manifest(runs / RUN).left_out] == [
        ("k", "b", OTHER_MACHINE)
    ]
    assert files(runs) == {"k": b"first"}


def test_what_two_machines_share_is_sent_once(runs: Path, sending: Sending) -> None:
    sending.send("keras", "k", {"k": b"first"})
    assert Sending(sending.store, "b", 1).begin(declared("keras", "k", {"k": b"first"})) == [-1]
    assert Sending(sending.store, "b", 1).end() == ["k"]
    assert files(runs) == {"k": b"first"}


@pytest.mark.parametrize(("first", "second"), [("", ""), ("1", "2"), ("", "2"), ("1", "")])
def test_of_two_storages_the_lower_rank_is_stored(runs: Path, sending: Sending, first: str, second: str) -> None:
    Sending(sending.store, "a", 0, storage=first).send("keras", "k", {"k": b"of the chief"})
    assert Sending(sending.store, "b", 1, storage=second).send("keras", "k", {"k": b"other"}, "2") == [-1]
    assert files(runs) == {"k": b"of the chief"}


@pytest.mark.parametrize("kind", ["keras", "files"])
def test_on_one_storage_what_either_machine_finds_later_is_newer(runs: Path, sending: Sending, kind: str) -> None:
    """Each machine uploads what it finds, so that the first has stored the file of the second, too."""
    first, second = (Sending(sending.store, name, rank, storage="1") for rank, name in enumerate("ab"))
    first.send(kind, "k", {"k": b"first"})
    first.end()
    for sender, content in ((second, b"second"), (first, b"third")):
        assert sender.send(kind, "k", {"k": content}, content.decode()) == [0]
        assert sender.end() == ["k"]
        assert files(runs) == {"k": content}
    assert load_manifest(runs / RUN).left_out == []


def checkpoint(name: str) -> tuple[str, str, dict[str, bytes]]:
    """What TensorFlow writes of a checkpoint, as `Sending.send` takes it."""
    folder, _, base = name.rpartition("/")
    text = f"{folder}/checkpoint" if folder else "checkpoint"
    return "checkpoint", name, {f"{name}.data-0": b"v" + name.encode(), f"{name}.index": b"i", text: base.encode()}


NEWEST = checkpoint("model.ckpt-500")


@pytest.mark.parametrize(
    ("later", "stored"),
    [
        ([], ["model.ckpt-500"]),
        ([("keras", "k", {"k": b"k"})], ["model.ckpt-500", "k"]),
        ([checkpoint("eval/model.ckpt-9")], ["model.ckpt-500", "eval/model.ckpt-9"]),
        ([checkpoint("model.ckpt-5")], ["model.ckpt-500", "model.ckpt-5"]),
        ([checkpoint("model.ckpt-5"), checkpoint("model.ckpt-10")], ["model.ckpt-500", "model.ckpt-10"]),
        ([checkpoint("model.ckpt-5"), checkpoint("model.ckpt-505")], ["model.ckpt-505"]),
        ([checkpoint("model.ckpt-505")], ["model.ckpt-505"]),
        ([("checkpoint", "other", {"other.index": b"o", "checkpoint": b"other"})], ["other"]),
    ],
    ids=["nothing", "a model", "of another folder", "behind", "behind twice", "behind, then newer", "newer", "renamed"],
)
@pytest.mark.parametrize("machine", ["a", "b"])
def test_only_a_newer_checkpoint_replaces_one(
    runs: Path, sending: Sending, machine: str, later: list[tuple[str, str, dict[str, bytes]]], stored: list[str]
) -> None:
    """The machine that follows has an empty disk: that it has nothing is not a reason to delete what may be the only copy."""
    sending.send(*NEWEST)
    sending.end()
    successor = Sending(ArtifactStore(runs), machine)
    for number, item in enumerate(later):
        successor.send(*item, version=str(number + 2))
        successor.end()
    assert successor.end() == stored
    assert [item.is_complete for item in stored_artifacts(runs / RUN)[0]] == [True] * len(stored)
    assert {name for name in files(runs) if name.endswith(".index")} == {f"{it}.index" for it in stored if it != "k"}


def test_an_upload_that_was_cut_short_replaces_nothing(runs: Path, sending: Sending) -> None:
    sending.send(*NEWEST)
    sending.end()
    sending.begin(declared(*checkpoint("model.ckpt-505"), version="2"))
    sending.put(0, 0, b"v")
    assert sending.end() == ["model.ckpt-500"]
    assert files(runs) == NEWEST[2]
    sending.begin(declared(*checkpoint("model.ckpt-505"), version="2"))
    assert sending.end(LeftOut("model.ckpt-505", 9, LIMIT)) == ["model.ckpt-500"]


def test_what_a_machine_has_no_more_is_beyond_the_limit_of_a_run_first(
    runs: Path, sending: Sending, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifact_precedence, "MAX_BYTES", 20)
    sending.send("checkpoint", "c-1", {"c-1.index": b"1234567890"}, version="9")
    for number in range(3):
        sending.send("keras", f"k{number}", {f"k{number}": b"12345"}, version=str(number))
        last = sending.end()
    assert last == ["c-1", "k1", "k2"], "the newest checkpoint stays, whatever is stored after it"
    assert load_manifest(runs / RUN).left_out == [LeftOut("k0", 5, RUN_LIMIT, "a")]
    assert files(runs).keys() == {"c-1.index", "k1", "k2"}


@pytest.mark.parametrize("name", ["ckpt.data-0", "my.data-set.csv", "train.data-1-of-2"])
@pytest.mark.parametrize("is_link", [False, True])
def test_what_a_program_writes_later_does_not_change_the_record(
    tmp_path: Path, runs: Path, sending: Sending, name: str, is_link: bool
) -> None:
    """Nothing is linked: the hash in the manifest is that of the file, whatever happens in `train_dir`."""
    source = tmp_path / name
    (tmp_path / "target").write_bytes(b"values")
    if is_link:
        source.symlink_to("target")
    else:
        source.write_bytes(b"values")
    item = declared("files", name, {name: b"values"}, str(source.lstat().st_mtime_ns))
    assert sending.begin(item) == [0]
    sending.put(0, 0, b"values")
    sending.finish(0, b"values")
    source.write_bytes(b"VALUES")
    stored = runs / RUN / "artifacts" / name
    assert (stored.read_bytes(), stored.is_symlink()) == (b"values", False)
    assert [file.sha256 for file in load_manifest(runs / RUN).files] == [sha(b"values")]


def test_a_disk_that_is_full_keeps_no_torn_part(runs: Path, sending: Sending, monkeypatch: pytest.MonkeyPatch) -> None:
    sending.begin(declared("keras", "k", {"k": b"content"}))
    sending.put(0, 0, b"con")
    (draft,) = (runs / RUN / "artifacts.draft").iterdir()

    def full(*_: Any) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        with pytest.raises(OSError, match="No space"):
            sending.put(0, 3, b"tent")
    assert draft.read_bytes() == b"con"
    assert sending.put(0, 3, b"tent") == 7
    assert sending.finish(0, b"content") == -1


def test_a_stored_file_that_was_lost_is_sent_and_stored_again(runs: Path, sending: Sending) -> None:
    sending.send("keras", "k", {"k": b"content"})
    sending.end()
    (runs / RUN / "artifacts/k").write_bytes(b"con")
    assert sending.send("keras", "k", {"k": b"content"}) == [0]
    sending.end()
    assert files(runs) == {"k": b"content"}


def test_the_oldest_runs_lose_their_artifacts_first(
    runs: Path, sending: Sending, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifact_store, "CLUSTER_BYTES", 10)
    for number, run in enumerate(("one", "two", "three")):
        (runs / run).mkdir()
        sender = Sending(sending.store, run=run)
        sender.send("keras", "k", {"k": b"12345"})
        sender.end()
        os.utime(runs / run / "artifacts.json", (number, number))
    assert sending.store.remove_excess("one") == ["two"]
    assert (files(runs, "one"), files(runs, "two"), files(runs, "three")) == ({"k": b"12345"}, {}, {"k": b"12345"})
    assert stored_artifacts(runs / "two") == ([], [LeftOut("k", 5, CLUSTER_LIMIT, "a")])
    assert sending.store.remove_excess("one") == []


DAMAGED = ["", "[]", "{", '{"artifacts": [{}], "left_out": []}', '{"artifacts": 1}', "[" * 100_000, "\0" * 50]


@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_manifest_is_that_of_the_folder(runs: Path, sending: Sending, text: str) -> None:
    (runs / RUN / "artifacts.json").write_text(text)
    assert stored_artifacts(runs / RUN) == ([], [])
    content = relative_checkpoint("model.ckpt-500").encode()
    sending.send("checkpoint", NEWEST[1], {**NEWEST[2], "checkpoint": content})
    (runs / RUN / "artifacts.json").write_text(text)
    (row,), _ = stored_artifacts(runs / RUN)
    assert (row.kind, row.name, row.is_complete) == ("checkpoint", "model.ckpt-500", True)
    sending.begin()
    assert sending.end() == ["model.ckpt-500"]
    sending.send(*checkpoint("model.ckpt-505"))
    assert sending.end() == ["model.ckpt-505"]


def test_a_manifest_that_cannot_be_read_is_not_an_empty_one(
    runs: Path, sending: Sending, monkeypatch: pytest.MonkeyPatch
) -> None:
    sending.send(*NEWEST)
    before = (runs / RUN / "artifacts.json").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda _: (_ for _ in ()).throw(OSError(5, os.strerror(5))))
        for action in (sending.begin, sending.end, lambda: sending.send(*checkpoint("model.ckpt-505"))):
            with pytest.raises(OSError, match="Input/output error"):
                action()
    assert (runs / RUN / "artifacts.json").read_bytes() == before
    assert files(runs) == NEWEST[2]
