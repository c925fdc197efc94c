"""What was seen becomes what people read."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cases import plan, spec
from tests.unit.simulation import World
from tfdeploy.agent.control import reconcile
from tfdeploy.agent.record.record import RecordView, StoredLine
from tfdeploy.agent.run_spec import RunJob
from tfdeploy.agent.run_state import FINAL, RunState, TaskState
from tfdeploy.backends.base import EngineTask, ObservedCost, ObservedMachines, ObservedState
from tfdeploy.report.expected import expected_state
from tfdeploy.report.report import SILENT_SECONDS, Report, report, task_status
from tfdeploy.report.tables import text_table

ARGS: dict[str, Any] = {
    "ps": 1,
    "workers": 2,
    "restart": {"maximum": 5, "backoff": "4s", "on": ["any"]},
    "metrics": {"accuracy": "a", "word": "b", "steps": "c", "absent": "d", "diverged": "e"},
}
NOON = 1_795_262_400.0


def world() -> World:
    """A job that began at noon, with all tasks running."""
    made = noon()
    made.come()
    return made


def noon(**args: Any) -> World:
    """A run that is given at noon."""
    made = World(**ARGS, **args)
    made.begin_at(NOON)
    return made


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


def worker(**fields: Any) -> TaskState:
    task = TaskState("worker-0", "worker", 0)
    vars(task).update({"instance": "a", "seen": NOON, **fields})
    return task


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"state": "scheduled", "instance": "", "seen": 0.0}, "scheduled"),
        ({"state": "starting"}, "starting"),
        ({"state": "waiting", "waiting_for": "ps-0"}, "waiting for ps-0"),
        ({"state": "running"}, "running"),
        ({"state": "succeeded", "exit_code": 0}, "succeeded"),
        ({"state": "failed", "exit_code": 3}, "failed (exit 3)"),
        ({"state": "killed", "exit_code": 137, "signal": "SIGKILL"}, "killed (SIGKILL)"),
        ({"state": "out of memory", "exit_code": 137, "signal": "SIGKILL"}, "out of memory"),
        (
            {"state": "restarting", "restart_delay": 8.0, "failures": 2, "max_failures": 5, "exit_code": 3},
            "restarting in 8 s (2 of 5)",
        ),
        ({"state": "interrupted", "reason": "its launcher was told to stop"}, "interrupted"),
        ({"state": "stopped", "reason": "run finished"}, "stopped (run finished)"),
    ],
)
def test_each_state_has_its_words(fields: dict[str, Any], status: str) -> None:
    assert task_status(worker(**fields), sight(world(), engine={"worker-0": True})) == status


@pytest.mark.parametrize(
    ("look", "fields", "status"),
    [
        (sight(world(), engine={"worker-0": False}), {}, "lost"),
        (sight(world(), engine={}), {}, "lost"),
        (sight(world(), engine={}), {"state": "interrupted"}, "interrupted"),
        (sight(world(), engine={}), {"state": "scheduled", "instance": ""}, "scheduled"),
        (sight(world()), {"seen": NOON - SILENT_SECONDS - 1}, "unreachable since 2026-11-21 11:59:44Z"),
        (sight(world()), {"seen": NOON - SILENT_SECONDS}, "running"),
        (sight(world(), silent_since=NOON - 60), {}, "unreachable since 2026-11-21 11:59:00Z"),
        (sight(world(), NOON - 60, {"worker-0": True}), {}, "unreachable since 2026-11-21 11:59:00Z"),
        (sight(world(), silent_since=0.0), {}, "unreachable"),
    ],
)
def test_where_somebody_is_silent_or_gone_the_status_says_so(
    look: ObservedState, fields: dict[str, Any], status: str
) -> None:
    assert task_status(worker(**{"state": "running", **fields}), look) == status


STATES = ["scheduled", "starting", "waiting", "running", "restarting", "interrupted", *sorted(FINAL)]


@given(st.sampled_from(STATES), st.sampled_from([None, {}, {"worker-0": True}]))
def test_silence_is_never_the_last_good_word(state: str, engine: dict[str, bool] | None) -> None:
    said = task_status(worker(state=state), sight(world(), NOON - 60, engine))
    assert said.startswith(state if state in FINAL else "unreachable since")


def test_a_job_whose_controller_is_silent_is_unknown_until_its_verdict_stands() -> None:
    open_job, decided = read(sight(world(), NOON - 60)), read(sight(finished(), NOON - 60))
    assert (open_job.state, open_job.reason) == ("unknown", "the controller is unreachable since 2026-11-21 11:59:00Z")
    assert (decided.state, decided.reason) == ("succeeded", "worker-0 succeeded")


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


def test_endpoints_are_the_addresses_of_those_that_have_one() -> None:
    assert read(sight(waiting())).endpoints == {"worker-0": "127.0.0.1:21000"}


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


def test_times_are_absolute() -> None:
    assert read(sight(world())).observed_at == "2026-11-21 12:00:00Z"


def test_a_long_command_is_cut_in_the_table_and_whole_in_the_row() -> None:
    command = ["python", "-c", "x" * 100]
    asked = {**ARGS, "command": command}
    seen = report(expected_state(plan(**asked), spec(**asked)), sight(None))
    assert f"python -c {'x' * 29}…" in seen.status
    assert seen.tasks[0]["command"] == f"python -c {'x' * 100}"


def test_the_command_of_a_standalone_server_is_shown_by_its_name() -> None:
    asked: dict[str, Any] = {"standalone_servers": True, "ps": 1, "workers": 1}
    made = World(**asked)
    made.begin_at(NOON)
    for observed in (sight(None), sight(made)):
        seen = report(expected_state(plan(**asked), spec(**asked)), observed)
        assert [row["command"] for row in seen.tasks] == ["grpc-server", "grpc-server"]


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    rows: list[dict[str, Any]] = [{"a": "1", "long_name": "x"}, {"a": "four", "long_name": None}]
    assert text_table(rows, ("a", "long_name")) == "A      LONG NAME\n1      x\nfour"


COST = ObservedCost({"currency": "USD", "per_hour": 0.12}, {"box": {"per_hour": 0.12, "spent": 1.234}})


def test_what_machines_cost_is_in_their_rows_and_in_the_table() -> None:
    found = read(replace(sight(world()), machines=ObservedMachines(cost=COST)))
    assert found.cost == {"currency": "USD", "per_hour": 0.12, "idle_timeout": 900.0, "max_lifetime": 259200.0}
    assert found.machines[0] == {**read(sight(world())).machines[0], "per_hour": 0.12, "spent": 1.234}
    first, second = found.status.splitlines()[:2]
    assert first.endswith("STATUS      SPENT")
    assert second.endswith("connected   $1.23")


def test_a_price_that_is_unknown_is_not_nothing() -> None:
    unknown = ObservedCost(machines={"box": {"per_hour": None, "spent": None}})
    assert (
        read(replace(sight(world()), machines=ObservedMachines(cost=unknown)))
        .status.splitlines()[1]
        .endswith("connected   unknown")
    )


def test_where_nobody_is_paid_nothing_is_said_of_money() -> None:
    found = read(sight(world()))
    assert found.cost == {}
    assert "spent" not in found.machines[0]
    assert "SPENT" not in found.status


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


def test_a_late_task_is_named_with_the_time_since_when_the_others_wait() -> None:
    seen = read(sight(waiting()))
    assert seen.reason == "waiting for ps-0, worker-1 since 2026-11-21 12:00:00Z"


def test_a_run_of_which_all_tasks_were_removed_says_so() -> None:
    made = world()
    reconcile.remove_tasks(made.job, list(made.job.tasks))
    assert read(sight(made)).reason == "it has no tasks, because all of them were removed"
