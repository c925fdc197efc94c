"""The stored code of a cluster's present run."""

import io
import zipfile
from pathlib import Path

import pytest

from tests.clusters import cluster_ref
from tfdeploy.backends import code_archives


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "tfdeploy"


def archive(text: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as target:
        target.writestr("train.py", text)
    return buffer.getvalue()


def test_the_code_of_the_present_run_and_of_the_planned_one_is_stored_and_no_other(state_folder: Path) -> None:
    other = cluster_ref(cluster_id="b" * 10)
    code_archives.store(other, "a", archive("other"))
    for name, present in (("a", ""), ("b", "a"), ("c", "b")):
        code_archives.store(cluster_ref(), name, archive(name), present)
    assert [code_archives.load(cluster_ref(), name) for name in "abc"] == [None, archive("b"), archive("c")]
    assert code_archives.load(other, "a") == archive("other")
    assert all(path.stat().st_mode & 0o077 == 0 for path in state_folder.rglob("*"))
    code_archives.delete(cluster_ref())
    assert code_archives.load(cluster_ref(), "c") is None
    assert code_archives.load(other, "a") == archive("other")


def test_a_disk_that_cannot_be_written_is_ignored(state_folder: Path) -> None:
    state_folder.mkdir()
    (state_folder / "code").write_text("a file")
    code_archives.store(cluster_ref(), "a", b"x")
    assert code_archives.load(cluster_ref(), "a") is None


def test_code_that_is_not_whole_is_not_shipped() -> None:
    whole = archive("print('training')" * 100)
    zeroed = whole.replace(b"training", bytes(8), 1)
    later_version = whole.replace(b"PK\x01\x02\x14\x03\x14", b"PK\x01\x02\x14\x03\xff")
    assert whole not in (zeroed, later_version)
    for damaged in (b"", whole[:-30], whole[:100], zeroed, later_version):
        code_archives.store(cluster_ref(), "code", damaged)
        assert code_archives.load(cluster_ref(), "code") is None
    code_archives.store(cluster_ref(), "code", whole)
    assert code_archives.load(cluster_ref(), "code") == whole
