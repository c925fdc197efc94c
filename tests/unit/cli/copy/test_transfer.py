"""Copies from a file server of this process: what arrives, what continues, and what a hostile or changing task leaves."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tfdeploy.agent.user_files import file_server
from tfdeploy.agent.user_files.file_messages import ABSOLUTE, FILE, ContentBegin, FileEntry
from tfdeploy.backends.task_files import Listing, TaskFiles, ThreadConnection
from tfdeploy.cli.copy import transfer
from tfdeploy.cli.copy.destination import find_destination
from tfdeploy.cli.copy.source import OpenSource
from tfdeploy.cli.copy.transfer import CopyResult, copy_to_stdout
from tfdeploy.errors import BackendError, Unreachable

BIG = bytes(range(256)) * 20_000
OLD = 1_000_000_000


class Breaking(ThreadConnection):
    """A connection that ends after so many bytes."""

    def __init__(self, folder: Path, count: int) -> None:
        super().__init__(folder)
        self._left = count

    def receive(self) -> bytes:
        data = super().receive()[: self._left] if self._left else b""
        self._left -= len(data)
        return data


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of a task."""
    folder = tmp_path / "task" / "model"
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"graph")
    (folder / "variables" / "data").write_bytes(BIG)
    (folder / "empty").write_bytes(b"")
    (folder / "variables" / "run.sh").write_bytes(b"#!")
    (folder / "variables" / "run.sh").chmod(0o755)
    for path in folder.rglob("*"):
        os.utime(path, (OLD, OLD))
    return folder


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    folder = tmp_path / "dest"
    folder.mkdir()
    return folder


@contextmanager
def source(path: Path, breaks_after: int = 0) -> Iterator[OpenSource]:
    connection = Breaking(path, breaks_after) if breaks_after else ThreadConnection(path)
    files = TaskFiles(connection)
    try:
        listing = files.list(ABSOLUTE, str(path))
        yield OpenSource(files, listing, path.name, f"worker-0 {path}")
    finally:
        files.close()


def copy(path: Path, dest: Path, breaks_after: int = 0, report: Callable[[int], None] = lambda _: None) -> CopyResult:
    with source(path, breaks_after) as opened:
        return transfer.copy(opened, find_destination(str(dest), opened.name, opened.is_folder), report)


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_arrives_with_all_that_is_in_it(root: Path, dest: Path) -> None:
    (root / "hollow").mkdir()
    reports: list[int] = []
    result = copy(root, dest, report=reports.append)
    assert tree(dest / "model") == tree(root)
    assert (dest / "model" / "hollow").is_dir()
    assert os.access(dest / "model" / "variables" / "run.sh", os.X_OK)
    assert not (dest / "model" / "saved_model.pb").stat().st_mode & 0o111
    size = len(BIG) + 7
    assert (result.files, result.bytes, result.received, result.failed) == (4, size, size, {})
    assert reports == sorted(reports)
    assert reports[-1] == size


def test_a_file_arrives_under_its_own_or_another_name(root: Path, dest: Path) -> None:
    copy(root / "saved_model.pb", dest)
    copy(root / "saved_model.pb", dest / "other.pb")
    assert tree(dest) == {"saved_model.pb": b"graph", "other.pb": b"graph"}


