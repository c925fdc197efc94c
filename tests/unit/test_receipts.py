"""What is stored of a run on the computer that submitted it, and what is not."""

import io
import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.clusters import cluster_ref
from tests.unit.cases import plan
from tfdeploy import code_archives, receipts
from tfdeploy.receipts import Receipt, RunOutcome

SPEC = replace(plan(workers=2, env={"LR": "0.1"}).run, tasks=[])
RECEIPT = Receipt({"workers": "2"}, {"python": "3.11.7"}, {"c7i.large": 2}, SPEC, 3, 4096)
ENDED = RunOutcome(1.0, 91.0, "succeeded", "worker-0 succeeded", {"worker": 2}, {"accuracy": None}, 12.5, 0.08, True)


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "tfdeploy"


def test_a_receipt_is_private_and_is_read_back(state_folder: Path) -> None:
    receipts.write(cluster_ref(), "run1", RECEIPT)
    assert receipts.read(cluster_ref(), "run1") == RECEIPT
    assert receipts.read(cluster_ref(), "other") is None
    (path,) = state_folder.rglob("run1.json")
    assert path.stat().st_mode & 0o077 == 0
    path.write_text('{"options": 1')
    assert receipts.read(cluster_ref(), "run1") is None


def test_the_oldest_receipts_and_archives_are_deleted(monkeypatch: pytest.MonkeyPatch, state_folder: Path) -> None:
    monkeypatch.setattr(receipts, "_MAX_RECEIPTS", 2)
    monkeypatch.setattr(code_archives, "_MAX_BYTES", 25)
    for place, name in enumerate(("a", "b", "c")):
        receipts.write(cluster_ref(), name, RECEIPT)
        code_archives.store(name, b"x" * 10)
        for path in state_folder.rglob(f"{name}.*"):
            os.utime(path, (place, place))
    receipts.write(cluster_ref(), "d", RECEIPT)
    assert [receipts.read(cluster_ref(), name) is not None for name in "abcd"] == [False, False, True, True]
    assert [code_archives.find(name) is not None for name in "abc"] == [False, True, True]
    code_archives.store("large", b"x" * 26)
    assert code_archives.find("large") is None


def test_a_disk_that_cannot_be_written_is_ignored(state_folder: Path) -> None:
    state_folder.mkdir()
    (state_folder / "receipts").write_text("a file")
    (state_folder / "code").write_text("a file")
    receipts.write(cluster_ref(), "run1", RECEIPT)
    code_archives.store("a", b"x")
    assert receipts.read(cluster_ref(), "run1") is None


def test_receipts_of_other_versions_are_read(state_folder: Path) -> None:
    receipts.write(cluster_ref(), "run1", replace(RECEIPT, outcome=ENDED))
    path = next(state_folder.rglob("run1.json"))
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "later": 1, "outcome": {**data["outcome"], "later": 2}}))
    assert receipts.read(cluster_ref(), "run1") == replace(RECEIPT, outcome=ENDED)
    path.write_text(json.dumps({name: data[name] for name in ("options", "versions", "machines")}))
    assert receipts.read(cluster_ref(), "run1") == Receipt(RECEIPT.options, RECEIPT.versions, RECEIPT.machines)
    before = {name: value for name, value in data["outcome"].items() if name != "stays"}
    path.write_text(json.dumps({**data, "outcome": before}))
    assert receipts.read(cluster_ref(), "run1") == replace(RECEIPT, outcome=ENDED)
    path.write_text(json.dumps({**data, "outcome": {**before, "stays": [0.08, None]}}))
    read = receipts.read(cluster_ref(), "run1")
    assert read is not None
    assert read.outcome == replace(ENDED, stays=(0.08, None))
    path.write_text(json.dumps({**data, "outcome": {"submitted": "yesterday"}}))
    assert receipts.read_all(cluster_ref()) == {}


def test_all_clusters_have_one_limit(monkeypatch: pytest.MonkeyPatch, state_folder: Path) -> None:
    monkeypatch.setattr(receipts, "_MAX_ALL_RECEIPTS", 2)
    clusters = [cluster_ref(cluster_id=letter * 10) for letter in "abc"]
    for place, cluster in enumerate(clusters):
        receipts.write(cluster, "run1", RECEIPT)
        for path in state_folder.rglob(f"*{cluster['id']}/run1.json"):
            os.utime(path, (place, place))
    assert [list(receipts.read_all(cluster)) for cluster in clusters] == [[], ["run1"], ["run1"]]
    assert sorted(path.name for path in (state_folder / "receipts").iterdir()) == [
        "mnist-bbbbbbbbbb",
        "mnist-cccccccccc",
    ]


def test_the_receipt_of_a_run_that_has_ended_stays() -> None:
    later = replace(RECEIPT, machines={"c7i.large": 5})
    receipts.write_submitted(cluster_ref(), "run1", RECEIPT)
    receipts.write_outcome(cluster_ref(), "run1", replace(ENDED, ended=None, is_final=False))
    receipts.write_submitted(cluster_ref(), "run1", later)
    assert receipts.read(cluster_ref(), "run1") == replace(later, outcome=replace(ENDED, ended=None, is_final=False))
    receipts.write_outcome(cluster_ref(), "run1", ENDED)
    receipts.write_submitted(cluster_ref(), "run1", RECEIPT)
    assert receipts.read(cluster_ref(), "run1") == replace(later, outcome=ENDED)


def test_a_run_of_another_computer_gets_no_receipt() -> None:
    receipts.write_outcome(cluster_ref(), "run1", ENDED)
    assert receipts.read(cluster_ref(), "run1") is None


def test_the_size_of_stored_code() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("train.py", "12345")
        archive.writestr("empty", "")
    code_archives.store("good", buffer.getvalue())
    code_archives.store("damaged", b"x")
    assert [code_archives.size(name) for name in ("good", "damaged", "missing", "")] == [(2, 5), (0, 0), (0, 0), (0, 0)]
    assert (code_archives.load("good"), code_archives.load("missing")) == (buffer.getvalue(), None)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("cost", '"x"'),
        ("cost", "1e999"),
        ("steps_per_second", "NaN"),
        ("submitted", "1e300"),
        ("ended", '"x"'),
        ("tasks", '{"worker": 1e999}'),
        ("metrics", "1"),
    ],
)
def test_a_damaged_receipt_is_none(field: str, text: str, state_folder: Path) -> None:
    receipts.write(cluster_ref(), "run1", replace(RECEIPT, outcome=ENDED))
    path = next(state_folder.rglob("run1.json"))
    data = json.loads(path.read_text())
    data["outcome"][field] = "here"
    path.write_text(json.dumps(data).replace('"here"', text))
    assert receipts.read(cluster_ref(), "run1") is None
    path.write_text(json.dumps({**data, "code_files": 1}).replace('"code_files": 1', '"code_files": 1e999'))
    assert receipts.read_all(cluster_ref()) == {}


def test_code_that_is_not_whole_is_not_shipped(state_folder: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("train.py", "print('training')" * 100)
    whole = buffer.getvalue()
    zeroed = whole.replace(b"training", bytes(8), 1)
    later_version = whole.replace(b"PK\x01\x02\x14\x03\x14", b"PK\x01\x02\x14\x03\xff")
    assert whole not in (zeroed, later_version)
    for damaged in (b"", whole[:-30], whole[:100], zeroed, later_version):
        code_archives.store("code", damaged)
        assert code_archives.load("code") is None
    code_archives.store("code", later_version)
    assert code_archives.size("code") == (0, 0)
    code_archives.store("code", whole)
    assert code_archives.load("code") == whole
