"""Metrics that end a run: when they do, when they must not, and what is known of it afterwards."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cases import plan, stored_run
from tests.unit.printing import Chunk, write
from tests.unit.simulation import Launcher, World, running
from tfdeploy.agent.control import reconcile, until_metrics
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.model import events
from tfdeploy.agent.model.run_state import BUDGET, UNTIL, ReachedMetric, RunResult, RunState
from tfdeploy.agent.record import output, pattern_process
from tfdeploy.agent.record.metric_values import LoggedValue
from tfdeploy.agent.record.output_lines import STDERR, STDOUT
from tfdeploy.agent.record.pattern_process import Matches
from tfdeploy.agent.record.record import Record

METRICS = {"accuracy": r"accuracy: (\S+)", "loss": r"loss: (\S+)"}
GOOD = LoggedValue("worker-0", 1, "0.953", 4200)


def world(conditions: dict[str, str], **args: Any) -> World:
    return running(**{"ps": 1, "workers": 2, **args}, metrics=METRICS, until=conditions)


def read(job: World, text: str = "0.953") -> None:
    """The controller reads a value of worker-0, which has not reported since then."""
    job.now += 1
    until_metrics.apply_values(job.job, {"accuracy": GOOD._replace(text=text)}, job.now)
    job.note(reconcile.advance(job.job, job.now))


def test_a_metric_that_is_good_enough_ends_the_run_as_succeeded() -> None:
    job = world({"accuracy": ">= 0.95"}, worker_timeout="1h", evaluator=True)
    job.measure(accuracy=GOOD)
    assert job.job.result == RunResult(
        "succeeded",
        UNTIL,
        job.now,
        ["worker-0"],
        reached=[ReachedMetric("accuracy", 0.953, ">=", 0.95, "worker-0", 1, 4200)],
    )
    assert job.running() == "", "neither other workers nor the evaluator have time left"
    assert set(job.states().split(", ")) == {f"{name} stopped (run finished)" for name in job.job.tasks}
    assert job.happened()[0] == (events.RUN_ENDED, "")
    assert RunState.from_dict(json.loads(json.dumps(job.job.to_dict()))) == job.job


@pytest.mark.parametrize(
    "value",
    [
        None,
        GOOD._replace(text="0.9499"),
        GOOD._replace(text="nan"),
        GOOD._replace(text="inf"),
        GOOD._replace(text="good"),
        GOOD._replace(text=""),
        GOOD._replace(attempt=0),
        GOOD._replace(attempt=2),
        GOOD._replace(task="worker-7"),
        GOOD._replace(task="tensorboard-0"),
    ],
)
def test_only_a_good_value_of_the_current_attempt_of_a_training_task_ends_a_run(value: LoggedValue | None) -> None:
    job = world({"accuracy": ">= 0.95"}, tensorboard=True)
    job.measure(**({"accuracy": value} if value else {}))
    assert job.job.result is None


def test_all_conditions_must_hold() -> None:
    job = world({"accuracy": ">= 0.95", "loss": "< 0.1"})
    job.measure(accuracy=GOOD)
    job.measure(accuracy=GOOD, loss=LoggedValue("worker-1", 1, "0.1"))
    job.measure(loss=LoggedValue("worker-1", 1, "0.09"))
    assert job.verdict() == "none", "a value that held before does not count"
    job.measure(accuracy=GOOD, loss=LoggedValue("worker-1", 1, "0.09"))
    assert job.job.result is not None
    assert [metric.metric for metric in job.job.result.reached] == ["accuracy", "loss"]
    assert job.job.result.tasks == ["worker-0", "worker-1"]


@pytest.mark.parametrize(("code", "cause"), [(0, "tasks_succeeded"), (3, "task_failed")])
def test_the_end_of_the_program_wins_over_a_value_that_it_has_just_logged(code: int, cause: str) -> None:
    job = world({"accuracy": ">= 0.95"}, restart={"maximum": 0})
    read(job)
    assert job.verdict() == "none", "worker-0 has not reported since then"
    job.exit("worker-0", code)
    assert job.job.result is not None
    assert job.job.result.cause == cause


def test_a_program_that_was_restarted_after_it_had_logged_the_metric_goes_on() -> None:
    job = world({"accuracy": ">= 0.95"}, restart={"maximum": 1, "backoff": "0", "on": ["any"]})
    read(job)
    job.exit("worker-0", 1)
    job.wait(1)
    assert job.verdict() == "none"
    assert "worker-0/2" in job.running()


def test_what_a_silent_task_has_logged_waits_for_its_report_also_in_another_controller() -> None:
    job = world({"accuracy": ">= 0.95"})
    read(job)
    read(job, "0.1")
    job.restart_controller()
    job.sync("worker-1")
    assert job.verdict() == "none"
    job.sync("worker-0")
    assert job.verdict().startswith("succeeded: accuracy")


def test_a_clock_that_was_set_back_while_no_controller_ran_does_not_stand_for_the_report() -> None:
    job = world({"accuracy": ">= 0.95"})
    read(job)
    job.restart_controller()
    job.now -= 500
    reconcile.recover_clock(job.job, job.now, job.now + 500)
    job.note(reconcile.advance(job.job, job.now))
    assert job.verdict() == "none", "the log is searched again"
    read(job)
    assert job.verdict() == "none", "worker-0 has not reported since then"
    job.settle()
    assert job.verdict().startswith("succeeded")


def test_a_changed_condition_of_a_run_counts_at_once() -> None:
    job = world({"accuracy": ">= 0.99"})
    job.measure(accuracy=GOOD)
    assert job.verdict() == "none"
    job.give(ps=1, workers=2, metrics=METRICS, until={"accuracy": ">= 0.95"})
    assert job.running() == "ps-0/1, worker-0/1, worker-1/1", "nothing restarts"
    job.measure(accuracy=GOOD)
    assert job.job.result is not None


def test_a_condition_that_was_changed_before_the_report_is_not_that_of_the_run() -> None:
    job = world({"accuracy": ">= 0.95"})
    read(job)
    job.give(ps=1, workers=2, metrics=METRICS, until={"accuracy": ">= 0.99"})
    assert job.verdict() == "none"


@pytest.mark.parametrize(
    ("comparison", "good"), [(">=", ["0.95", "0.96"]), ("<=", ["0.94", "0.95"]), (">", ["0.96"]), ("<", ["0.94"])]
)
def test_the_threshold_itself_is_good_enough_where_there_is_an_equals_sign(comparison: str, good: list[str]) -> None:
    jobs = {text: world({"accuracy": f"{comparison} 0.95"}) for text in ("0.94", "0.95", "0.96")}
    for text, job in jobs.items():
        job.measure(accuracy=GOOD._replace(text=text))
    assert [text for text, job in jobs.items() if job.job.result] == good


def started(folder: Path, conditions: dict[str, str], **args: Any) -> tuple[Controller, dict[str, Launcher], Record]:
    """A controller with launchers that run attempt 1."""
    record = Record(folder)
    made = Controller(record)
    made.submit_run(plan(**{"workers": 1, **args}, metrics=METRICS, until=conditions).run)
    run = stored_run(record)
    launchers = {name: Launcher(name) for name in run.tasks}
    for _ in range(8):
        for launcher in launchers.values():
            launcher.obey(made.sync(launcher.report()), 1.0)
        made.tick()
    assert all(launcher.running for launcher in launchers.values())
    return made, launchers, record


def log(record: Record, hostname: str, *lines: str, attempt: int = 1) -> None:
    run = stored_run(record)
    write(record.log(run.spec.id, hostname), [(STDOUT, line.encode()) for line in lines], attempt)


def decide(target: Controller, launchers: dict[str, Launcher]) -> None:
    """The controller reads the logs, and the launchers report once more."""
    target.decide_until()
    for launcher in launchers.values():
        target.sync(launcher.report())
    target.tick()


def result_of(record: Record) -> RunResult | None:
    return stored_run(record).result


def problems(record: Record) -> list[tuple[str, str, str, str]]:
    run = stored_run(record)
    kinds = (events.UNTIL_DISABLED, events.UNTIL_NO_NUMBER)
    return [(it.kind, it.task, it.state, it.reason) for it in record.events(run.spec.id) if it.kind in kinds]


def test_a_value_that_is_no_number_is_an_event_once_also_for_the_next_controller(tmp_path: Path) -> None:
    target, launchers, record = started(tmp_path, {"accuracy": ">= 0.95", "loss": "<= 2"})
    log(record, "worker-0", "accuracy: nan\n", "loss: 3\n")
    decide(target, launchers)
    log(record, "worker-0", "accuracy: " + "x" * 1000 + "\n")
    decide(target, launchers)
    decide(Controller(record), launchers)
    assert problems(record) == [(events.UNTIL_NO_NUMBER, "worker-0", "accuracy", "nan")]
    log(record, "worker-0", "accuracy: 1\n", "loss: " + "inf" * 1000 + "\n")
    decide(target, launchers)
    assert problems(record)[1:] == [(events.UNTIL_NO_NUMBER, "worker-0", "loss", ("inf" * 14)[:40])]


def test_a_pattern_that_is_switched_off_is_an_event_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, launchers, record = started(tmp_path, {"accuracy": ">= 0.95", "loss": "<= 2"})
    monkeypatch.setattr(pattern_process.SHARED, "search", lambda *_: Matches({}, ["accuracy"]))
    for _ in range(5):
        log(record, "worker-0", "accuracy: 0.1\n")
        decide(target, launchers)
    ((kind, task, state, reason),) = problems(record)
    assert (kind, task, state) == (events.UNTIL_DISABLED, "", "accuracy")
    assert reason.startswith("its pattern takes more than 1 s: ")


def test_what_another_pattern_has_found_does_not_end_the_run() -> None:
    job = world({"accuracy": ">= 0.95"})
    job.job.reached = [ReachedMetric("accuracy", 0.953, ">=", 0.95, "worker-0", 1, 4200)]
    job.job.until_problems = ["a problem of the pattern"]
    other = replace(job.job.spec, metrics={**METRICS, "accuracy": r"auc: (\S+)"})
    reconcile.update_spec(job.job, job.job.spec, job.now)
    assert (len(job.job.reached), len(job.job.until_problems)) == (1, 1)
    reconcile.update_spec(job.job, other, job.now)
    assert (job.job.reached, job.job.until_problems) == ([], [])


@pytest.mark.parametrize(
    ("chunks", "step"),
    [
        ([(STDOUT, b"step 7 accuracy: 1\n")], 7),
        ([(STDOUT, b"step 7\n"), (STDERR, b"accuracy: 1\n")], 7),
        ([(STDOUT, b"step 7\n"), (STDOUT, b"accuracy: 1\n"), (STDOUT, b"step 8\n")], 7),
        ([(STDOUT, b"accuracy: 1\n"), (STDOUT, b"step 8\n")], None),
        ([(STDOUT, b"step 7\n"), *[(STDOUT, b"-\n")] * 99, (STDOUT, b"accuracy: 1\n")], 7),
        ([(STDOUT, b"step 7\n"), *[(STDOUT, b"-\n")] * 100, (STDOUT, b"accuracy: 1\n")], None),
        ([(STDOUT, b"step 1 accuracy: 0.1\rstep 9 accuracy: 1\n")], 9),
        ([(STDOUT, b"step 1 accuracy: 0.1\rstep 9 accuracy: 1\r\n")], 9),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_the_step_is_the_last_one_that_was_logged_before(
    tmp_path: Path, chunks: list[Chunk], step: int | None, at_once: bool
) -> None:
    record, run = Record(tmp_path), World(workers=1, metrics=METRICS).job
    values: dict[str, LoggedValue] = {}
    for part in [chunks] if at_once else [[chunk] for chunk in chunks]:
        write(record.log(run.spec.id, "worker-0"), part)
        values = record.search(run, METRICS).values
    assert values["accuracy"][:4] == ("worker-0", 1, "1", step)


def test_a_step_of_another_attempt_is_not_the_step(tmp_path: Path) -> None:
    record, run = Record(tmp_path), World(workers=1, metrics=METRICS).job
    write(record.log(run.spec.id, "worker-0"), [(STDOUT, b"step 7\n")])
    record.search(run, METRICS)
    write(record.log(run.spec.id, "worker-0"), [(STDOUT, b"accuracy: 1\n")], attempt=2)
    assert record.search(run, METRICS).values["accuracy"].step is None


def test_a_log_not_searched_to_its_end_has_no_value_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor have the tasks after it: the first one that has logged the metric decides."""
    record, run = Record(tmp_path), World(workers=2, metrics=METRICS).job
    write(record.log(run.spec.id, "worker-1"), [(STDOUT, b"accuracy: 0.99\n")])
    write(record.log(run.spec.id, "worker-0"), [(STDOUT, b"accuracy: 0.9\n"), (STDOUT, b"accuracy: 0.5\n")])
    found = iter([Matches({"accuracy": (0, "0.9")}, []), None, Matches({"accuracy": (0, "0.99")}, [])])
    with monkeypatch.context() as interrupted:
        interrupted.setattr(output, "_BLOCK", 64)
        interrupted.setattr(pattern_process.SHARED, "search", lambda *_: next(found))
        assert record.search(run, METRICS).values == {}
    assert record.search(run, METRICS).values["accuracy"].text == "0.5"
    write(record.log(run.spec.id, "worker-0"), [(STDOUT, b"accuracy: 0.4\n")])
    assert record.search(run, METRICS, -1.0).values == {}, "the time is over before the first line"
    assert record.search(run, METRICS).values["accuracy"].text == "0.4"


