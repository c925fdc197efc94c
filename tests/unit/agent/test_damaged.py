"""Torn, zeroed and foreign bytes anywhere in a record: skipped, counted, and never in the way of an observation."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.cases import stored_run
from tests.unit.printing import all_lines, folder, write
from tests.unit.simulation import World, running
from tfdeploy.agent.model.events import RECORD_DAMAGED, TASK_INTERRUPTED, Event
from tfdeploy.agent.record import event_log
from tfdeploy.agent.record.event_log import append, read
from tfdeploy.agent.record.output import Log
from tfdeploy.agent.record.output_lines import STDOUT
from tfdeploy.agent.record.record import Record, RecordDamaged, ViewRequest
from tfdeploy.agent.system.files import append as append_bytes

TORN = [
    b'{"at": 2.0, "te',
    b"\0" * 40,
    b"\xff\xfe\n\x80",
    b"[1]\n",
    b'{"kind": 3}\n',
    b"null\n",
    b'{"at": {}}\n',
    b"\n",
]


def event(text: str) -> Event:
    return Event(TASK_INTERRUPTED, 1.0, reason=text)


@pytest.mark.parametrize("torn", TORN)
def test_an_event_that_was_torn_hides_neither_those_before_nor_those_after(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "events.jsonl"
    append(path, [event("before")])
    with path.open("ab") as file:
        file.write(torn)
    append(path, [event("after")])
    found = read(path)
    assert [one.reason for one in found if one.kind == TASK_INTERRUPTED] == ["before", "after"]
    assert [one.count > 0 for one in found if one.kind == RECORD_DAMAGED] == [True] * (torn != b"\n")


def test_events_not_written_leave_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.jsonl"
    append(path, [event("before")])
    before = path.read_bytes()
    monkeypatch.setattr("tfdeploy.agent.record.event_log._write", _half)
    with pytest.raises(OSError, match="No space"):
        append(path, [event("lost")])
    assert path.read_bytes() == before


def _half(file: object, data: bytes) -> None:
    file.write(data[: len(data) // 2])  # type: ignore[attr-defined]
    file.flush()  # type: ignore[attr-defined]
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("last", [1, 3, 50])
def test_the_last_events_are_read_from_the_end(tmp_path: Path, last: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.jsonl"
    append(path, [event(f"number {number}") for number in range(5_000)])
    parsed: list[bytes] = []
    parse_line = event_log._parse_line

    def counting(line: bytes) -> Event | None:
        parsed.append(line)
        return parse_line(line)

    monkeypatch.setattr(event_log, "_parse_line", counting)
    assert [one.reason for one in read(path, last)] == [f"number {number}" for number in range(5_000 - last, 5_000)]
    assert len(parsed) < 1_500


@settings(max_examples=examples(60))
@given(st.integers(0, 12), st.one_of(st.binary(min_size=1, max_size=60), st.integers(1, 90).map(bytes)), st.booleans())
def test_output_with_foreign_bytes_is_read_on_behind_them(place: int, foreign: bytes, torn: bool) -> None:
    with folder() as there:
        log = Log(there)
        write(log, [(STDOUT, b"line %d\n" % number) for number in range(12)], begin=1_000.0)
        lines = log.path(0).read_bytes().splitlines(keepends=True)
        lines[place : place + torn] = [foreign]
        log.path(0).write_bytes(b"".join(lines))
        texts = [line.text for line in all_lines(log)]
        expected = [f"line {number}" for number in range(12) if not (torn and number == place)]
        missing = [text for text in expected if text not in texts]
        assert missing in ([], expected[place : place + 1]), "at most the line behind it"
        assert [line.text for line in log.tail(3)] == texts[-3:]


def test_a_view_states_what_is_damaged_and_has_the_rest(tmp_path: Path) -> None:
    record = Record(tmp_path)
    job = World(workers=1, metrics={"accuracy": r"accuracy: (\S+)"})
    run_id = job.job.spec.id
    record.save(job.job)
    write(record.log(run_id, "worker-0"), [(STDOUT, b"accuracy: 0.5\n")], begin=1_000.0)
    append_bytes(record.log(run_id, "worker-0").path(0), b"\0" * 70 + b"\n")
    write(record.log(run_id, "worker-0"), [(STDOUT, b"accuracy: 0.5\n")], begin=1_001.0)
    record.add_events(run_id, [event("before")])
    with (record.run_folder(run_id) / "events.jsonl").open("ab") as file:
        file.write(b"\0\0\0")
    record.add_events(run_id, [event("after")])
    seen = Record(tmp_path).view(ViewRequest(5), job.job)
    assert seen.metrics == {"accuracy": "0.5"}
    assert [line.text for line in seen.logs["worker-0"]] == ["accuracy: 0.5", "accuracy: 0.5"]
    assert [(one.kind, one.task) for one in seen.events][2:] == [(RECORD_DAMAGED, ""), (RECORD_DAMAGED, "worker-0")]


DAMAGE = [b"", b"\0" * 100, b'{"spec": {', b"[]", b"\xff\xff"]


@pytest.mark.parametrize(
    ("name", "content"),
    [(name, content) for name in ("run_state.json", "run_state.copy", "current") for content in DAMAGE]
    + [("format", content) for content in DAMAGE[:2]],
)
def test_one_damaged_file_of_the_state_is_no_obstacle(tmp_path: Path, name: str, content: bytes) -> None:
    job = running(workers=1)
    Record(tmp_path).save(job.job)
    path = next(tmp_path.rglob(name))
    path.write_bytes(content)
    assert stored_run(Record(tmp_path)).to_dict() == job.job.to_dict()


def test_a_state_that_is_damaged_in_both_files_is_an_error_and_not_a_missing_run(tmp_path: Path) -> None:
    job = World(workers=1)
    Record(tmp_path).save(job.job)
    for name in ("run_state.json", "run_state.copy"):
        next(tmp_path.rglob(name)).write_bytes(b"\0" * 100)
    with pytest.raises(RecordDamaged, match="is damaged"):
        Record(tmp_path).current()


def test_the_oldest_runs_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfdeploy.agent.record.record.MAX_RUNS", 3)
    record = Record(tmp_path)
    ids = []
    for number in range(6):
        job = World(workers=1, run_id=str(number)).job
        record.save_other(job)
        ids.append(job.spec.id)
        os.utime(record.run_folder(job.spec.id), (number, number))
    record.remove_old_runs([ids[0]])
    assert set(record.runs()) == {ids[0], *ids[3:]}
