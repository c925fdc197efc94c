"""Which files of a task are listed, and what is sent of one that changes meanwhile."""

import hashlib
import io
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tfdeploy.agent.launch.exec import ProgramContext
from tfdeploy.agent.user_files import file_listing, file_server
from tfdeploy.agent.user_files.file_messages import (
    ABSOLUTE,
    CHANGED,
    COMPARE,
    END,
    FAILED,
    FILE,
    FOLDER,
    GROWN,
    LIST,
    MISSING,
    NO_PROGRAM,
    READ,
    REFUSED,
    SAME,
    SKIPPED,
    TRAIN_DIR,
    WORK,
    ContentBegin,
    ContentEnd,
    FileEntry,
    FileRequest,
    from_line,
    to_line,
)

OLD = 1_000_000_000


def hashed(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def respond(*requests: FileRequest) -> io.BytesIO:
    """What the server sends for these requests."""
    responses = io.BytesIO()
    assert file_server.serve_files(Path("/nowhere"), io.BytesIO(b"".join(map(to_line, requests))), responses) == 0
    responses.seek(0)
    return responses


def entries(stream: io.BytesIO) -> list[FileEntry]:
    found: list[FileEntry] = []
    while not found or found[-1].kind != END:
        found.append(from_line(FileEntry, stream.readline()))
    return found[:-1]


def listed(path: Path) -> list[FileEntry]:
    return entries(respond(FileRequest(LIST, ABSOLUTE, str(path))))


def read(path: Path, offset: int = 0, sha256: str = "", verb: str = READ) -> tuple[ContentBegin, bytes, ContentEnd]:
    """What is sent of a file."""
    requests = FileRequest(LIST, ABSOLUTE, str(path)), FileRequest(verb, path="", offset=offset, sha256=sha256)
    stream = respond(*requests)
    entries(stream)
    begin, content = from_line(ContentBegin, stream.readline()), b""
    while length := file_server.LENGTH.unpack(stream.read(file_server.LENGTH.size))[0]:
        content += stream.read(length)
    return begin, content, from_line(ContentEnd, stream.readline())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that was written long ago."""
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    os.utime(path, (OLD, OLD))
    return path


@pytest.fixture
def while_sent(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Do something when the content of a file was read once."""

    def do(action: Callable[[], Any]) -> None:
        actions = [action]
        original = file_server._chunks

        def chunks(*arguments: Any) -> Any:
            yield from original(*arguments)
            while actions:
                actions.pop()()

        monkeypatch.setattr(file_server, "_chunks", chunks)

    return do


def test_a_folder_is_listed_with_all_that_is_below_it(tmp_path: Path) -> None:
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "b" / "c" / "z").write_bytes(b"123")
    (tmp_path / "a").write_bytes(b"")
    modes = {"": 0o755, "a": 0o755, "b": 0o750, "b/c": 0o700, "b/c/z": 0o600}
    for name, mode in modes.items():
        (tmp_path / name).chmod(mode)
    found = listed(tmp_path)
    assert found[0] == FileEntry(FOLDER, str(tmp_path), mode=0o755)
    assert found[1:] == [
        FileEntry(FILE, "a", mode=0o755),
        FileEntry(FOLDER, "b", mode=0o750),
        FileEntry(FOLDER, "b/c", mode=0o700),
        FileEntry(FILE, "b/c/z", 3, 0o600),
    ]


