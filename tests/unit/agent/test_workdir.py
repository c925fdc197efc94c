"""The folder that a run has of its own: never one that another run has used, always the same for the same run."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

import pytest

from tfdeploy.agent.launch.workdir import train_dir_problem, unpack
from tfdeploy.agent.model.run_spec import RunSpec
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.record.run_folders import RunRefused, train_dir


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path / "record")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "train"


def run(base: Path | str, name: str = "first", resume_from: str = "") -> RunSpec:
    return RunSpec(name, [], {}, train_dir=str(base), resume_from=resume_from)


def given(record: Record, asked: RunSpec, **more: Any) -> str:
    folder = train_dir(record, asked, **more)
    record.save(RunState(replace(asked, train_dir=folder), 0.0))
    return folder


def test_a_run_gets_a_folder_of_its_own(record: Record, base: Path) -> None:
    assert given(record, run(base)) == str(base / "first")
    assert given(record, run(f"{base}/", "second")) == str(base / "second")
    assert sorted(path.name for path in base.iterdir()) == ["first", "second"]


def test_a_run_that_is_known_keeps_its_folder_whatever_is_in_it(record: Record, base: Path) -> None:
    folder = Path(given(record, run(base)))
    (folder / "checkpoint").touch()
    assert given(Record(record.folder), run(base)) == str(folder)
    assert given(record, run(base / "elsewhere")) == str(folder)


def test_a_folder_that_was_moved_with_its_project_is_where_it_is_now(tmp_path: Path) -> None:
    for name in ("old", "clone"):
        (tmp_path / name).mkdir()
    record, base = Record(tmp_path / "record"), tmp_path / "old/train"
    folder = given(record, run(base))
    (tmp_path / "clone/train/first").mkdir(parents=True)
    Path(folder).rename(tmp_path / "elsewhere")
    assert given(record, run(tmp_path / "clone/train")) == folder, "the folder of another cluster"
    (tmp_path / "elsewhere").rename(folder)
    (tmp_path / "old").rename(tmp_path / "new")
    now = str(tmp_path / "new/train/first")
    assert train_dir(record, run(tmp_path / "new/train", "second", "first")) == now, "also where another run resumes it"
    assert given(record, run(tmp_path / "new/train")) == now
    assert given(record, run("s3://bucket/train")) == now
    (tmp_path / "new").rename(tmp_path / "gone")
    assert given(record, run(tmp_path / "new/train")) == now
    third = str(tmp_path / "third/train/first")
    assert train_dir(record, run(tmp_path / "third/train", "second", "first")) == third, "never in a path that is gone"


def test_clusters_that_begin_the_same_run_at_once_get_a_folder_each(tmp_path: Path, base: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        records = [Record(tmp_path / str(number)) for number in range(8)]
        folders = list(pool.map(lambda record: train_dir(record, run(base)), records))
    assert len(set(folders)) == 8


def test_a_run_has_another_folder_below_a_url_in_each_life_of_a_cluster(tmp_path: Path) -> None:
    one, two = Record(tmp_path / "one"), Record(tmp_path / "two")
    first, second = (given(record, run("hdfs://name/train/")) for record in (one, two))
    assert first == f"hdfs://name/train/first-{one.record_id()[:8]}"
    assert first != second
    assert given(Record(one.folder), run("hdfs://name/train/")) == first
    assert given(one, run("hdfs://name/train", "next", "first")) == first


def test_a_run_of_another_life_below_a_url_is_resumed_by_the_name_of_its_folder(record: Record) -> None:
    asked = run("hdfs://name/train", "second", "first-0123abcd")
    assert train_dir(record, asked) == "hdfs://name/train/first-0123abcd"
    with pytest.raises(
        RunRefused, match=r"resume_from: there is no run 'frist'.*the name of its folder in hdfs://name/train"
    ):
        train_dir(record, run("hdfs://name/train", "second", "frist"))


def test_a_run_goes_on_in_the_folder_of_the_one_that_it_resumes(record: Record, base: Path) -> None:
    first = given(record, run(base))
    assert given(record, run(base, "second", "first")) == first
    assert given(record, run(base, "third", "second")) == first


def test_a_run_that_this_record_does_not_know_is_found_by_its_folder(record: Record, base: Path) -> None:
    (base / "earlier").mkdir(parents=True)
    assert given(record, run(base, "second", "earlier")) == str(base / "earlier")


def test_a_run_that_nobody_knows_cannot_be_resumed(record: Record, base: Path) -> None:
    with pytest.raises(RunRefused, match=r"^resume_from: there is no run 'gone'\. Existing runs: none$"):
        train_dir(record, run(base, "second", "gone"))
    given(record, run(base))
    with pytest.raises(RunRefused, match=r"^resume_from: there is no run 'gone'\. Existing runs: first$"):
        train_dir(record, run(base, "second", "gone"))
    assert not (base / "second").exists()


@pytest.mark.parametrize(("mode", "expected"), [(0o1777, 0o1777), (0o700, 0o700)])
def test_the_folder_has_the_mode_that_is_asked_for(record: Record, base: Path, mode: int, expected: int) -> None:
    assert stat.S_IMODE(Path(given(record, run(base), mode=mode)).stat().st_mode) == expected


def test_a_task_makes_the_folder_where_it_is_missing(base: Path) -> None:
    assert train_dir_problem(str(base / "first")) == ""
    assert (base / "first").is_dir()
    assert train_dir_problem(str(base / "first")) == ""


def test_an_unusable_folder_is_refused(record: Record, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base.write_text("a file is in the way")
    with pytest.raises(RunRefused, match=r"^train_dir: .*/train cannot be used \(File exists\)$"):
        train_dir(record, run(base))
    cannot = f"cannot be created by user {os.getuid()} (Not a directory)"
    assert train_dir_problem(str(base / "first")) == f"train_dir {base}/first {cannot}"
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    mend = f"cannot be written by user {os.getuid()}: change its owner, or set container.user"
    assert train_dir_problem(str(base.parent)) == f"train_dir {base.parent} {mend}"


def test_code_keeps_its_executable_bits_and_without_code_the_folder_is_empty(tmp_path: Path) -> None:
    script = ZipInfo("tools/run.sh")
    script.external_attr = 0o755 << 16
    with ZipFile(tmp_path / "code.zip", "w") as bundle:
        bundle.writestr(script, "#!/bin/sh")
    unpack(tmp_path / "code.zip", tmp_path / "code")
    assert (tmp_path / "code/tools/run.sh").stat().st_mode & 0o777 == 0o755
    unpack(None, tmp_path / "empty")
    assert [*(tmp_path / "empty").iterdir()] == []


@pytest.mark.parametrize("is_used", [True, False])
def test_a_run_never_begins_in_a_folder_that_is_used_or_claimed(tmp_path: Path, base: Path, is_used: bool) -> None:
    folders = []
    for cluster in ("one", "two", "three"):
        folders.append(given(Record(tmp_path / cluster), run(base)))
        if is_used:
            (Path(folders[-1]) / "checkpoint").touch()
    assert folders == [str(base / "first"), str(base / "first-2"), str(base / "first-3")]


def test_a_damaged_archive_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    archive = tmp_path / "code.zip"
    archive.write_bytes(b"cut off")
    with pytest.raises(ValueError, match="not a zip file"):
        unpack(archive, tmp_path / "code")
    assert [*tmp_path.iterdir()] == [archive]
