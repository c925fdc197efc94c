"""Where a copy is written: as for `cp`, and never through a link or out of the destination."""

import hashlib
import os
from pathlib import Path

import pytest

from tfdeploy.cli.copy.destination import (
    Part,
    TargetFolder,
    existing_content,
    find_destination,
    part_name,
    refuse_in_source,
)
from tfdeploy.errors import BackendError, SpecError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "there").mkdir()
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("there")
    return tmp_path


@pytest.mark.parametrize("is_folder", [False, True])
@pytest.mark.parametrize(
    ("text", "path"),
    [(".", "model"), ("there", "there/model"), ("there/", "there/model"), ("link", "there/model"), ("new", "new")],
)
def test_an_existing_folder_gets_the_copy_under_its_own_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, path: str, is_folder: bool
) -> None:
    monkeypatch.chdir(folder)
    assert find_destination(text, "model", is_folder) == folder / path


def test_a_new_folder_may_end_with_a_slash(folder: Path) -> None:
    assert find_destination(f"{folder}/new/", "model", True) == folder / "new"


def test_a_file_is_replaced_also_behind_a_link(folder: Path) -> None:
    (folder / "to-file").symlink_to("file")
    assert find_destination(str(folder / "file"), "model", False) == folder / "file"
    assert find_destination(str(folder / "to-file"), "model", False) == folder / "file"


@pytest.mark.parametrize(
    ("text", "is_folder", "wrong"),
    [
        ("file", True, "is a file, and the source is a folder"),
        ("pipe", False, "neither a file nor a folder"),
        ("new/", False, "new does not exist"),
        ("new/model", False, "new does not exist"),
        ("new/model", True, "new does not exist"),
        ("file/model", False, "file does not exist"),
        ("round", False, "cannot be written"),
        ("x" * 300, False, "File name too long"),
    ],
)
def test_what_cannot_be_written_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, is_folder: bool, wrong: str
) -> None:
    monkeypatch.chdir(folder)
    os.mkfifo("pipe")
    Path("round").symlink_to("round")
    with pytest.raises(SpecError, match=wrong):
        find_destination(text, "model", is_folder)


def test_folders_are_created_and_links_are_not_followed(folder: Path) -> None:
    target = TargetFolder(folder)
    try:
        with target.subfolder("a/b") as descriptor:
            assert os.fstat(descriptor).st_ino == (folder / "a" / "b").stat().st_ino
        for name in ("link", "link/a", "file/a"):
            with pytest.raises(OSError, match=r"."), target.subfolder(name):
                pass
        assert list((folder / "there").iterdir()) == []
    finally:
        target.close()


def part(folder: int, source: str = "s", mode: int = 0o644) -> Part:
    return Part(folder, "file", source, mode)


@pytest.fixture
def descriptor(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY)


def test_a_part_continues_and_becomes_the_file(folder: Path, descriptor: int) -> None:
    (folder / "file").chmod(0o640)
    first = part(descriptor)
    first.file.write(b"ne")
    first.close()
    assert (folder / "file").read_text() == "old"
    second = part(descriptor)
    assert second.file.read() == b"ne"
    second.file.write(b"w")
    second.complete()
    second.close()
    assert (folder / "file").read_text() == "new"
    assert (folder / "file").stat().st_mode & 0o777 == 0o640
    assert not [path for path in folder.iterdir() if path.name.endswith(".part")]


def test_a_part_of_another_source_is_another_one(descriptor: int) -> None:
    first = part(descriptor)
    first.file.write(b"first")
    second = part(descriptor, "other")
    assert second.file.read() == b""
    first.close()
    second.close()


def test_a_program_is_executable_and_nothing_more(folder: Path, descriptor: int) -> None:
    (folder / "file").unlink()
    first = part(descriptor, mode=0o755)
    first.complete()
    first.close()
    mode = (folder / "file").stat().st_mode
    assert (mode & 0o100, mode & 0o7000) == (0o100, 0)


def test_what_others_may_not_read_stays_so(folder: Path, descriptor: int) -> None:
    (folder / "file").unlink()
    first = part(descriptor, mode=0o600)
    first.complete()
    first.close()
    assert (folder / "file").stat().st_mode & 0o777 == 0o600
    second = part(descriptor, mode=0o644)
    assert os.fstat(second.file.fileno()).st_mode & 0o777 == 0o600
    second.close()
    target = TargetFolder(folder)
    with target.subfolder("private", 0o700):
        assert (folder / "private").stat().st_mode & 0o777 == 0o700
    target.close()


@pytest.mark.parametrize("text", ["", "/inner", "/inner/copy"])
def test_nothing_is_written_into_the_source(tmp_path: Path, text: str) -> None:
    source = tmp_path / "train_dir"
    (source / "inner").mkdir(parents=True)
    destination = find_destination(f"{source}{text}" if text else str(tmp_path), "train_dir", True)
    with pytest.raises(SpecError, match="the source"):
        refuse_in_source(destination, source)
    refuse_in_source(destination, tmp_path / "train")


def test_two_copies_do_not_write_one_part(descriptor: int) -> None:
    first = part(descriptor)
    with pytest.raises(BackendError, match="another `tfdeploy cp`"):
        part(descriptor)
    first.close()


@pytest.mark.parametrize("kind", ["link", "pipe", "hard link"])
def test_a_part_that_is_not_our_file_is_not_written(folder: Path, descriptor: int, kind: str) -> None:
    name = part_name("file", "s")
    if kind == "link":
        (folder / name).symlink_to("there/victim")
    elif kind == "pipe":
        os.mkfifo(folder / name)
    else:
        (folder / "victim").write_text("")
        (folder / name).hardlink_to(folder / "victim")
    with pytest.raises((OSError, BackendError)):
        part(descriptor)
    assert not (folder / "there" / "victim").exists()


def test_the_part_of_a_long_name_has_a_valid_name(tmp_path: Path) -> None:
    for name in ("x" * 255, "\u00e9" * 127, os.fsdecode(b"\xff" * 255)):
        (tmp_path / part_name(name, "s")).write_bytes(b"")


def test_only_a_file_of_the_same_size_is_compared(folder: Path, descriptor: int) -> None:
    held = existing_content(descriptor, "file", 3)
    assert held is not None
    assert (held.size, held.sha256) == (3, hashlib.sha256(b"old").hexdigest())
    (folder / "to-file").symlink_to("file")
    for name, size in (("file", 4), ("no", 3), ("there", 3), ("to-file", 3)):
        assert existing_content(descriptor, name, size) is None
