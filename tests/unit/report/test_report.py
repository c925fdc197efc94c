"""What was seen becomes what people read."""

import pickle
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cases import plan, spec
from tests.unit.simulation import World
from tfdeploy.agent.control import reconcile
from tfdeploy.agent.model.run_spec import RunJob, RunSpec
from tfdeploy.agent.model.run_state import (
    FINAL,
    UPLOAD_LOST,
    UPLOADED,
    UPLOADING,
    Ended,
    LauncherReport,
    MachineUpload,
    RunState,
    TaskState,
)
from tfdeploy.agent.record.record import RecordView, StoredLine
from tfdeploy.agent.record.stored_artifact import LIMIT, LeftOut, StoredArtifact
from tfdeploy.backends.base import EngineTask, ObservedMachines, ObservedState
from tfdeploy.report.expected_state import expected_state
from tfdeploy.report.report import SILENT_SECONDS, Report, _artifact_rows, _is_uploading, report, task_status

ARGS: dict[str, Any] = {
    "ps": 1,
    "workers": 2,
    "restart": {"maximum": 5, "backoff": "4s", "on": ["any"]},
    "metrics": {"accuracy": "a", "word": "b", "steps": "c", "absent": "d", "diverged": "e"},
}
NOON = 1_795_262_400.0


def world() -> World:
    """A job that began at noon, with all tasks running."""
    made: World = pickle.loads(_world())
    return made


@cache
def _world() -> bytes:
    made = noon()
    made.come()
    return pickle.dumps(made)


def noon(**args: Any) -> World:
    return World(NOON, **ARGS, **args)


def sight(
    made: World | None, silent_since: float | None = None, engine: dict[str, bool] | None = None, **view: Any
) -> ObservedState:
    """A look at a job; `engine` says of each task whether its launcher lives."""
    alive = None if engine is None else {name: EngineTask(lives, "4711", "") for name, lives in engine.items()}
    now = made.now if made else NOON
    run = RunState.from_dict(made.job.to_dict()) if made else None
    return ObservedState(now, RecordView(**{"at": now, "run_state": run, **view}), silent_since, alive)


def read(at: ObservedState, **args: Any) -> Report:
    asked = {**ARGS, **args}
    return report(expected_state(plan(**asked), spec(**asked)), at)


def finished() -> World:
    made = world()
    made.exit("worker-0")
    made.exit("worker-1")
    return made


def failed() -> World:
    made = world()
    jobs = {**made.job.spec.jobs, "worker": RunJob()}
    made.job.spec = replace(made.job.spec, jobs=jobs)
    made.exit("worker-1", 3)
    return made


def waiting() -> World:
    made = noon()
    made.come("worker-0")
    return made


def worker(instance: str = "a", **fields: Any) -> TaskState:
    task = TaskState("worker-0", "worker", 0, report=LauncherReport("worker-0", instance))
    vars(task).update({"seen": NOON, **fields})
    return task


STATES = ["scheduled", "starting", "waiting", "running", "restarting", "interrupted", *sorted(FINAL)]


@given(st.sampled_from(STATES), st.sampled_from([None, {}, {"worker-0": True}]))
def test_silence_is_never_the_last_good_word(state: str, engine: dict[str, bool] | None) -> None:
    said = task_status(worker(state=state), sight(world(), NOON - 60, engine))
    assert said.startswith(state if state in FINAL else "unreachable since")


def test_a_row_has_all_columns_in_snake_case() -> None:
    assert read(sight(failed())).tasks[2] == {
        "hostname": "worker-1",
        "job": "worker",
        "index": 1,
        "machine": "box",
        "container": "4711",
        "command": "python train.py",
        "status": "failed (exit 3)",
        "exit_code": 3,
        "created": "2026-11-21 12:00:00Z",
        "address": "127.0.0.1:21001",
        "public_ip": "",
    }


