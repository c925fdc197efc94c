"""What the engine alone can say: a task on its way, or one that it cannot bring; machines that are gone; problems."""

from typing import Any

import pytest

from tests.unit.cases import plan, spec
from tests.unit.report.test_report import ARGS, NOON, finished, noon, worker, world
from tfdeploy.agent.record.record import RecordView
from tfdeploy.backends.base import EngineTask, ObservedMachines, ObservedState
from tfdeploy.report.expected import expected_state
from tfdeploy.report.report import Report, report, task_status

NO_NODE = "no suitable node (insufficient resources on 1 node)"
NO_IMAGE = "No such image: gone:1"

FRESH: dict[str, Any] = {"state": "scheduled", "instance": "", "seen": 0.0}
RUNS: dict[str, Any] = {"state": "running"}
"""A task that its launcher has just spoken for."""

SCHEDULED = EngineTask(True, "", "scheduled")
UNFIT = EngineTask(True, "", "scheduled", NO_NODE)
PULLING = EngineTask(True, "", "pulling")
STARTING = EngineTask(True, "", "starting")
RUNNING = EngineTask(True, "4711", "running")
REJECTED = EngineTask(False, "", "rejected", NO_IMAGE)
FAILED = EngineTask(False, "4711", "failed", "task: non-zero exit (1)")
COMPLETE = EngineTask(False, "4711", "complete")


def look(engine: EngineTask | None, silent_since: float | None = None, at: float = NOON, **more: Any) -> ObservedState:
    """A look at the world while the engine says this of worker-0."""
    view = RecordView(at, world().job)
    return ObservedState(at, view, silent_since, {"worker-0": engine} if engine else {}, **more)


@pytest.mark.parametrize(
    ("engine", "fields", "status"),
    [
        (SCHEDULED, FRESH, "scheduled"),
        (UNFIT, FRESH, f"scheduled ({NO_NODE})"),
        (PULLING, FRESH, "pulling"),
        (STARTING, FRESH, "starting"),
        (RUNNING, FRESH, "scheduled"),
        (EngineTask(True, "4711", "running", "a remark"), FRESH, "scheduled"),
        (REJECTED, FRESH, f"rejected ({NO_IMAGE})"),
        (FAILED, FRESH, "failed (task: non-zero exit (1))"),
        (RUNNING, RUNS, "running"),
        (RUNNING, {"state": "waiting", "waiting_for": "ps-0"}, "waiting for ps-0"),
        (UNFIT, {"state": "interrupted"}, f"scheduled ({NO_NODE})"),
        (PULLING, {"state": "interrupted"}, "pulling"),
        (REJECTED, {"state": "interrupted"}, f"rejected ({NO_IMAGE})"),
        (FAILED, {"state": "interrupted"}, "interrupted"),
        (FAILED, RUNS, "lost"),
        (COMPLETE, RUNS, "lost"),
        (None, RUNS, "lost"),
    ],
)
def test_the_engine_says_where_a_task_is_that_it_brings(
    engine: EngineTask | None, fields: dict[str, Any], status: str
) -> None:
    assert task_status(worker(**fields), look(engine)) == status


@pytest.mark.parametrize(
    ("engine", "fields", "status"),
    [
        (STARTING, {"state": "interrupted"}, "interrupted"),
        (RUNNING, RUNS, "lost"),
        (UNFIT, FRESH, "scheduled"),
    ],
)
def test_on_a_machine_that_is_gone_nothing_is_on_its_way(
    engine: EngineTask, fields: dict[str, Any], status: str
) -> None:
    assert task_status(worker(**fields), look(engine, machines=ObservedMachines(others="gone"))) == status


@pytest.mark.parametrize("engine", [SCHEDULED, UNFIT, PULLING, STARTING, RUNNING, REJECTED, FAILED, COMPLETE, None])
def test_what_has_ended_has_ended_whatever_the_engine_says(engine: EngineTask | None) -> None:
    assert task_status(worker(state="succeeded"), look(engine)) == "succeeded"
    assert task_status(worker(state="failed", exit_code=3), look(engine, NOON - 60)) == "failed (exit 3)"


