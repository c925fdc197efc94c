"""Where a copy is written: as for `cp`, and never through a link or out of the destination."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tfdeploy.cli.copy.destination import find_destination, make_folder, write_file
from tfdeploy.errors import SpecError


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


def test_a_file_has_its_name_once_it_is_complete_and_the_mode_of_the_one_before(folder: Path) -> None:
    (folder / "file").chmod(0o640)

    def parts() -> Iterator[bytes]:
        yield b"ne"
        assert (folder / "file").read_text() == "old"
        (part,) = folder.glob(".*.part")
        assert part.stat().st_mode & 0o777 == 0o640
        yield b"w"

    write_file(folder / "file", 0o755, parts())
    assert (folder / "file").read_text() == "new"
    assert (folder / "file").stat().st_mode & 0o777 == 0o640
    assert not list(folder.glob(".*.part"))


def test_what_others_may_not_read_stays_so(folder: Path) -> None:
    write_file(folder / "private", 0o600, [b"x"])
    write_file(folder / "program", 0o4755, [b"x"])
    make_folder(folder / "closed", 0o700)
    modes = [(folder / name).stat().st_mode & 0o7777 for name in ("private", "program", "closed")]
    assert modes[::2] == [0o600, 0o700]
    assert (modes[1] & 0o100, modes[1] & 0o7000) == (0o100, 0)
