"""The folder that a run has of its own: never one that another run has used, always the same for the same run."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tfdeploy.agent.record import Record
from tfdeploy.agent.states import Job
from tfdeploy.agent.training import Refused, refusal, train_dir


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path / "record")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "train"


def run(base: Path | str, name: str = "first", resume_from: str = "") -> dict[str, Any]:
    return {"id": name, "train_dir": str(base), "resume_from": resume_from, "tasks": []}


def given(record: Record, asked: dict[str, Any], **more: Any) -> str:
    """What the keeper does with a run that it is given."""
    folder = train_dir(record, asked, **more)
    record.save(Job({**asked, "train_dir": folder}, 0.0))
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


def test_a_run_never_begins_in_a_used_folder(tmp_path: Path, base: Path) -> None:
    folders = []
    for cluster in ("one", "two", "three"):
        folders.append(given(Record(tmp_path / cluster), run(base)))
        (Path(folders[-1]) / "checkpoint").touch()
    assert folders == [str(base / "first"), str(base / "first-2"), str(base / "first-3")]


def test_an_empty_folder_is_as_good_as_a_new_one(record: Record, base: Path) -> None:
    (base / "first").mkdir(parents=True)
    assert given(record, run(base)) == str(base / "first")


def test_a_url_is_left_to_the_program(record: Record) -> None:
    assert given(record, run("hdfs://name/train/")) == "hdfs://name/train/first"
    assert given(record, run("hdfs://name/train", "second", "earlier")) == "hdfs://name/train/earlier"


def test_a_run_goes_on_in_the_folder_of_the_one_that_it_resumes(record: Record, base: Path) -> None:
    first = given(record, run(base))
    assert given(record, run(base, "second", "first")) == first
    assert given(record, run(base, "third", "second")) == first


def test_a_run_that_this_record_does_not_know_is_found_by_its_folder(record: Record, base: Path) -> None:
    (base / "earlier").mkdir(parents=True)
    assert given(record, run(base, "second", "earlier")) == str(base / "earlier")


def test_a_run_that_nobody_knows_cannot_be_resumed(record: Record, base: Path) -> None:
    with pytest.raises(Refused, match=r"^resume_from: there is no run 'gone'; known are: none$"):
        train_dir(record, run(base, "second", "gone"))
    given(record, run(base))
    with pytest.raises(Refused, match=r"^resume_from: there is no run 'gone'; known are: first$"):
        train_dir(record, run(base, "second", "gone"))
    assert not (base / "second").exists()


@pytest.mark.parametrize(("mode", "expected"), [(0o1777, 0o1777), (0o700, 0o700)])
def test_the_folder_has_the_mode_that_is_asked_for(record: Record, base: Path, mode: int, expected: int) -> None:
    assert stat.S_IMODE(Path(given(record, run(base), mode=mode)).stat().st_mode) == expected


def test_what_is_kept_is_plain_json(record: Record, base: Path) -> None:
    given(record, run(base))
    known = record.load("first")
    assert known is not None
    assert json.loads(json.dumps(known.to_dict()))["run"]["train_dir"] == str(base / "first")


def test_a_task_makes_the_folder_where_it_is_missing(base: Path) -> None:
    assert refusal(str(base / "first")) == ""
    assert (base / "first").is_dir()
    assert refusal(str(base / "first")) == ""


def test_a_url_is_never_refused() -> None:
    assert refusal("hdfs://name/train/first") == ""


def test_a_folder_that_a_task_cannot_make_or_write_is_refused(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base.write_text("a file is in the way")
    cannot = f"cannot be made by user {os.getuid()} (Not a directory)"
    assert refusal(str(base / "first")) == f"train_dir {base}/first {cannot}"
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    mend = f"cannot be written by user {os.getuid()}: give it to that user, or set `user`"
    assert refusal(str(base.parent)) == f"train_dir {base.parent} {mend}"