def test_metrics_are_numbers_texts_or_none() -> None:
    found = {"accuracy": "0.9004", "word": "good", "steps": "2000", "diverged": "nan", "unasked": "1"}
    assert read(sight(world(), metrics=found)).metrics == {
        "accuracy": 0.9004,
        "word": "good",
        "steps": 2000.0,
        "absent": None,
        "diverged": "nan",
    }


def test_logs_are_the_last_lines_of_each_task() -> None:
    logs = {"ps-0": [], "worker-0": [StoredLine(NOON + second, 1, f"line {second}") for second in range(5)]}
    seen = read(sight(world(), logs=logs), log_lines=2)
    assert seen.logs == {"ps-0": [], "worker-0": ["line 3", "line 4"], "worker-1": []}
    assert seen.timed["worker-0"][0] == (NOON, "line 0")
    assert read(sight(world(), logs=logs), log_lines=0).logs == {}


def test_a_task_that_the_plan_adds_is_scheduled_until_the_controller_knows_it() -> None:
    rows = read(sight(world()), workers=3).tasks
    assert [(row["hostname"], row["status"]) for row in rows][-1] == ("worker-2", "scheduled")


def test_machines_appear_as_an_engine_that_places_tasks_itself_has_placed_them() -> None:
    planned = replace(expected_state(plan(**ARGS), spec(**ARGS)), machines=())
    expected = replace(planned, tasks=[replace(task, machine="") for task in planned.tasks])
    assert report(expected, sight(None)).machines == []
    (row,) = report(expected, sight(waiting())).machines
    assert (row["machine"], row["provider"], row["status"]) == ("box", "", "connected")
    assert {task["machine"] for task in report(expected, sight(world())).tasks} == {"box"}


def test_the_command_of_a_standalone_server_is_shown_by_its_name() -> None:
    asked: dict[str, Any] = {"standalone_servers": True, "ps": 1, "workers": 1}
    for observed in (sight(None), sight(World(NOON, **asked))):
        seen = report(expected_state(plan(**asked), spec(**asked)), observed)
        assert [row["command"] for row in seen.tasks] == ["grpc-server", "grpc-server"]


def test_the_cost_is_what_the_plan_knows_and_what_was_observed() -> None:
    planned = replace(expected_state(plan(**ARGS), spec(**ARGS)), cost={"currency": "USD", "per_hour": 0.12})
    found = report(planned, replace(sight(world()), cost={"per_hour": 0.0, "spent": 1.234}))
    assert found.cost == {"currency": "USD", "per_hour": 0.0, "spent": 1.234}


def test_escape_sequences_of_a_program_reach_neither_outputs_nor_a_terminal() -> None:
    printed = "\x1b]0;title\x07\x1b[2Jaccuracy: \x1b[8m0.5\x1b[0m\x1b]52;c;Y2FuYXJ5\x07"
    logs = {"worker-0": [StoredLine(NOON, 1, printed)]}
    seen = read(
        sight(world(), logs=logs, metrics={"accuracy": "\x1b[31mhigh\x1b[0m"}),
        metrics={"accuracy": r"(.*)"},
        log_lines=2,
    )
    assert seen.logs["worker-0"] == ["accuracy: 0.5"]
    assert seen.timed["worker-0"] == [(NOON, "accuracy: 0.5")]
    assert seen.metrics == {"accuracy": "high"}


def test_a_run_of_which_all_tasks_were_removed_says_so() -> None:
    made = world()
    reconcile.remove_tasks(made.job, list(made.job.tasks))
    assert read(sight(made)).reason == "it has no tasks, because all of them were removed"


NO_NODE = "no suitable node (insufficient resources on 1 node)"
NO_IMAGE = "No such image: gone:1"

FRESH: dict[str, Any] = {"state": "scheduled", "instance": "", "seen": 0.0}
RUNS: dict[str, Any] = {"state": "running"}
"""A task that its launcher has just spoken for."""