@pytest.mark.parametrize("last", ["unanswered", "slow", "disabled"])
def test_an_old_value_of_a_pattern_that_did_not_see_the_last_lines_is_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    """A pattern that took too long, is switched off, or ends its process. A later match of it counts again."""
    record, run = Record(tmp_path), World(workers=2, metrics=METRICS).job
    for hostname in ("worker-0", "worker-1"):
        write(record.log(run.spec.id, hostname), [(STDOUT, b"accuracy: 0.99\n")])
    assert record.search(run, METRICS).values["accuracy"].text == "0.99"
    answer = None if last == "unanswered" else Matches({}, [*METRICS])
    with monkeypatch.context() as broken:
        broken.setattr(pattern_process.SHARED, "search", lambda *_: answer)
        for batch in range(1 if last == "slow" else 3):
            if batch == 0 or last == "disabled":
                write(record.log(run.spec.id, "worker-0"), [(STDOUT, b"accuracy: 0.1\n")])
            assert record.search(run, METRICS).values == {}
    assert record.search(run, METRICS).values == {}
    write(record.log(run.spec.id, "worker-0"), [(STDOUT, b"accuracy: 0.98\n")])
    values = record.search(run, METRICS).values
    assert [value.text for value in values.values()] == ([] if last == "disabled" else ["0.98"])


