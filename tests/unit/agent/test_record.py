"""The durable account of a cluster's runs."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cases import stored_run
from tests.unit.printing import write
from tests.unit.simulation import World, running
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.model.events import RUN_SUBMITTED, Event
from tfdeploy.agent.record.output_lines import STDOUT
from tfdeploy.agent.record.record import FAILURE_LINES, Record, RecordFormatError, RecordView, StoredLine, ViewRequest

PATTERNS = {"accuracy": r"accuracy: (\S+)"}


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path)


def say(record: Record, world: World, hostname: str, text: str) -> None:
    write(record.log(world.job.spec.id, hostname), [(STDOUT, text.encode() + b"\n")])


def found(record: Record, world: World) -> Any:
    return record.search(world.job, PATTERNS).metrics.get("accuracy")


def test_a_view_has_more_lines_of_a_task_that_failed(record: Record) -> None:
    world = running(workers=2, restart={"maximum": 0})
    for name in ("worker-0", "worker-1"):
        for number in range(450):
            say(record, world, name, f"line {number}")
    world.exit("worker-1", 3)
    logs = record.view(ViewRequest(5), world.job).logs
    assert [line.text for line in logs["worker-0"]] == [f"line {number}" for number in range(445, 450)]
    assert len(logs["worker-1"]) == FAILURE_LINES == 400
    assert logs["worker-1"][-1].text == "line 449"


def test_before_the_first_run_there_is_none(record: Record) -> None:
    assert (record.current(), record.load("0123"), record.events("0123"), record.last_alive()) == (None, None, [], 0.0)


def test_an_earlier_run_keeps_its_account(record: Record) -> None:
    first, second = World(workers=1), World(workers=1, run_id="second")
    for world in (first, second):
        world.come()
        record.save(world.job)
        record.add_events(world.job.spec.id, [Event(RUN_SUBMITTED, 1.0, reason=world.job.spec.id)])
    assert record.load(first.job.spec.id) is not None
    assert stored_run(record).spec.id == second.job.spec.id
    assert [event.reason for event in record.events(first.job.spec.id)] == [first.job.spec.id]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"chief": 1, "workers": 1}, ["worker-0 0.1 0.1", "chief-0 0.9 0.9", "worker-0 0.2 0.9"]),
        ({"ps": 1, "workers": 2, "success": "all-workers"}, ["worker-1 0.3 0.3", "ps-0 0.1 0.3", "worker-0 0.2 0.2"]),
    ],
)
def test_metrics_come_from_the_first_task_that_says_them_of_those_that_decide(
    record: Record, args: dict[str, Any], said: list[str]
) -> None:
    world = World(**args)
    for hostname, text, expected in map(str.split, said):
        say(record, world, hostname, f"accuracy: {text}")
        assert found(record, world) == expected


def test_metrics_and_steps_never_come_from_an_earlier_run(record: Record) -> None:
    first, second = World(workers=1), World(workers=1, run_id="second")
    say(record, first, "worker-0", "accuracy: 0.9")
    say(record, first, "worker-0", "step 900")
    assert found(record, first) == "0.9"
    assert found(record, second) is None
    assert record.search(second.job).progress["worker-0"].step is None


def test_a_view_has_the_job_its_last_lines_metrics_and_events(record: Record) -> None:
    world = World(workers=2, metrics=PATTERNS)
    record.add_events(world.job.spec.id, [Event(RUN_SUBMITTED, 1.0)])
    say(record, world, "worker-0", "accuracy: 0.9\nlast")
    seen = record.view(ViewRequest(1), world.job)
    assert seen.run_state == world.job
    assert seen.logs == {"worker-0": [StoredLine(0.0, STDOUT, "last")], "worker-1": []}
    assert seen.metrics == {"accuracy": "0.9"}
    assert seen.events == [Event(RUN_SUBMITTED, 1.0)]
    assert RecordView.from_dict(json.loads(json.dumps(seen.to_dict()))) == seen


def test_a_metric_that_no_line_has_is_named_once_the_run_has_succeeded_and_all_was_searched(record: Record) -> None:
    wanted = {**PATTERNS, "loss": "loss (.*)"}
    world = running(workers=2, metrics=wanted)
    say(record, world, "worker-1", "accuracy: 0.9")
    world.exit("worker-0")
    assert record.view(ViewRequest(), world.job).unprinted == [], "worker-1 may print it"
    world.exit("worker-1")
    assert record.search(world.job, wanted, -1.0).unprinted == []
    assert record.view(ViewRequest(), world.job).unprinted == ["loss"]
    assert record.search(world.job, {"bad": "("}).unprinted == []
    failed = running(workers=1, metrics=wanted)
    failed.exit("worker-0", 3)
    assert record.view(ViewRequest(), failed.job).unprinted == []


@pytest.mark.parametrize("version", ["3", "5"])
def test_a_record_of_another_format_is_refused(record: Record, version: str) -> None:
    record.save(World(workers=1).job)
    assert Record(record.folder).is_readable()
    (record.folder / "format").write_text(version)
    (record.folder / "import/whole").mkdir(parents=True)
    before = {path: path.stat().st_mtime_ns for path in record.folder.rglob("*")}
    assert not Record(record.folder).is_readable()
    calls: list[Callable[[Record], object]] = [
        Controller,
        Record.current,
        partial(Record.save, run=World(workers=1).job),
    ]
    for call in calls:
        with pytest.raises(RecordFormatError, match=rf"format {version}, and this version reads 4"):
            call(Record(record.folder))
    assert {path: path.stat().st_mtime_ns for path in record.folder.rglob("*")} == before, "it is not touched"


def test_a_record_from_before_there_was_a_format_is_refused(record: Record) -> None:
    record.save(World(workers=1).job)
    (record.folder / "format").unlink()
    with pytest.raises(RecordFormatError, match="format 1, and this version reads 4"):
        Record(record.folder).current()


def test_results_of_all_runs_by_their_ids(record: Record) -> None:
    succeeded, running, secret = World(workers=1), World(workers=1, run_id="second"), World(workers=1, run_id="third")
    for world in (succeeded, running, secret):
        world.come()
    succeeded.exit("worker-0")
    secret.job.spec = replace(secret.job.spec, id="keyed", content_id="content")
    for world in (succeeded, running, secret):
        record.save(world.job)
    first, second = (world.job.spec.id for world in (succeeded, running))
    assert record.results() == {first: "succeeded", second: "", "keyed": "", "content": ""}
    for path in record.run_folder(first).glob("run_state*"):
        path.write_text("damaged")
    assert first not in record.results()
