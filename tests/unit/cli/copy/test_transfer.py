"""What arrives of an archive, and what a hostile or interrupted task leaves."""

import io
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.unit.cases import no_space
from tfdeploy.agent.launch.copy_archive import ABSOLUTE, FOLDER
from tfdeploy.backends.connection import LocalFiles
from tfdeploy.cli.copy import transfer
from tfdeploy.cli.copy.transfer import ArrivingFiles, CopyResult, copy_to_stdout
from tfdeploy.errors import BackendError, Unreachable

STEP = 1000


class Scripted:
    """A connection that delivers these bytes, some at a time, and then ends."""

    def __init__(self, data: bytes, why: str = "") -> None:
        self._parts = [data[start : start + STEP] for start in range(0, len(data), STEP)]
        self._why = why

    def send(self, data: bytes) -> None:
        pass

    def end(self) -> None:
        pass

    def receive(self) -> bytes:
        return self._parts.pop(0) if self._parts else b""

    def why(self) -> str:
        return self._why

    def close(self) -> None:
        pass


def archived(members: Mapping[str, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
    """An archive with a beginning, these members, and an end."""
    stream = io.BytesIO()
    said = {"begin": json.dumps({"kind": FOLDER}).encode(), "end": b"{}"}
    with tarfile.open(mode="w|", fileobj=stream) as archive:
        for name, content in {"begin": said["begin"], **members, "end": said["end"]}.items():
            member = tarfile.TarInfo(name)
            if name not in said:
                member.type, member.linkname = kind, "/etc"
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "task" / "model"
    (folder / "variables").mkdir(parents=True)
    (folder / "variables" / "hollow").mkdir()
    (folder / "saved_model.pb").write_bytes(b"graph")
    (folder / "empty").write_bytes(b"")
    (folder / "variables" / "run.sh").write_bytes(b"#!")
    (folder / "variables" / "run.sh").chmod(0o700)
    return folder


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    folder = tmp_path / "dest"
    folder.mkdir()
    return folder


def copy(path: Path, dest: Path, report: Callable[[int], None] = lambda _: None) -> CopyResult:
    connection = LocalFiles(path, ABSOLUTE, str(path))
    try:
        return transfer.copy(ArrivingFiles(connection), path.name, dest / path.name, report)
    finally:
        connection.close()


def tree(folder: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")
    }


def test_a_folder_arrives_with_all_that_is_in_it(root: Path, dest: Path) -> None:
    reports: list[int] = []
    result = copy(root, dest, reports.append)
    assert tree(dest / "model") == tree(root)
    assert (dest / "model" / "variables" / "run.sh").stat().st_mode & 0o777 == 0o700
    assert not (dest / "model" / "saved_model.pb").stat().st_mode & 0o111
    assert result == CopyResult(3, 7)
    assert reports[-1] == 7


def test_an_existing_folder_is_merged(root: Path, dest: Path) -> None:
    copy(root, dest)
    (root / "saved_model.pb").write_bytes(b"GRAPH!")
    (dest / "model" / "other").write_bytes(b"stays")
    copy(root, dest)
    assert tree(dest / "model") == {**tree(root), "other": b"stays"}


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
    names = ("variables", "variables/hollow", "variables/run.sh")
    assert result.failed == dict.fromkeys(names, "something of that name is not a folder")


OUTSIDE = ("content/../out", "content/..", "../out", "/out", "content//out", "content/./out", "out", "contents")
NO_FILES = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)


@pytest.mark.parametrize(
    ("hostile", "wrong"),
    [
        *((archived({name: b"x"}), "which is not the name of a file in the folder") for name in OUTSIDE),
        *((archived({"content": b""}, kind), "something else than files") for kind in NO_FILES),
    ],
    ids=range(12),
)
def test_a_name_that_leads_out_of_the_folder_a_link_or_a_device_ends_the_copy(
    dest: Path, hostile: bytes, wrong: str
) -> None:
    with pytest.raises(BackendError, match=wrong):
        transfer.copy(ArrivingFiles(Scripted(hostile)), "model", dest / "model", lambda _: None)
    assert tree(dest.parent) == {"dest": None}


@pytest.mark.parametrize("data", [b"x" * 20_000, archived({})[:100] + b"x" * 20_000])
def test_what_is_no_archive_is_refused(data: bytes) -> None:
    with pytest.raises(BackendError, match="something else than files"):
        ArrivingFiles(Scripted(data))


def test_what_was_interrupted_is_an_error_and_leaves_no_part_of_a_file(dest: Path) -> None:
    data = archived({"content/a": b"a" * 5000, "content/b": b"b" * 5000})
    (dest / "model").mkdir()
    end = data.rindex(b"end\0")
    for length in (data.index(b"bbb") + 3000, end):
        arrival = ArrivingFiles(Scripted(data[:length], "the container has ended"))
        with pytest.raises(Unreachable, match="the container has ended"):
            transfer.copy(arrival, "model", dest / "model", lambda _: None)
        assert tree(dest / "model").keys() == ({"a"} if length < end else {"a", "b"})
        assert (dest / "model" / "a").read_bytes() == b"a" * 5000
    with pytest.raises(Unreachable):
        ArrivingFiles(Scripted(b""))


def test_a_full_disk_ends_the_copy(root: Path, dest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "write_file", no_space)
    with pytest.raises(BackendError, match="No space left on device"):
        copy(root, dest)


def test_stdout_gets_a_file_that_arrived_as_it_is(root: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    def copied(path: Path) -> CopyResult:
        return copy_to_stdout(ArrivingFiles(LocalFiles(path, ABSOLUTE, str(path))), path.name, lambda _: None)

    assert copied(root / "saved_model.pb") == CopyResult(1, 5)
    assert capfdbinary.readouterr().out == b"graph"
    assert copied(Path("/proc/self/status")).failed.keys() == {"status"}
    assert capfdbinary.readouterr().out == b""