@pytest.mark.parametrize("by_request", [True, False])
def test_what_a_removed_task_had_logged_does_not_count_when_it_is_added_again(by_request: bool) -> None:
    job = world({"accuracy": ">= 0.95"})
    job.restart_controller()
    if by_request:
        job.note(reconcile.remove_tasks(job.job, ["worker-1"]))
        job.settle()
    else:
        job.give(ps=1, workers=1, metrics=METRICS, until={"accuracy": ">= 0.95"})
    job.give(ps=1, workers=2, metrics=METRICS, until={"accuracy": ">= 0.95"})
    job.come("worker-1")
    assert "worker-1" in job.running()
    job.measure(accuracy=GOOD._replace(task="worker-1"))
    assert job.verdict() == "none"
    job.measure(accuracy=GOOD._replace(task="worker-1", attempt=job.job.tasks["worker-1"].attempt))
    assert job.verdict().startswith("succeeded: accuracy")


@pytest.mark.parametrize("cause", [UNTIL, BUDGET])
@pytest.mark.parametrize("ends", [True, False])
def test_ps_serve_the_workers_that_save(cause: str, ends: bool) -> None:
    """They stop after the workers, or with the time that workers have to save."""
    job = world({"accuracy": ">= 0.95"}, stop_grace_period="60s")
    job.saving = {"worker-0"}
    if cause == UNTIL:
        job.measure(accuracy=GOOD)
    else:
        job.pay(budget=1.0, before=1.0)
    assert job.job.result is not None
    assert job.job.result.cause == cause
    assert job.running() == "ps-0/1, worker-0/1"
    job.restart_controller()
    job.wait(59)
    assert job.running() == "ps-0/1, worker-0/1"
    job.saving = set() if ends else job.saving
    job.wait(0 if ends else 1)
    assert job.running() == ("" if ends else "worker-0/1"), "the launcher ends worker-0 then"
    job.saving = set()
    job.settle()
    assert job.done()
