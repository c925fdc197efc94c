"""What the client of the file server accepts from a task that may be hostile."""

import hashlib
from pathlib import Path

import pytest

from tfdeploy.agent.user_files.file_messages import (
    ABSOLUTE,
    END,
    FILE,
    FOLDER,
    SAME,
    SKIPPED,
    ContentBegin,
    ContentEnd,
    FileEntry,
    to_line,
)
from tfdeploy.agent.user_files.file_server import LENGTH
from tfdeploy.backends import task_files
from tfdeploy.backends.task_files import TaskFiles, ThreadConnection
from tfdeploy.errors import BackendError, Unreachable

ROOT = FileEntry(FOLDER, "/root")
STEP = 7


class Scripted:
    """A connection that delivers these bytes, some at a time, and then ends."""

    def __init__(self, data: bytes) -> None:
        self._parts = [data[start : start + STEP] for start in range(0, len(data), STEP)]

    def send(self, data: bytes) -> None:
        pass

    def end(self) -> None:
        pass

    def receive(self) -> bytes:
        return self._parts.pop(0) if self._parts else b""

    def why(self) -> str:
        return ""

    def close(self) -> None:
        pass


def lists(*entries: FileEntry) -> TaskFiles:
    return TaskFiles(Scripted(b"".join(map(to_line, [ROOT, *entries, FileEntry(END)]))))


def sends(*parts: bytes, size: int, offset: int = 0) -> TaskFiles:
    content = b"".join(LENGTH.pack(len(part)) + part for part in parts)
    return TaskFiles(
        Scripted(to_line(ContentBegin(offset, size)) + content + LENGTH.pack(0) + to_line(ContentEnd(SAME)))
    )


def test_entries_arrive_in_parts() -> None:
    entries = (FileEntry(FOLDER, "a"), FileEntry(FILE, "a/b", 3))
    assert lists(*entries).list(ABSOLUTE, "").entries == entries


@pytest.mark.parametrize(
    "name",
    ["..", "../x", "a/../../x", "a/..", "/etc/passwd", "", ".", "a//b", "a/", "./a", "a\0b", "a\ud800"],
)
def test_a_name_that_leads_out_of_the_folder_is_refused(name: str) -> None:
    for kind in (FILE, FOLDER):
        with pytest.raises(BackendError, match="nothing is copied"):
            lists(FileEntry(kind, name)).list(ABSOLUTE, "")


@pytest.mark.parametrize("name", ["...", "..a", "a b", "a\nb", "-", "a\\b", "\udcff"])
def test_every_other_name_is_accepted(name: str) -> None:
    assert lists(FileEntry(FILE, name)).list(ABSOLUTE, "").entries[0].name == name


@pytest.mark.parametrize("entry", [FileEntry("strange", "a"), FileEntry(FILE, "a", -1)])
def test_an_entry_that_is_none_is_refused(entry: FileEntry) -> None:
    with pytest.raises(BackendError):
        lists(entry).list(ABSOLUTE, "")


def test_more_entries_than_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_files, "MAX_ENTRIES", 2)
    names = [FileEntry(FILE, name) for name in "abc"]
    assert len(lists(*names[:2]).list(ABSOLUTE, "").entries) == 2
    with pytest.raises(BackendError, match="/root has more than 2 files"):
        lists(*names).list(ABSOLUTE, "")


def test_names_without_end_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_files, "MAX_LISTING", 10)
    for entry in (FileEntry(FILE, "123456"), FileEntry(SKIPPED, "", reason="123456")):
        with pytest.raises(BackendError, match="very long names"):
            lists(entry, entry).list(ABSOLUTE, "")


@pytest.mark.parametrize("data", [b"x" * 200_000, b"\xff\n", b"[]\n", b'{"kind": 5}\n', b"[" * 60_000 + b"\n"])
def test_what_is_not_a_message_is_refused(data: bytes) -> None:
    with pytest.raises(BackendError, match="something else than files"):
        TaskFiles(Scripted(data)).list(ABSOLUTE, "")


def test_a_content_arrives_in_parts() -> None:
    files = sends(b"0123456789", b"abc", size=13)
    assert b"".join(files.parts(files.read("", 0, ""))) == b"0123456789abc"
    assert files.end() == ContentEnd(SAME)


@pytest.mark.parametrize("files", [sends(b"0123", b"4", size=4), sends(b"x", size=4, offset=4)])
def test_more_content_than_announced_is_refused(files: TaskFiles) -> None:
    with pytest.raises(BackendError, match="something else than files"):
        list(files.parts(files.read("", 4, "")))


@pytest.mark.parametrize("offset", [-1, 1, 3])
def test_an_offset_that_was_not_requested_is_refused(offset: int) -> None:
    with pytest.raises(BackendError, match="something else than files"):
        sends(size=10, offset=offset).read("", 2, "")


def test_the_end_of_the_connection_is_an_error() -> None:
    for data in (b"", b'{"kind": "folder"', to_line(ROOT)):
        with pytest.raises(Unreachable):
            TaskFiles(Scripted(data)).list(ABSOLUTE, "")
    files = TaskFiles(Scripted(to_line(ContentBegin(0, 9)) + LENGTH.pack(9) + b"012"))
    with pytest.raises(Unreachable):
        list(files.parts(files.read("", 0, "")))


def test_files_of_this_computer(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(range(256)) * 20_000)
    (tmp_path / "a").chmod(0o600)
    files = TaskFiles(ThreadConnection(tmp_path))
    try:
        assert files.list(ABSOLUTE, str(tmp_path)).entries == (FileEntry(FILE, "a", 256 * 20_000, 0o600),)
        received = b"".join(files.parts(files.read("a", 0, "")))
        assert received == (tmp_path / "a").read_bytes()
        assert files.end().sha256 == hashlib.sha256(received).hexdigest()
        assert files.has("a", len(received), hashlib.sha256(received).hexdigest())
        assert not files.has("a", 1, hashlib.sha256(received[:1]).hexdigest())
        assert not files.has("a", len(received), "")
    finally:
        files.close()