@pytest.mark.parametrize(("later", "status"), [(0.0, "running"), (3.0, "running"), (3.1, "starting")])
def test_the_engine_may_lag_a_moment_behind_the_launcher(later: float, status: str) -> None:
    assert task_status(worker(**RUNS), look(STARTING, at=NOON + later)) == status


@pytest.mark.parametrize(
    ("engine", "silent_since", "fields", "status"),
    [
        (PULLING, 0.0, FRESH, "pulling"),
        (UNFIT, 0.0, FRESH, f"scheduled ({NO_NODE})"),
        (REJECTED, 0.0, FRESH, f"rejected ({NO_IMAGE})"),
        (RUNNING, 0.0, FRESH, "starting"),
        (None, 0.0, FRESH, "unreachable"),
        (PULLING, NOON - 60, {"state": "interrupted"}, "pulling"),
        (RUNNING, NOON - 60, RUNS, "unreachable since 2026-11-21 11:59:00Z"),
        (FAILED, NOON - 60, RUNS, "unreachable since 2026-11-21 11:59:00Z"),
        (REJECTED, NOON - 60, RUNS, f"rejected ({NO_IMAGE})"),
    ],
)
def test_the_engine_speaks_while_the_controller_is_silent(
    engine: EngineTask | None, silent_since: float, fields: dict[str, Any], status: str
) -> None:
    assert task_status(worker(**fields), look(engine, silent_since)) == status


def read(at: ObservedState) -> Report:
    return report(expected_state(plan(**ARGS), spec(**ARGS)), at)


def empty(silent_since: float | None, engine: dict[str, EngineTask] | None, **more: Any) -> ObservedState:
    """A look at a cluster whose controller has no run."""
    return ObservedState(NOON, RecordView(NOON), silent_since, engine, **more)


def begun(made: Any, silent_since: float | None = None, **more: Any) -> ObservedState:
    """A look at a cluster that has a run."""
    return ObservedState(NOON, RecordView(NOON, made.job), silent_since, dict.fromkeys(made.job.tasks, RUNNING), **more)


def starting() -> ObservedState:
    """A cluster whose engine has trouble with two of its tasks."""
    engine = {"ps-0": PULLING, "worker-0": UNFIT, "worker-1": REJECTED}
    problems = ["the controller is pulling: a large image"]
    return empty(0.0, engine, problems=problems)


@pytest.mark.parametrize(
    ("at", "state", "reason"),
    [
        (empty(0.0, {"ps-0": PULLING}), "starting", "no run was submitted yet"),
        (empty(0.0, {}), "unknown", "not deployed"),
        (empty(0.0, None), "unknown", "not deployed"),
        (empty(None, None), "starting", "no run was submitted yet"),
        (empty(0.0, {"ps-0": PULLING}, problems=["a", "b"]), "starting", "a; b"),
        (empty(0.0, None, problems=["the engine does not answer"]), "unknown", "the engine does not answer"),
        (begun(noon(), problems=["a"]), "starting", ""),
        (begun(world()), "running", ""),
        (begun(world(), NOON - 60), "unknown", "the controller is unreachable since 2026-11-21 11:59:00Z"),
        (
            begun(world(), NOON - 60, problems=["a", "b"]),
            "unknown",
            "the controller is unreachable since 2026-11-21 11:59:00Z; a; b",
        ),
        (begun(finished(), NOON - 60, problems=["a"]), "succeeded", "worker-0 succeeded"),
    ],
)
def test_problems_are_told_where_nothing_better_is_known(at: ObservedState, state: str, reason: str) -> None:
    seen = read(at)
    assert (seen.state, seen.reason) == (state, reason)


def test_a_machine_that_is_not_connected_says_why() -> None:
    words = {"box": "unreachable (heartbeat failure)"}
    assert [row["status"] for row in read(begun(world())).machines] == ["connected"]
    assert [row["status"] for row in read(begun(world(), machines=ObservedMachines(words))).machines] == [
        "unreachable (heartbeat failure)"
    ]


def test_the_engines_container_stands_over_the_one_that_the_launcher_told_of() -> None:
    newer = EngineTask(True, "0815", "running")
    assert read(look(newer)).tasks[1]["container"] == "0815"
    assert read(look(PULLING)).tasks[1]["container"] == "4711"
