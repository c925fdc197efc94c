"""Atomic writes: a file has its old content or its new one, and its mode from the beginning."""

from pathlib import Path

import pytest

from tfdeploy.agent.system.files import write_whole


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "name"
    write_whole(path, "old")
    write_whole(path, b"new", sync=True)
    assert [entry.name for entry in path.parent.iterdir()] == ["name"]
    assert path.read_text() == "new"


def test_a_private_file_is_private(tmp_path: Path) -> None:
    write_whole(tmp_path / "secret", "text", 0o600)
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_a_failed_write_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "name"
    write_whole(path, "old")
    monkeypatch.setattr("os.fsync", lambda number: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_whole(path, "new", sync=True)
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("name", "old")]


def test_a_file_that_must_be_on_disk_has_its_name_there_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr("os.fsync", lambda number: synced.append(Path(f"/proc/self/fd/{number}").resolve()))
    write_whole(tmp_path / "name", "text", sync=True)
    assert [path == tmp_path for path in synced] == [False, True]
    write_whole(tmp_path / "name", "text")
    assert len(synced) == 2
    write_whole(tmp_path / "name", "text", sync=True, sync_name=False)
    assert len(synced) == 3, "its content"