def test_links_are_followed_inside_of_the_folder_alone(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "real").mkdir(parents=True)
    (root / "real" / "file").write_bytes(b"12")
    (tmp_path / "rootless").mkdir()
    links = {
        "to-file": "real/file",
        "to-folder": "real",
        "out": "../rootless",
        "far": "/etc/passwd",
        "dangling": "nothing",
        "round": "round",
        "real/up": "..",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    found = {entry.name: entry for entry in listed(root)[1:]}
    assert (found["to-file"].kind, found["to-file"].size) == (FILE, 2)
    assert found["to-folder"].kind == FOLDER
    assert found["to-folder/file"].size == 2
    assert {name for name, entry in found.items() if entry.kind == SKIPPED} == {
        "out",
        "far",
        "dangling",
        "round",
        "real/up",
        "to-folder/up",
    }
    assert found["far"].reason == "a link to /etc/passwd, outside of the folder"
    assert "contains it" in found["real/up"].reason


def test_a_file_that_has_content_and_no_size_does_not_arrive_as_an_empty_one() -> None:
    _, content, end = read(Path("/proc/self/status"))
    assert (content, end.state) == (b"", FAILED)
    assert "no size" in end.reason


def test_a_program_whose_environment_is_lost_has_no_train_dir(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not that of the file server."""
    monkeypatch.setattr(file_server, "program_context", lambda *_: ProgramContext("/", {}))
    refused = from_line(FileEntry, respond(FileRequest(LIST, TRAIN_DIR, "")).readline())
    assert (refused.kind, "TFDEPLOY_TRAIN_DIR" in refused.reason) == (REFUSED, True)


def test_a_folder_with_too_many_names_is_not_listed_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client refuses it, and the memory of the container may be small."""
    monkeypatch.setattr(file_listing, "MAX_ENTRIES", 2)
    for name in "abcde":
        (tmp_path / name).touch()
    assert len(listed(tmp_path)[1:]) == 3


def test_the_server_ends_with_its_client(tmp_path: Path) -> None:
    """Also while it sends a large file, and what it writes is read on, as an engine does."""
    with (tmp_path / "large").open("wb") as large:
        large.truncate(1 << 40)
    client, server = socket.socketpair()
    with client, server, server.makefile("rb") as requests, Path(os.devnull).open("wb") as responses:
        client.sendall(to_line(FileRequest(LIST, ABSOLUTE, str(tmp_path))) + to_line(FileRequest(READ, path="large")))
        client.shutdown(socket.SHUT_WR)
        assert file_server.serve_files(Path("/nowhere"), requests, responses) == 0


def test_what_is_neither_file_nor_folder_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        assert listed(tmp_path)[1:] == [
            FileEntry(SKIPPED, "pipe", reason="a pipe"),
            FileEntry(SKIPPED, "socket", reason="a socket"),
        ]
    assert listed(tmp_path / "pipe") == [FileEntry(REFUSED, str(tmp_path / "pipe"), reason="a pipe")]
    for path in (tmp_path, tmp_path / "pipe"):
        assert read(path)[2] == ContentEnd(FAILED, reason="it is not a file any more")


def test_a_name_may_be_of_any_bytes(tmp_path: Path) -> None:
    name = os.fsdecode(b"a\xff\n\x1b[31mb")
    (tmp_path / name).write_bytes(b"")
    assert [entry.name for entry in listed(tmp_path)[1:]] == [name]


def test_what_does_not_exist_is_reported_with_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    assert listed(tmp_path / "no" / "such") == [FileEntry(MISSING, str(tmp_path)), FileEntry(FOLDER, "model")]


def test_without_a_program_there_is_no_working_directory() -> None:
    assert from_line(FileEntry, respond(FileRequest(LIST, WORK, "x")).readline()) == FileEntry(NO_PROGRAM)


def test_a_file_is_sent_whole_or_from_where_the_client_has_it(file: Path) -> None:
    whole = ContentEnd(SAME, hashed(b"0123456789"))
    assert read(file) == (ContentBegin(0, 10), b"0123456789", whole)
    assert read(file, 4, hashed(b"0123")) == (ContentBegin(4, 10), b"456789", whole)
    assert read(file, 4, hashed(b"012x")) == (ContentBegin(0, 10), b"0123456789", whole)
    assert read(file, 11, hashed(b"0123456789x")) == (ContentBegin(0, 10), b"0123456789", whole)


def test_a_file_that_the_client_has_is_compared_only(file: Path) -> None:
    assert read(file, 10, hashed(b"0123456789"), COMPARE)[:2] == (ContentBegin(10, 10), b"")
    assert read(file, 10, hashed(b"x123456789"), COMPARE)[:2] == (ContentBegin(0, 10), b"")


def test_a_file_that_changes_meanwhile_is_reported(file: Path, while_sent: Any) -> None:
    while_sent(lambda: file.write_bytes(b"01234X6789"))
    assert read(file)[1:] == (b"0123456789", ContentEnd(CHANGED, hashed(b"0123456789")))


def test_a_file_that_becomes_shorter_is_reported(file: Path, while_sent: Any) -> None:
    while_sent(lambda: file.write_bytes(b"01"))
    assert read(file)[2].state == CHANGED


def test_a_file_that_only_grows_is_sent_up_to_its_size_before(file: Path, while_sent: Any) -> None:
    while_sent(lambda: file.open("ab").write(b"more"))
    assert read(file) == (ContentBegin(0, 10), b"0123456789", ContentEnd(GROWN, hashed(b"0123456789")))


def test_a_change_that_the_time_of_change_does_not_show_is_found(file: Path, while_sent: Any) -> None:
    """File systems count the time of change in steps, so a second change right after the first has the same."""
    os.utime(file)
    before = file.stat()

    def change() -> None:
        file.write_bytes(b"01234X6789")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    while_sent(change)
    assert read(file)[2].state == CHANGED


def test_a_file_that_is_replaced_meanwhile_is_sent_as_it_was(file: Path, while_sent: Any) -> None:
    def replace() -> None:
        (file.parent / "new").write_bytes(b"abcdefghij")
        (file.parent / "new").replace(file)

    while_sent(replace)
    assert read(file)[1:] == (b"0123456789", ContentEnd(SAME, hashed(b"0123456789")))


def test_nothing_outside_of_the_listed_folder_is_sent(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    (root / "link").symlink_to("../secret")
    for name in ("link", "../secret", str(tmp_path / "secret")):
        stream = respond(FileRequest(LIST, ABSOLUTE, str(root)), FileRequest(READ, path=name))
        assert b"secret\n" not in stream.getvalue()
        assert b"it is outside of the folder" in stream.getvalue()


@pytest.mark.parametrize("line", [b"[]", b"1", b"x", b'{"name": 1}', b'{"size": "1"}', b'{"size": true}', b"[" * 9000])
def test_what_is_not_a_message_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_line(FileEntry, line)


def test_fields_of_a_newer_version_are_ignored() -> None:
    assert from_line(FileEntry, b'{"kind": "file", "name": "a", "owner": 5}') == FileEntry(FILE, "a")