def test_a_file_that_was_interrupted_continues(root: Path, dest: Path) -> None:
    with pytest.raises(Unreachable):
        copy(root / "variables" / "data", dest, breaks_after=len(BIG) // 2)
    assert tree(dest).keys() != {"data"}
    (part,) = dest.iterdir()
    arrived = part.stat().st_size
    assert 0 < arrived < len(BIG)
    result = copy(root / "variables" / "data", dest)
    assert (result.received, result.bytes) == (len(BIG) - arrived, len(BIG))
    assert tree(dest) == {"data": BIG}


def test_a_folder_that_was_interrupted_continues(root: Path, dest: Path) -> None:
    with pytest.raises(Unreachable):
        copy(root, dest, breaks_after=len(BIG))
    before = tree(dest / "model")
    assert before["saved_model.pb"] == b"graph"
    result = copy(root, dest)
    assert result.received == len(BIG) + 7 - sum(map(len, before.values()))
    assert tree(dest / "model") == tree(root)


@pytest.mark.parametrize("content", [b"x" * 1000, BIG + b"more", BIG[:1000] + b"x"])
def test_a_part_that_is_not_the_beginning_of_the_file_is_discarded(root: Path, dest: Path, content: bytes) -> None:
    with pytest.raises(Unreachable):
        copy(root / "variables" / "data", dest, breaks_after=len(BIG) // 2)
    (part,) = dest.iterdir()
    part.write_bytes(content)
    assert copy(root / "variables" / "data", dest).received == len(BIG)
    assert tree(dest) == {"data": BIG}


def test_a_part_of_another_file_is_not_continued(root: Path, dest: Path) -> None:
    with pytest.raises(Unreachable):
        copy(root / "variables" / "data", dest, breaks_after=len(BIG) // 2)
    other = root.parent / "data"
    other.write_bytes(BIG)
    assert copy(other, dest).received == len(BIG)


def test_an_existing_file_is_replaced(root: Path, dest: Path) -> None:
    copy(root, dest)
    (root / "saved_model.pb").write_bytes(b"GRAPH")
    (root / "empty").write_bytes(b"full")
    (root / "variables" / "data").write_bytes(b"short")
    (dest / "model" / "other").write_bytes(b"stays")
    result = copy(root, dest)
    assert tree(dest / "model") == {**tree(root), "other": b"stays"}
    assert result.received == 5 + 4 + 5


def test_a_file_that_is_there_is_not_transferred(root: Path, dest: Path) -> None:
    copy(root, dest)
    result = copy(root, dest)
    assert (result.files, result.received) == (4, 0)
    assert tree(dest / "model") == tree(root)


def test_nothing_is_written_through_a_link_at_the_destination(root: Path, dest: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_bytes(b"mine")
    (dest / "model").mkdir()
    (dest / "model" / "variables").symlink_to(elsewhere)
    (dest / "model" / "saved_model.pb").symlink_to(elsewhere / "file")
    result = copy(root, dest)
    assert tree(elsewhere) == {"file": b"mine"}
    assert (dest / "model" / "saved_model.pb").read_bytes() == b"graph"
    assert result.failed == dict.fromkeys(
        ("variables", "variables/data", "variables/run.sh"), "something of that name is not a folder"
    )


def test_a_folder_in_place_of_a_file_is_not_replaced(root: Path, dest: Path) -> None:
    (dest / "model" / "saved_model.pb").mkdir(parents=True)
    result = copy(root, dest)
    assert result.failed == {"saved_model.pb": "Is a directory"}
    assert result.files == 3
    assert not [name for name in tree(dest) if name.endswith(".part")]


def test_what_is_left_out_is_named(root: Path, dest: Path) -> None:
    (root / "far").symlink_to("/etc/passwd")
    os.mkfifo(root / "pipe")
    result = copy(root, dest)
    assert result.skipped == {"far": "a link to /etc/passwd, outside of the folder", "pipe": "a pipe"}
    assert (result.files, result.failed) == (4, {})


def test_a_file_that_vanishes_is_named_and_the_others_arrive(root: Path, dest: Path) -> None:
    with source(root) as opened:
        (root / "saved_model.pb").unlink()
        result = transfer.copy(opened, find_destination(str(dest), "model", True), lambda _: None)
    assert result.failed == {"saved_model.pb": "No such file or directory"}
    assert tree(dest / "model") == tree(root)


@pytest.fixture
def changing(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Change a file in each of so many transfers, when its content was read once."""

    def change(count: int) -> None:
        original, changes = file_server._chunks, list(range(count))
        data = root / "variables" / "data"

        def chunks(file: Any, offset: int, size: int) -> Iterator[memoryview]:
            yield from original(file, offset, size)
            if changes and size == len(BIG):
                with data.open("r+b") as content:
                    content.write(b"change %d" % changes.pop())

        monkeypatch.setattr(file_server, "_chunks", chunks)

    return change


def test_a_file_that_changes_meanwhile_is_copied_again(root: Path, dest: Path, changing: Callable[[int], None]) -> None:
    changing(2)
    result = copy(root / "variables" / "data", dest)
    assert result.failed == {}
    assert tree(dest) == {"data": (root / "variables" / "data").read_bytes()}
    assert (dest / "data").read_bytes().startswith(b"change 0")


def test_a_file_that_keeps_changing_is_left_out(root: Path, dest: Path, changing: Callable[[int], None]) -> None:
    changing(100)
    (dest / "data").write_bytes(b"earlier")
    result = copy(root / "variables" / "data", dest)
    assert result.failed == {"data": "it changes while it is copied"}
    assert tree(dest) == {"data": b"earlier"}


def test_a_file_that_only_grows_is_copied_and_named(root: Path, dest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original, data = file_server._chunks, root / "variables" / "data"

    def chunks(*arguments: Any) -> Iterator[memoryview]:
        yield from original(*arguments)
        with data.open("ab") as file:
            file.write(b"more")

    monkeypatch.setattr(file_server, "_chunks", chunks)
    result = copy(data, dest)
    assert (result.grown, result.failed, tree(dest)) == (["data"], {}, {"data": BIG})


def test_bytes_that_are_damaged_on_the_way_are_not_given(
    root: Path, dest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = TaskFiles.parts

    def parts(files: TaskFiles, begin: ContentBegin) -> Iterator[memoryview]:
        for part in original(files, begin):
            yield memoryview(bytes(part).replace(b"graph", b"grape"))

    monkeypatch.setattr(TaskFiles, "parts", parts)
    result = copy(root / "saved_model.pb", dest)
    assert result.failed == {"saved_model.pb": "it does not arrive as it was sent"}
    assert tree(dest) == {}


def test_a_file_that_cannot_be_read_to_its_end_is_left_out(
    root: Path, dest: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    original = file_server._chunks

    def chunks(*arguments: Any) -> Iterator[memoryview]:
        yield next(original(*arguments))
        raise file_server._ReadFailed("Input/output error")

    monkeypatch.setattr(file_server, "_chunks", chunks)
    assert copy(root / "variables" / "data", dest).failed == {"data": "Input/output error"}
    assert tree(dest) == {}
    with source(root / "variables" / "data") as opened:
        assert copy_to_stdout(opened, lambda _: None).failed == {"data": "Input/output error"}
    assert capfdbinary.readouterr().out == b""


def test_a_full_disk_ends_the_copy(root: Path) -> None:
    with source(root / "variables" / "data") as opened, open("/dev/full", "r+b", buffering=0) as full:  # noqa: PTH123
        with pytest.raises(BackendError, match="No space left on device"):
            transfer._write(full, memoryview(b"x"))
        assert opened.size == len(BIG)


def test_stdout_gets_a_file_that_is_complete(
    root: Path, capfdbinary: pytest.CaptureFixture[bytes], changing: Callable[[int], None]
) -> None:
    with source(root / "variables" / "data") as opened:
        assert copy_to_stdout(opened, lambda _: None).failed == {}
    assert capfdbinary.readouterr().out == BIG
    changing(100)
    with source(root / "variables" / "data") as opened:
        assert copy_to_stdout(opened, lambda _: None).failed == {"data": "it changes while it is copied"}
    assert capfdbinary.readouterr().out == b""


def test_a_listing_that_contradicts_itself_stays_in_the_destination(root: Path, dest: Path) -> None:
    with source(root) as opened:
        entries = (FileEntry(FILE, "saved_model.pb", 5), FileEntry(FILE, "saved_model.pb/x", 5))
        twisted = replace(opened, listing=Listing(opened.listing.root, entries))
        result = transfer.copy(twisted, find_destination(str(dest), "model", True), lambda _: None)
    assert tree(dest) == {"model/saved_model.pb": b"graph"}
    assert result.failed.keys() == {"saved_model.pb/x"}
