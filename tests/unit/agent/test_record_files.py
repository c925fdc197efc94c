"""Which files a record has: all that are in its folder, but what nobody else needs."""

from pathlib import Path

import pytest

from tests.unit.printing import write
from tfdeploy.agent.model.events import RUN_SUBMITTED, Event
from tfdeploy.agent.model.run_spec import RunSpec, TaskSpec
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.agent.record.output_lines import STDOUT
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.record.record_files import (
    PART,
    Range,
    RecordFile,
    RecordList,
    is_valid_name,
    list_files,
    read_ranges,
)


@pytest.fixture
def record(tmp_path: Path) -> Record:
    record = Record(tmp_path / "record")
    record.save(RunState(RunSpec("one", [TaskSpec("worker-0", "worker", 0)], {}), 1.0))
    record.record_id()
    record.add_events("one", [Event(RUN_SUBMITTED, 1.0)])
    write(record.log("one", "worker-0"), [(STDOUT, b"step\n")])
    return record


def test_the_list_has_what_is_in_the_folder(record: Record) -> None:
    write(record.log("one", "removed-7"), [(STDOUT, b"last words\n")])
    record.artifacts_folder("one").mkdir()
    (record.artifacts_folder("one") / "metrics.json").write_text("of the program")
    for name in ("lock", "code/a.zip", "import/x", "runs/one/artifacts.draft/0", "runs/.x/y"):
        (record.folder / name).parent.mkdir(exist_ok=True)
        (record.folder / name).write_text("x")
    (record.run_folder("one") / "search.json").write_text("{}")
    (record.folder / "runs/one/.run_state.json.7.draft").write_text("x")
    (record.folder / "runs/one/link").symlink_to("/etc/hostname")
    listed = {file.name: file for file in list_files(record.folder)}
    run = {"events.jsonl", "run_state.json", "artifacts/metrics.json", "logs/removed-7/0.log"}
    run |= {"logs/worker-0/0.log", "search.json"}
    assert listed.keys() == {"format", "record_id", "current", *(f"runs/one/{name}" for name in run)}
    assert (listed["current"].text, listed["runs/one/search.json"].text) == ("one", "{}")
    assert listed["runs/one/artifacts/metrics.json"] == RecordFile("runs/one/artifacts/metrics.json", 14)
    assert {file.name for file in list_files(record.folder, [])} == {"format", "record_id", "current"}


@pytest.mark.parametrize("content", [b"", b"\0" * 50, b"{", b"\xff"])
def test_of_a_damaged_state_the_second_file_is_listed(record: Record, content: bytes) -> None:
    whole = (record.run_folder("one") / "run_state.json").read_text()
    (record.run_folder("one") / "run_state.json").write_bytes(content)
    texts = {file.name: file.text for file in list_files(record.folder)}
    assert texts["runs/one/run_state.json"] == whole
    (record.run_folder("one") / "run_state.copy").unlink()
    assert "runs/one/run_state.json" not in {file.name for file in list_files(record.folder)}


def test_a_list_is_the_same_after_it_was_json(record: Record) -> None:
    listed = RecordList("an-id", 1.0, list_files(record.folder), "one", ["one"])
    assert RecordList.from_dict(listed.to_dict()) == listed


def test_a_range_is_within_a_file_of_the_record(record: Record) -> None:
    name = "runs/one/logs/worker-0/0.log"
    (record.folder / name).write_bytes(b"step\n")
    ranges = [Range(name, 2, 99), Range(name, 0, 2), Range(name.replace("0.log", "9.log"), 0, 2)]
    assert read_ranges(record.folder, ranges) == [b"ep\n", b"st", b""]
    (record.folder / name).write_bytes(b"x" * (PART + 1))
    parts = read_ranges(record.folder, [Range(name, 0, PART - 1), Range(name, 0, 9), Range(name, 0, 9)])
    assert [len(part) for part in parts] == [PART - 1, 1]
    for outside in ("../secret", "/etc/passwd", "lock", "runs/one/../../lock", "runs/one/logs/../../../lock"):
        with pytest.raises(ValueError, match="is not a file of a record"):
            read_ranges(record.folder, [Range(outside, 0, 1)])


@pytest.mark.parametrize(
    ("name", "is_valid"),
    [
        ("a" * 255, True),
        ("a" * 256, False),
        ("/".join(["a" * 255] * 4), True),
        ("/".join(["a" * 255] * 4) + "a", False),
        ("/".join(["a" * 204] * 5), True),
        ("/".join(["a" * 204] * 5) + "a", False),
        ("\u00e9" * 128, False),
        *((name, False) for name in ("", "/a", "a/", "a//b", ".", "a/../b", "..", "a\0b", "\udcff", 1, None)),
    ],
)
def test_a_name_is_below_its_folder_and_has_the_length_that_file_systems_accept(name: object, is_valid: bool) -> None:
    assert is_valid_name(name) is is_valid
