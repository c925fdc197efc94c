"""Parts become artifacts only when all of them have arrived as they were sent."""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.cases import no_space
from tfdeploy.agent.record import artifact_manifest, artifact_store
from tfdeploy.agent.record.artifact_manifest import load_manifest, stored_artifacts
from tfdeploy.agent.record.artifact_store import ArtifactStore, Drafts, store_draft
from tfdeploy.agent.record.restorable import restorable
from tfdeploy.agent.record.stored_artifact import CLUSTER_LIMIT, LIMIT, MAX_BYTES, MAX_FILES, RUN_LIMIT, LeftOut

RUN = "0123456789ab"


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def declared(kind: str, name: str, files: dict[str, bytes], version: str = "1") -> dict[str, Any]:
    listed = [{"name": path, "size": len(data), "version": version} for path, data in files.items()]
    return {"kind": kind, "name": name, "files": listed}


class Sending:
    def __init__(self, store: ArtifactStore, machine: str = "a", attempt: int = 1, run: str = RUN) -> None:
        self.store, self.machine, self.attempt, self.run = store, machine, attempt, run
        self.drafts: Drafts = {}
        self.names: list[str] = []

    def begin(self, *items: dict[str, Any], others: tuple[str, ...] = ()) -> dict[str, int]:
        """List artifacts; how much has arrived of the files that are wanted."""
        wanted = self.store.begin(self.run, self.machine, list(items), others)
        self.drafts = {name: draft for drafts in wanted for name, draft in drafts.items()}
        self.names = [item["name"] for item in items]
        return {name: end for name, (_, end) in self.drafts.items()}

    def put(self, name: str, offset: int, data: bytes) -> int:
        return self.store.put(self.run, self.machine, self.drafts[name][0], offset, data)

    def whole(self, item: dict[str, Any], content: dict[str, bytes]) -> dict[str, int]:
        """All files were sent; how much has arrived of those that are wanted again."""
        hashed = [{**file, "sha256": sha(content[file["name"]])} for file in item["files"]]
        drafts, self.is_refused = self.store.store(self.run, self.machine, self.attempt, {**item, "files": hashed})
        return {name: end for name, (_, end) in drafts.items()}

    def send(self, kind: str, name: str, files: dict[str, bytes], version: str = "1") -> dict[str, int]:
        """List one artifact and send what is not there."""
        item = declared(kind, name, files, version)
        ends = self.begin(item)
        for path, end in ends.items():
            assert self.put(path, end, files[path][end:]) == len(files[path])
        assert not ends or self.whole(item, files) == {}
        return ends

    def end(self, *left_out: LeftOut) -> list[str]:
        self.stored, self.left_out = self.store.end(self.run, self.machine, self.names, list(left_out))
        return [item.name for item in load_manifest(self.store._runs / self.run).artifacts]


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


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_an_artifact_is_stored_when_all_its_files_are_whole_and_not_before(tmp_path: Path, data: st.DataObject) -> None:
    """In whatever parts its files arrive, damaged or at a wrong place, and however often it is listed anew."""
    runs = Path(tempfile.mkdtemp(dir=tmp_path))
    (runs / RUN).mkdir()
    content = {"export/saved_model.pb": b"graph", "export/variables/v": b"values", "export/empty": b""}
    item, sender = declared("model", "export", content), Sending(ArtifactStore(runs))
    ends = sender.begin(item)
    for _ in range(data.draw(st.integers(0, 12))):
        name, size = data.draw(st.sampled_from(sorted(content))), data.draw(st.integers(0, 4))
        begin = ends[name] + data.draw(st.sampled_from([0, 0, 0, 1]))
        part = content[name][begin : begin + size]
        ends[name] = sender.put(name, begin, data.draw(st.sampled_from([part, part, part, b"damaged"[: len(part)]])))
        if data.draw(st.booleans()):
            sender = Sending(ArtifactStore(runs))
            ends = sender.begin(item)
        if data.draw(st.booleans()):
            ends.update(sender.whole(item, content))
        assert files(runs) in ({}, content)
        if files(runs):
            break
    while ends := sender.begin(item):
        for name, end in ends.items():
            sender.put(name, end, content[name][end:])
            assert files(runs) == {}
        sender.whole(item, content)
    assert files(runs) == content
    assert sender.end() == ["export"]
    (row,), left_out = stored_artifacts(runs / RUN)
    assert (row.kind, row.path, row.size, row.is_complete, left_out) == ("model", "export", 11, True, [])
    assert not (runs / RUN / "artifacts.draft").exists()


