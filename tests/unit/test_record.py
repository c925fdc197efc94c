"""The durable account of a cluster's runs."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.printing import write
from tests.unit.simulation import World
from tfdeploy.agent.lines import STDOUT
from tfdeploy.agent.record import Record

PATTERNS = {"accuracy": r"accuracy: (\S+)"}


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path)


def say(record: Record, world: World, hostname: str, text: str) -> None:
    """Have a task of the present run print a line."""
    write(record.log(world.job.run["id"], hostname), [(STDOUT, text.encode() + b"\n")])


def found(record: Record, world: World) -> Any:
    return record.metrics(world.job, PATTERNS).get("accuracy")


def test_a_job_is_read_back_as_it_was_saved(record: Record) -> None:
    world = World(ps=1, workers=1, restart={"on": ["any"]})
    world.come()
    world.exit("worker-0", 3)
    record.save(world.job)
    read = Record(record.folder).current()
    assert read is not None
    assert read.to_dict() == world.job.to_dict()


def test_before_the_first_run_there_is_none(record: Record) -> None:
    assert (record.current(), record.load("0123"), record.events("0123"), record.last_alive()) == (None, None, [], 0.0)


def test_an_earlier_run_keeps_its_account(record: Record) -> None:
    first, second = World(workers=1), World(workers=1, run_id="second")
    for world in (first, second):
        world.come()
        record.save(world.job)
        record.event(world.job.run["id"], f"event of {world.job.run['id']}", 1.0)
    assert record.load(first.job.run["id"]) is not None
    current = record.current()
    assert current is not None
    assert current.run["id"] == second.job.run["id"]
    assert [event["text"] for event in record.events(first.job.run["id"])] == [f"event of {first.job.run['id']}"]


def test_metrics_come_from_the_tasks_that_decide(record: Record) -> None:
    world = World(chief=1, workers=1)
    say(record, world, "worker-0", "accuracy: 0.1")
    assert found(record, world) == "0.1"
    say(record, world, "chief-0", "accuracy: 0.9")
    say(record, world, "worker-0", "accuracy: 0.2")
    assert found(record, world) == "0.9"


def test_where_several_decide_the_first_of_them_that_says_it_counts(record: Record) -> None:
    world = World(ps=1, workers=2)
    say(record, world, "ps-0", "accuracy: 0.1")
    say(record, world, "worker-1", "accuracy: 0.3")
    assert found(record, world) == "0.3"
    say(record, world, "worker-0", "accuracy: 0.2")
    assert found(record, world) == "0.2"


def test_metrics_never_come_from_an_earlier_run(record: Record) -> None:
    first, second = World(workers=1), World(workers=1, run_id="second")
    say(record, first, "worker-0", "accuracy: 0.9")
    assert found(record, first) == "0.9"
    assert found(record, second) is None


def test_a_view_of_nothing_is_empty(record: Record) -> None:
    seen = record.view({"log_lines": 5, "metrics": PATTERNS}, None)
    assert {key: seen[key] for key in seen if key != "at"} == {"job": None, "logs": {}, "metrics": {}, "events": []}


def test_a_view_has_the_job_its_last_lines_metrics_and_events(record: Record) -> None:
    world = World(workers=2)
    record.event(world.job.run["id"], "run given", 1.0)
    say(record, world, "worker-0", "accuracy: 0.9\nlast")
    seen = record.view({"log_lines": 1, "metrics": PATTERNS}, world.job)
    assert seen["job"] == world.job.to_dict()
    assert seen["logs"] == {"worker-0": [[0.0, STDOUT, "last"]], "worker-1": []}
    assert seen["metrics"] == {"accuracy": "0.9"}
    assert seen["events"] == [{"at": 1.0, "text": "run given"}]