UNFIT = EngineTask(True, "", "scheduled", NO_NODE)
PULLING = EngineTask(True, "", "pulling")
STARTING = EngineTask(True, "", "starting")
RUNNING = EngineTask(True, "4711", "running")
REJECTED = EngineTask(False, "", "rejected", NO_IMAGE)
FAILED = EngineTask(False, "4711", "failed", "task: non-zero exit (1)")


def look(engine: EngineTask | None, silent_since: float | None = None, at: float = NOON, **more: Any) -> ObservedState:
    """A look at the world while the engine says this of worker-0."""
    view = RecordView(at, world().job)
    return ObservedState(at, view, silent_since, {"worker-0": engine} if engine else {}, **more)


HERE = sight(world(), engine={"worker-0": True})
ENDING: dict[str, Any] = {"state": "interrupted"}
ON_GONE: dict[str, Any] = {"machines": ObservedMachines(others="gone")}
SINCE = "unreachable since 2026-11-21 11:59:00Z"


@pytest.mark.parametrize(
    ("at", "fields", "status"),
    [
        (look(UNFIT), FRESH, f"scheduled ({NO_NODE})"),
        (look(RUNNING), FRESH, "scheduled"),
        (look(REJECTED), FRESH, f"rejected ({NO_IMAGE})"),
        (look(FAILED), FRESH, "failed (task: non-zero exit (1))"),
        (look(RUNNING), RUNS, "running"),
        (look(RUNNING), {"state": "waiting", "waiting_for": "ps-0"}, "waiting for ps-0"),
        (look(UNFIT), ENDING, f"scheduled ({NO_NODE})"),
        (look(REJECTED), ENDING, f"rejected ({NO_IMAGE})"),
        (look(FAILED), ENDING, "interrupted"),
        (look(FAILED), RUNS, "lost"),
        (look(None), RUNS, "lost"),
        # On a machine that is gone nothing is on its way.
        (look(STARTING, **ON_GONE), ENDING, "interrupted"),
        (look(RUNNING, **ON_GONE), RUNS, "lost"),
        (look(UNFIT, **ON_GONE), FRESH, "scheduled"),
        # The engine may lag a moment behind the launcher.
        (look(STARTING, at=NOON + 3.0), RUNS, "running"),
        (look(STARTING, at=NOON + 3.1), RUNS, "starting"),
        # The controller is silent.
        (look(RUNNING, 0.0), FRESH, "starting"),
        (look(None, 0.0), FRESH, "unreachable"),
        (look(PULLING, NOON - 60), ENDING, "pulling"),
        (look(RUNNING, NOON - 60), RUNS, SINCE),
        (look(REJECTED, NOON - 60), RUNS, f"rejected ({NO_IMAGE})"),
        # The launcher is gone, or silent.
        (sight(world(), engine={}), {"state": "interrupted"}, "interrupted"),
        (sight(world()), {**RUNS, "seen": NOON - SILENT_SECONDS - 1}, "unreachable since 2026-11-21 11:59:44Z"),
        (sight(world()), {**RUNS, "seen": NOON - SILENT_SECONDS}, "running"),
        (sight(world(), silent_since=NOON - 60), RUNS, SINCE),
        (sight(world(), silent_since=0.0), RUNS, "unreachable"),
        # Each state has its words.
        (HERE, {"state": "starting"}, "starting"),
        (HERE, {"state": "killed", "end": Ended(137, "SIGKILL")}, "killed (SIGKILL)"),
        (HERE, {"state": "out of memory", "end": Ended(137, "SIGKILL")}, "out of memory"),
        (
            HERE,
            {"state": "restarting", "restart_delay": 8.0, "failures": 2, "max_failures": 5, "end": Ended(3)},
            "restarting in 8 s (2 of 5)",
        ),
        (HERE, {"state": "interrupted", "reason": "its launcher was told to stop"}, "interrupted"),
    ],
)
def test_the_status_of_a_task_is_what_is_known_of_it(at: ObservedState, fields: dict[str, Any], status: str) -> None:
    assert task_status(worker(**fields), at) == status