def test_only_what_a_machine_has_listed_is_taken(sending: Sending) -> None:
    sending.begin(declared("keras", "k", {"k": b"content"}))
    for machine, draft in (("b", sending.drafts["k"][0]), ("a", sending.drafts["k"][0][:-1] + "9"), ("a", "../../x")):
        with pytest.raises(ValueError, match="is not listed"):
            sending.store.put(RUN, machine, draft, 0, b"con")


def test_what_has_arrived_of_files_that_are_not_listed_again_is_deleted(runs: Path, sending: Sending) -> None:
    other = Sending(sending.store, "b", 1)
    other.begin(declared("keras", "o", {"o": b"content"}))
    other.put("o", 0, b"con")
    for version in ("1", "2"):
        sending.begin(declared("keras", "k", {"k": b"content"}, version))
        sending.put("k", 0, b"con")
    assert len(list((runs / RUN / "artifacts.draft").iterdir())) == 2
    assert (sending.put("k", 3, b"t"), other.put("o", 3, b"t")) == (4, 4)


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


def test_of_files_with_one_name_the_last_uploaded_are_stored_and_none_after(runs: Path, sending: Sending) -> None:
    for machine in ("b", "c", "a"):
        Sending(sending.store, machine).send("keras", "k", {"k": machine.encode()}, machine)
        assert files(runs) == {"k": machine.encode()}
    returned = Sending(sending.store, "b", attempt=0)
    returned.send("keras", "k", {"k": b"b"}, "b")
    assert (returned.is_refused, returned.end(), returned.stored) == (True, ["k"], [])
    returned.send("files", "*", {"k": b"b", "only-here": b"x"}, "b")
    assert (returned.is_refused, files(runs)) == (False, {"k": b"a", "only-here": b"x"})


def test_what_another_machine_uploads_now_of_a_shared_storage_is_not_wanted_twice(runs: Path, sending: Sending) -> None:
    content = {"k": b"first"}
    item, other = declared("keras", "k", content), Sending(sending.store, "b")
    assert (sending.begin(item), other.begin(item, others=("a",))) == ({"k": 0}, {})
    assert other.begin(declared("keras", "k", content, "2"), others=("a",)) == {"k": 0}, "another version"
    assert other.begin(item, others=("a",)) == {}
    assert (other.end(), files(runs)) == ([], {}), "it has stored nothing"
    sending.put("k", 0, b"fi")
    assert other.begin(item) == {"k": 0}, "the other is lost, and this one is the last"
    other.put("k", 0, b"first")
    assert other.whole(item, content) == {}
    assert (sending.begin(item), other.end(), files(runs)) == ({}, ["k"], content)


def test_shards_of_one_checkpoint_on_several_machines_are_all_stored(runs: Path, sending: Sending) -> None:
    """Parameter servers write them to their own disks."""
    for machine, shard in (("ps0", 0), ("ps1", 1)):
        data = {f"c-5.data-0000{shard}-of-00002": machine.encode(), f"c-5.index.{shard}": b"i"}
        Sending(sending.store, machine).send("checkpoint", "c-5", data)
    sending.send("checkpoint", "c-5", {"c-5.index": b"i", "checkpoint": b"c-5"})
    assert {name for name in files(runs) if ".data-" in name or name == "checkpoint"} == {
        "c-5.data-00000-of-00002",
        "c-5.data-00001-of-00002",
        "checkpoint",
    }
    sending.send("checkpoint", "c-6", {"c-6.index": b"i", "checkpoint": b"c-6"}, "2")
    assert set(files(runs)) == {"c-6.index", "checkpoint"}


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


