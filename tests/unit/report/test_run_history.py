"""The runs of a cluster as a table: when, how long, what had changed, and how they ended."""

from dataclasses import replace
from typing import Any

import pytest

from tests.clusters import ID
from tests.unit.cases import plan
from tests.unit.simulation import World
from tfdeploy.agent.record.stored_artifact import CHECKPOINT, FILES, StoredArtifact
from tfdeploy.agent.run_spec import RunJob
from tfdeploy.agent.run_state import RunState
from tfdeploy.receipts import Receipt
from tfdeploy.report.run_diff import compared
from tfdeploy.report.run_history import (
    OTHER_CONTENT,
    UNFINISHED,
    StoredRun,
    changes,
    columns,
    outcome_of,
    receipt_facts,
    summaries,
)

BASE: dict[str, Any] = {"ps": 1, "workers": 2}


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, []),
        ({"code": "code-2.zip"}, ["code"]),
        ({"command": ["python", "other.py"]}, ["command"]),
        ({"env": {"LR": "0.1"}}, ["env LR"]),
        ({"jobs": {"worker": {"env": {"LR": "0.1"}}}}, ["worker env LR"]),
        ({"requirements": ["six"], "code": "code-2.zip"}, ["code", "requirements"]),
        ({"workers": 3}, ["2 -> 3 worker"]),
        ({"ps": 0}, ["1 -> 0 ps"]),
        ({"flags": "never"}, ["flags"]),
        ({"elastic": {"max": 4}}, ["elastic"]),
        ({"worker_timeout": "5m"}, ["worker_timeout"]),
        ({"run_id": "again"}, [OTHER_CONTENT]),
        ({"run_id": "again", "worker_timeout": "5m"}, ["worker_timeout", OTHER_CONTENT]),
        ({"run_id": "again", "stop_grace_period": "1m"}, ["stop_grace_period", OTHER_CONTENT]),
    ],
)
def test_changes_are_named(args: dict[str, Any], expected: list[str]) -> None:
    assert changes(submitted(**BASE), submitted(**{**BASE, **args})) == expected


def test_another_rule_of_success_is_named_although_the_run_is_the_same() -> None:
    older, newer = (submitted(**BASE, success=rule) for rule in ("worker-0", "all-workers"))
    assert (older.spec.id, changes(older, newer)) == (newer.spec.id, ["success"])


def test_what_receipts_have_is_named_too() -> None:
    before = Receipt({"workers": "2", "ec2": '{"spot": true, "efs": "new"}'}, {"python": "3.11.7"}, {"c7i.large": 2})
    after = Receipt(
        {"workers": "3", "ec2": '{"efs": "new"}', "run_id": "again"},
        {"python": "3.11.7", "tensorflow": "2.21.0"},
        {"c7i.large": 2, "g6.xlarge": 1},
    )
    older = replace(submitted(**BASE), receipt=before)
    newer = replace(submitted(**BASE, run_id="again"), receipt=after)
    assert changes(older, newer) == ["ec2.spot", "run_id", "0 -> 1 g6.xlarge", "tensorflow none -> 2.21.0"]


def submitted(**args: Any) -> StoredRun:
    return stored(RunState(plan(**args).run, 1.0))


def finished(at: float, **args: Any) -> RunState:
    world = World(**{**BASE, **args})
    world.begin_at(at)
    world.come()
    world.now += 90
    for task in [task for task in world.job.training_tasks if task.job == "worker"]:
        world.exit(task.hostname)
    return world.job


def stored(state: RunState, accuracy: str | None = "0.950", is_current: bool = False, **more: Any) -> StoredRun:
    went = outcome_of(state, {"accuracy": accuracy}, is_current)
    run = StoredRun(("mine", "p/dev/mnist"), "p/dev/mnist", ID, "local", state.spec, went, is_current=is_current)
    return replace(run, **more)


def test_the_newest_run_is_first_and_each_is_compared_with_the_one_before() -> None:
    first, second = stored(finished(1_000.0)), stored(finished(5_000.0, env={"LR": "0.1"}))
    rows = summaries([second, first])
    assert [row.changed for row in rows] == [("env LR",), None]
    assert rows[1].cells(9_000.0) == {
        "cluster": "p/dev/mnist",
        "run": first.spec.id,
        "started": "1970-01-01 00:16:40Z",
        "took": "1m30s",
        "where": "local",
        "changed": "first run",
        "result": "succeeded",
        "accuracy": "0.95",
        "cost": "",
    }
    assert rows[0].to_dict()["metrics"] == {"accuracy": 0.95}
    assert rows[0].to_dict()["tasks"] == {"ps": 1, "worker": 2}


def test_runs_of_other_clusters_are_not_compared() -> None:
    rows = summaries([stored(finished(1_000.0)), stored(finished(2_000.0), key=("other", "p/dev/mnist"))])
    assert [row.changed for row in rows] == [None, None]
    assert columns(rows, True)[0] == "cluster"
    assert "cluster" not in columns(rows, False)