def empty(silent_since: float | None, engine: dict[str, EngineTask] | None, **more: Any) -> ObservedState:
    return ObservedState(NOON, RecordView(NOON), silent_since, engine, **more)


def begun(made: Any, silent_since: float | None = None, **more: Any) -> ObservedState:
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
        (empty(0.0, None), "unknown", "not deployed"),
        (empty(0.0, {"ps-0": PULLING}, problems=["a", "b"]), "starting", "a; b"),
        (empty(0.0, None, problems=["the engine does not answer"]), "unknown", "the engine does not answer"),
        (begun(noon(), problems=["a"]), "starting", ""),
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


SUBMITTED = 1000.0
FOLDER = "/state/record/runs/run/artifacts"


def with_artifacts(*stored: StoredArtifact, left_out: list[LeftOut] | None = None, upload: str = "") -> ObservedState:
    run = RunState(RunSpec("run", [], {}, train_dir="/train/run"), SUBMITTED)
    run.uploads = {"gpu-1": MachineUpload("worker-0", SUBMITTED, upload)} if upload else {}
    view = RecordView(SUBMITTED + 1, run, artifacts=list(stored), left_out=left_out or [])
    return ObservedState(SUBMITTED + 1, view, None, {}, "/state/record")


def test_each_artifact_has_the_path_that_tensorflow_takes() -> None:
    rows = _artifact_rows(
        with_artifacts(
            StoredArtifact("model", "export/1", 5, path="export/1"),
            StoredArtifact("model", ".", 5, path="."),
            StoredArtifact("checkpoint", "sub/ckpt-7", 5, path="sub/checkpoint"),
            StoredArtifact("keras", "best.keras", 5, path="best.keras"),
            StoredArtifact("files", "logs/**", 5, path="logs/x"),
        )
    )
    assert [row["path"] for row in rows] == [
        f"{FOLDER}/export/1",
        FOLDER,
        f"{FOLDER}/sub/ckpt-7",
        f"{FOLDER}/best.keras",
        FOLDER,
    ]
    assert {(row["size"], row["problem"]) for row in rows} == {(5, "")}


def test_what_is_not_here_has_a_reason_and_no_path() -> None:
    stored = StoredArtifact("keras", "k", 5, path="k", is_complete=False)
    rows = _artifact_rows(with_artifacts(stored, left_out=[LeftOut("large", 9, LIMIT, "gpu-1")], upload=UPLOAD_LOST))
    assert [(row["name"], row["kind"], row["path"]) for row in rows] == [
        ("k", "keras", ""),
        ("large", "", ""),
        ("/train/run", "", ""),
    ]
    assert rows[0]["problem"] == "It is not on this computer yet: `pulumi up` copies it."
    assert rows[1]["problem"].startswith("A run stores at most 2 GiB in 2000 files.")
    assert "worker-0 on gpu-1 did not respond" in rows[2]["problem"]


def test_without_a_run_there_are_none() -> None:
    state = with_artifacts()
    assert _artifact_rows(replace(state, view=RecordView(SUBMITTED))) == []
    assert not _is_uploading(replace(state, view=RecordView(SUBMITTED)))


@pytest.mark.parametrize(("upload", "is_complete", "expected"), [
    (UPLOADING, True, True),
    (UPLOADED, True, False),
    (UPLOADED, False, True),
    (UPLOAD_LOST, True, False),
    ("", True, False),
])  # fmt: skip
def test_an_update_waits_for_what_is_on_its_way_for_a_minute(upload: str, is_complete: bool, expected: bool) -> None:
    state = with_artifacts(StoredArtifact("keras", "k", 5, path="k", is_complete=is_complete), upload=upload)
    assert _is_uploading(state) is expected
    assert not _is_uploading(replace(state, view=replace(state.view, at=SUBMITTED + 61)))
    assert not _is_uploading(replace(state, controller_silent_since=SUBMITTED))