@pytest.mark.parametrize("fails", ["first name", "last name", "list"])
def test_a_controller_that_is_killed_while_it_stores_an_artifact_has_the_former_one_or_this(
    runs: Path, sending: Sending, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    sending.send("model", "export", {"export/saved_model.pb": b"1", "export/variables/v": b"1"})
    names: list[str] = []

    def killed(*of: Any) -> None:
        names.append(str(of[-1]))
        if fails == "list" or len(names) == 1 + (fails == "last name"):
            raise KeyboardInterrupt
        store_draft(*of)

    monkeypatch.setattr(artifact_store, "save_artifacts" if fails == "list" else "store_draft", killed)
    with pytest.raises(KeyboardInterrupt):
        sending.send("model", "export", {"export/saved_model.pb": b"2", "export/variables/v": b"2"}, version="2")
    monkeypatch.undo()
    ArtifactStore(runs)
    assert (
        [file.sha256 for file in restorable(runs / RUN)]
        == [sha(data) for data in files(runs).values()]
        == 2 * [sha(b"2")]
    )
    assert load_manifest(runs / RUN).pending == []


def test_what_a_machine_has_no_more_is_beyond_the_limit_of_a_run_first(
    runs: Path, sending: Sending, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifact_manifest, "MAX_BYTES", 20)
    sending.send("checkpoint", "c-1", {"c-1.index": b"1234567890"}, version="9")
    for number in range(3):
        sending.send("keras", f"k{number}", {f"k{number}": b"12345"}, version=str(number))
        last = sending.end()
    assert last == ["c-1", "k1", "k2"], "the newest checkpoint stays, whatever is stored after it"
    assert load_manifest(runs / RUN).left_out == [LeftOut("k0", 5, RUN_LIMIT, "a")]
    assert files(runs).keys() == {"c-1.index", "k1", "k2"}


def test_a_disk_that_is_full_keeps_no_torn_part(runs: Path, sending: Sending, monkeypatch: pytest.MonkeyPatch) -> None:
    item = declared("keras", "k", {"k": b"content"})
    sending.begin(item)
    sending.put("k", 0, b"con")
    (draft,) = (runs / RUN / "artifacts.draft").iterdir()

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", no_space)
        with pytest.raises(OSError, match="No space"):
            sending.put("k", 3, b"tent")
    assert draft.read_bytes() == b"con"
    assert sending.put("k", 3, b"tent") == 7
    assert sending.whole(item, {"k": b"content"}) == {}


def test_a_stored_file_that_was_lost_is_sent_and_stored_again(runs: Path, sending: Sending) -> None:
    sending.send("keras", "k", {"k": b"content"})
    sending.end()
    (runs / RUN / "artifacts/k").write_bytes(b"con")
    assert sending.send("keras", "k", {"k": b"content"}) == {"k": 0}
    sending.end()
    assert files(runs) == {"k": b"content"}


def test_the_oldest_runs_lose_artifacts_first(runs: Path, sending: Sending, monkeypatch: pytest.MonkeyPatch) -> None:
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
    sending.send(*NEWEST)
    (runs / RUN / "artifacts.json").write_text(text)
    (row,), _ = stored_artifacts(runs / RUN)
    assert (row.kind, row.size, row.is_complete) == ("files", sum(map(len, NEWEST[2].values())), True)
    sending.begin()
    assert sending.end() == ["**"]
    sending.send(*checkpoint("model.ckpt-505"))
    assert sending.end() == ["**", "model.ckpt-505"]
    assert files(runs) == {**NEWEST[2], **checkpoint("model.ckpt-505")[2]}


def test_an_unreadable_manifest_is_not_empty(runs: Path, sending: Sending, monkeypatch: pytest.MonkeyPatch) -> None:
    sending.send(*NEWEST)
    before = (runs / RUN / "artifacts.json").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda _: (_ for _ in ()).throw(OSError(5, os.strerror(5))))
        for action in (sending.begin, sending.end, lambda: sending.send(*checkpoint("model.ckpt-505"))):
            with pytest.raises(OSError, match="Input/output error"):
                action()
    assert (runs / RUN / "artifacts.json").read_bytes() == before
    assert files(runs) == NEWEST[2]
