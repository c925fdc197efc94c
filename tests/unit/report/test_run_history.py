"""The runs of a cluster as a table: when, how long, what had changed, and how they ended."""

from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from tests.unit.cases import plan
from tests.unit.simulation import running
from tfdeploy.agent.model.run_spec import RunJob
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.agent.record.stored_artifact import CHECKPOINT, FILES, StoredArtifact
from tfdeploy.report.run_diff import RunDiff
from tfdeploy.report.run_history import OTHER_CONTENT, UNFINISHED, StoredRun, changes, columns, run_facts, summaries
from tools.documents import RunDocument

BASE: dict[str, Any] = {"ps": 1, "workers": 2}


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, []),
        ({"code": "code-2.zip"}, ["code"]),
        ({"env": {"LR": "0.1"}}, ["env LR"]),
        ({"jobs": {"worker": {"env": {"LR": "0.1"}}}}, ["worker env LR"]),
        ({"requirements": ["six"], "code": "code-2.zip"}, ["code", "requirements"]),
        ({"workers": 3}, ["2 -> 3 worker"]),
        ({"flags": "never"}, ["flags"]),
        ({"worker_timeout": "5m"}, ["worker_timeout"]),
        ({"jobs": {"worker": {"restart": {"maximum": 7}}}}, ["worker restart"]),
        ({"run_id": "again"}, [OTHER_CONTENT]),
        ({"run_id": "again", "worker_timeout": "5m"}, [OTHER_CONTENT, "worker_timeout"]),
    ],
)
def test_changes_are_named(args: dict[str, Any], expected: list[str]) -> None:
    assert changes(submitted(**BASE), submitted(**{**BASE, **args})) == expected


def test_another_rule_of_success_is_named_although_the_run_is_the_same() -> None:
    older, newer = (submitted(**BASE, success=rule) for rule in ("worker-0", "all-workers"))
    assert (older.spec.id, changes(older, newer)) == (newer.spec.id, ["success"])


def submitted(**args: Any) -> StoredRun:
    return stored(RunState(plan(**args).run, 1.0))


def finished(at: float, **args: Any) -> RunState:
    world = running(at, **{**BASE, **args})
    world.now += 90
    for task in [task for task in world.job.training_tasks if task.job == "worker"]:
        world.exit(task.hostname)
    return world.job


def stored(state: RunState, accuracy: str | None = "0.950", **more: Any) -> StoredRun:
    key, metrics = ("mine", "p/dev/mnist"), {"accuracy": accuracy}
    return replace(StoredRun(key, "p/dev/mnist", "local", state, metrics, Path("/record")), **more)


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
    }
    assert rows[0].to_dict().keys() == get_type_hints(RunDocument).keys()
    assert rows[0].to_dict()["metrics"] == {"accuracy": 0.95}
    assert rows[0].to_dict()["tasks"] == {"ps": 1, "worker": 2}


def test_runs_of_other_clusters_are_not_compared() -> None:
    rows = summaries([stored(finished(1_000.0)), stored(finished(2_000.0), key=("other", "p/dev/mnist"))])
    assert [row.changed for row in rows] == [None, None]
    assert columns(rows, True)[0] == "cluster"
    assert "cluster" not in columns(rows, False)


def test_a_run_without_a_result_has_the_state_of_its_cluster_or_is_unfinished() -> None:
    world = running(**BASE)
    current, replaced = (stored(world.job, accuracy=None, now=now) for now in ("unknown", ""))
    cells = summaries([current])[0].cells(1_060.0)
    assert (cells["took"], cells["result"], cells["accuracy"]) == ("1m", "unknown", "")
    assert (replaced.result, replaced.ended) == (UNFINISHED, 1_000.0)


def test_a_finished_run_has_the_tasks_it_ran_with_whatever_later_updates_have() -> None:
    world = running(**BASE, tensorboard=True)
    for hostname in ("worker-0", "worker-1"):
        world.exit(hostname)
    world.give(**{**BASE, "workers": 5}, tensorboard=True)
    assert len(world.job.spec.tasks) == 7
    assert stored(world.job).tasks == {"ps": 1, "worker": 2, "tensorboard": 1}


def test_a_metric_with_the_name_of_a_column_has_one_of_its_own() -> None:
    run = stored(finished(1_000.0))
    metrics = {"where": "0.31", "tasks": "7", "accuracy": "0.95"}
    (row,) = summaries([replace(run, metrics=metrics)])
    assert columns([row], False)[-3:] == ["metric where", "metric tasks", "accuracy"]
    cells = row.cells(9_000.0)
    assert (cells["metric where"], cells["metric tasks"], cells["where"]) == ("0.31", "7", "local")
    side_by_side = {name: older for name, older, _ in RunDiff(row, row).compared(9_000.0)}
    assert (side_by_side["metric where"], side_by_side["tasks"]) == ("0.31", "ps: 1, worker: 2")


def test_what_was_submitted_is_told_by_name() -> None:
    state = finished(1_000.0)
    assert run_facts(state) == {"command": "python train.py", "tasks": "ps: 1, worker: 2"}
    jobs = {**state.spec.jobs, "worker": RunJob(command=["python", "work.py"])}
    assert run_facts(replace(state, spec=replace(state.spec, code="0123abcd", jobs=jobs))) == {
        "command": "python train.py",
        "command of worker": "python work.py",
        "tasks": "ps: 1, worker: 2",
        "code": "0123abcd",
    }


def test_the_checkpoint_that_is_stored_has_its_step() -> None:
    names = ("model.ckpt-4200", "best", "export")
    artifacts = [StoredArtifact(FILES if name == "export" else CHECKPOINT, name, 8) for name in names]
    assert run_facts(finished(1_000.0), artifacts)["checkpoint"] == "model.ckpt-4200 (step 4,200), best"
