"""What of a task's files is sent for `tfdeploy cp`, and what is said of the rest."""

import io
import json
import os
import socket
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tfdeploy.agent.launch import copy_archive
from tfdeploy.agent.launch.copy_archive import (
    ABSOLUTE,
    FILE,
    FOLDER,
    MISSING,
    NO_PROGRAM,
    REFUSED,
    TRAIN_DIR,
    WORK,
    Begin,
    End,
    send_archive,
)
from tfdeploy.agent.launch.exec import ProgramContext


def sent(path: str, base: str = ABSOLUTE) -> tuple[Begin, dict[str, bytes | None], End]:
    """What is said of a path, the files and folders (None) that arrive, and what is said at the end."""
    stream = io.BytesIO()
    send_archive(Path("/nowhere"), base, path, stream)
    stream.seek(0)
    with tarfile.open(fileobj=stream) as arrived:
        contents = {member.name: file.read() if (file := arrived.extractfile(member)) else None for member in arrived}
    begin, end = contents.pop("begin"), contents.pop("end", b"{}")
    assert begin is not None
    assert end is not None
    return Begin.from_dict(json.loads(begin)), contents, End.from_dict(json.loads(end))


@pytest.fixture
def while_sent(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Do something when the content of a file was read."""

    def do(action: Callable[[], Any]) -> None:
        class Changing(copy_archive._Padded):
            def read(self, size: int) -> bytes:
                data = super().read(size)
                action()
                return data

        monkeypatch.setattr(copy_archive, "_Padded", Changing)

    return do


def test_links_to_files_in_the_folder_are_followed_and_no_others(tmp_path: Path) -> None:
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
    begin, contents, end = sent(str(root))
    assert begin == Begin(FOLDER, str(root), 4)
    assert contents["content/to-file"] == b"12"
    assert end.skipped.keys() == {"out", "far", "dangling", "round", "real/up", "to-folder"}
    assert end.skipped["far"] == "a link to /etc/passwd, outside of the folder"
    assert end.skipped["to-folder"] == f"a link to {root}/real, which is not a file"
    assert not any("etc" in name or "rootless" in name for name in contents)


def test_what_is_neither_file_nor_folder_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        assert sent(str(tmp_path))[2].skipped == {"pipe": "a pipe", "socket": "a socket"}
    assert sent(str(tmp_path / "pipe"))[0] == Begin(REFUSED, str(tmp_path / "pipe"), reason="a pipe")


def test_what_does_not_exist_is_reported_with_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    assert sent(str(tmp_path / "no" / "such"))[0] == Begin(MISSING, str(tmp_path), names=["model/"])


def test_without_a_program_there_is_no_working_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sent(".", WORK)[0] == Begin(NO_PROGRAM)
    monkeypatch.setattr(copy_archive, "program_context", lambda *_: ProgramContext("/", {}))
    refused = sent(".", TRAIN_DIR)[0]
    assert (refused.kind, "TFDEPLOY_TRAIN_DIR" in refused.reason) == (REFUSED, True)


@pytest.mark.parametrize(
    ("content", "name"),
    [(b"01234X6789", "changed"), (b"01", "changed"), (b"0123456789more", "grown"), (b"0123456789", "")],
)
def test_a_file_that_changes_meanwhile_is_named(tmp_path: Path, while_sent: Any, content: bytes, name: str) -> None:
    """As much as it had before arrives, and what follows in the archive is in its place."""
    (tmp_path / "file").write_bytes(b"0123456789")
    (tmp_path / "other").write_bytes(b"other")
    os.utime(tmp_path / "file", (1_000_000_000, 1_000_000_000))
    changes = [lambda: (tmp_path / "file").write_bytes(content)] if name else []
    while_sent(lambda: changes and changes.pop()())
    _, contents, end = sent(str(tmp_path))
    assert contents["content/file"] == b"0123456789"
    assert contents["content/other"] == b"other"
    assert (end.changed, end.grown) == (["file"] * (name == "changed"), ["file"] * (name == "grown"))


def test_a_file_that_ends_early_or_fails_disturbs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(copy_archive._Padded):
        def read(self, size: int) -> bytes:
            if size == 3:
                self.error = "Input/output error"
                return b"\0" * size
            return super().read(size)

    monkeypatch.setattr(copy_archive, "_Padded", Failing)
    (tmp_path / "bad").write_bytes(b"123")
    (tmp_path / "good").write_bytes(b"12345")
    _, contents, end = sent(str(tmp_path))
    assert (contents["content/good"], end.failed) == (b"12345", {"bad": "Input/output error"})
    short = copy_archive._Padded(io.BytesIO(b"12"))
    assert short.read(5) == b"12\0\0\0"


def test_a_file_that_is_sent_alone_is_the_content(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    begin, contents, _ = sent(str(tmp_path / "file"))
    assert (begin, contents) == (Begin(FILE, str(tmp_path / "file"), 10), {"content": b"0123456789"})