def test_a_run_without_a_result_is_running_or_unfinished() -> None:
    world = World(**BASE)
    world.come()
    current, replaced = (stored(world.job, accuracy=None, is_current=is_current) for is_current in (True, False))
    assert summaries([current])[0].cells(1_060.0) | {"run": ""} == {
        "cluster": "p/dev/mnist",
        "run": "",
        "started": "1970-01-01 00:16:40Z",
        "took": "1m",
        "where": "local",
        "changed": "first run",
        "result": "running",
        "accuracy": "",
        "cost": "",
    }
    assert (replaced.outcome.result, replaced.outcome.ended) == (UNFINISHED, 1_000.0)


def test_a_finished_run_has_the_tasks_it_ran_with_whatever_later_updates_have() -> None:
    world = World(**BASE, tensorboard=True)
    world.come()
    for hostname in ("worker-0", "worker-1"):
        world.exit(hostname)
    world.give(**{**BASE, "workers": 5}, tensorboard=True)
    assert len(world.job.spec.tasks) == 7
    assert stored(world.job).outcome.tasks == {"ps": 1, "worker": 2, "tensorboard": 1}


def test_workers_of_an_elastic_run_that_never_existed_are_not_counted() -> None:
    world = World(ps=1, workers=3, elastic={"max": 8})
    world.come()
    world.exit("worker-0")
    world.wait(1_000)
    assert stored(world.job).outcome.tasks == {"ps": 1, "worker": 3}


def test_a_run_that_continues_with_other_counts_has_the_last_ones() -> None:
    world = World(gpu_workers=1)
    world.come()
    world.give(gpu_workers=2)
    world.come("gpu-worker-1")
    assert stored(world.job, is_current=True).outcome.tasks == {"gpu_worker": 2}
    for hostname in ("gpu-worker-0", "gpu-worker-1"):
        world.exit(hostname)
    assert world.job.result is not None
    assert stored(world.job).outcome.tasks == {"gpu_worker": 2}


def test_the_cost_is_the_last_column_where_one_is_known() -> None:
    first, second = stored(finished(1_000.0)), stored(finished(5_000.0, env={"LR": "0.1"}))
    paid = replace(second, outcome=replace(second.outcome, cost=0.0832, steps_per_second=41.25))
    assert "cost" not in columns(summaries([first, second]), False)
    rows = summaries([first, paid])
    assert columns(rows, False)[-2:] == ["accuracy", "cost"]
    assert [row.cells(9_000.0)["cost"] for row in rows] == ["$0.0832", ""]
    assert [(row.to_dict()["cost_usd"], row.to_dict()["steps_per_second"]) for row in rows] == [
        (0.0832, 41.25),
        (None, None),
    ]


def test_a_metric_with_the_name_of_a_column_has_one_of_its_own() -> None:
    run = stored(finished(1_000.0))
    metrics = {"cost": "0.31", "tasks": "7", "accuracy": "0.95"}
    rows = summaries([replace(run, outcome=replace(run.outcome, metrics=metrics, cost=0.08))])
    assert columns(rows, False)[-4:] == ["metric cost", "metric tasks", "accuracy", "cost"]
    cells = rows[0].cells(9_000.0)
    assert (cells["metric cost"], cells["metric tasks"], cells["cost"]) == ("0.31", "7", "$0.08")
    side_by_side = {name: older for name, older, _ in compared(rows[0], rows[0], 9_000.0)}
    assert (side_by_side["metric cost"], side_by_side["tasks"]) == ("0.31", "ps: 1, worker: 2")


def test_what_is_not_known_is_left_out() -> None:
    run = stored(finished(1_000.0))
    assert receipt_facts(replace(run.spec, code=""), run.outcome, None) == {
        "command": "python train.py",
        "tasks": "ps: 1, worker: 2",
    }


def test_commands_machines_code_speed_and_cost() -> None:
    run = stored(finished(1_000.0))
    jobs = {**run.spec.jobs, "worker": RunJob(command=["python", "work.py"])}
    receipt = Receipt({}, {}, {"c7i.large": 1, "g6.xlarge": 2}, code_files=2, code_bytes=2048)
    went = replace(run.outcome, cost=0.0832, steps_per_second=41.253)
    assert receipt_facts(replace(run.spec, code="0123abcd", jobs=jobs), went, receipt) == {
        "command": "python train.py",
        "command of worker": "python work.py",
        "tasks": "ps: 1, worker: 2",
        "machines": "c7i.large: 1, g6.xlarge: 2",
        "code": "0123abcd (2 files, 2 KiB)",
        "steps/s": "41.25",
        "cost": "$0.0832",
    }


def test_the_checkpoint_that_is_stored_has_its_step() -> None:
    run = stored(finished(1_000.0))
    names = ("model.ckpt-4200", "best", "export")
    artifacts = [StoredArtifact(FILES if name == "export" else CHECKPOINT, name, 8) for name in names]
    facts = receipt_facts(run.spec, run.outcome, None, artifacts)
    assert facts["checkpoint"] == "model.ckpt-4200 (step 4,200), best"
