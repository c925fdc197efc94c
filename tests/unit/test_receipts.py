"""What is stored of a run on the computer that submitted it, and what is not."""

import os
from pathlib import Path

import pytest

from tests.clusters import cluster_ref
from tfdeploy import receipts
from tfdeploy.receipts import Receipt

RECEIPT = Receipt({"workers": "2"}, {"python": "3.11.7"}, {"c7i.large": 2})


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
    monkeypatch.setattr(receipts, "_MAX_BYTES", 25)
    for place, name in enumerate(("a", "b", "c")):
        receipts.write(cluster_ref(), name, RECEIPT)
        receipts.store_code(name, b"x" * 10)
        for path in state_folder.rglob(f"{name}.*"):
            os.utime(path, (place, place))
    receipts.write(cluster_ref(), "d", RECEIPT)
    assert [receipts.read(cluster_ref(), name) is not None for name in "abcd"] == [False, False, True, True]
    assert [receipts.code_path(name) is not None for name in "abc"] == [False, True, True]
    receipts.store_code("large", b"x" * 26)
    assert receipts.code_path("large") is None


def test_a_disk_that_cannot_be_written_is_ignored(state_folder: Path) -> None:
    state_folder.mkdir()
    (state_folder / "receipts").write_text("a file")
    (state_folder / "code").write_text("a file")
    receipts.write(cluster_ref(), "run1", RECEIPT)
    receipts.store_code("a", b"x")
    assert receipts.read(cluster_ref(), "run1") is None
