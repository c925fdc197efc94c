"""A controller that was away, and launchers that were not: what they do meanwhile, and what the controller makes of it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.agent.test_reconcile import ANY
from tests.unit.cases import plan, stored_run
from tests.unit.simulation import BEGIN, Launcher, running
from tfdeploy.agent.control import reconcile
from tfdeploy.agent.control.clock import PAUSE_SECONDS, Clock
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.control.controller_absence import HEAR_SECONDS, adopt_attempts
from tfdeploy.agent.control.start_barrier import restart_barrier
from tfdeploy.agent.launch import last_order, program
from tfdeploy.agent.launch.last_order import AWAY_SECONDS, MAX_RESTARTS, LastOrder
from tfdeploy.agent.launch.program import Program
from tfdeploy.agent.model import events
from tfdeploy.agent.model.events import LAUNCHER_LOST, LAUNCHER_REGISTERED, TASK_RESTARTING, TASK_STARTED, Event
from tfdeploy.agent.model.run_spec import RestartPolicy
from tfdeploy.agent.model.run_state import Ended, RunState
from tfdeploy.agent.model.sync import END, INTERRUPTED, NOTHING, RUN, STOP, WAIT, Order
from tfdeploy.agent.model.task_command import TaskAddress
from tfdeploy.agent.record.record import Record

HOUR = 3_600.0

# The controller's side.


def test_what_a_launcher_restarted_itself_is_adopted_once_with_its_own_times() -> None:
    job = running(workers=1, restart={**ANY, "backoff": "2s"})
    assert job.fail_alone("worker-0")
    job.now += 100
    assert job.fail_alone("worker-0", 3, "")
    job.return_after(HOUR)
    job.settle()
    assert job.running() == "worker-0/3"
    assert [(event.kind, event.attempt, event.at - BEGIN) for event in job.events] == [
        (TASK_RESTARTING, 2, 0.0),
        (TASK_STARTED, 2, 0.0),
        (TASK_RESTARTING, 3, 100.0),
        (TASK_STARTED, 3, 102.0),
    ]
    task = job.job.tasks["worker-0"]
    assert (task.state, task.attempt, task.failures, task.since - BEGIN) == ("running", 3, 2, 102.0)
    job.restart_controller()
    job.return_after(HOUR)
    job.settle()
    assert len(job.events) == 4, "the launcher reports them until it gets another order"
    job.exit("worker-0", 3)
    assert job.states() == "worker-0 restarting (in 4 s (3 of 3) after exit 3)"
    job.wait(4)
    assert job.running() == "worker-0/4"
    assert not job.fail_alone("worker-0"), "the maximum counts those, too"


@pytest.mark.parametrize(("run_id", "has_ended", "attempt"), [("", False, 5), ("other", False, 1), ("", True, 1)])
def test_an_attempt_is_adopted_only_of_this_run_and_an_open_task(run_id: str, has_ended: bool, attempt: int) -> None:
    job = running(workers=2)
    report = replace(job.launchers["worker-1"].report(job.now), attempt=5)
    if has_ended:
        job.exit("worker-1")
    adopt_attempts(job.job, job.job.tasks["worker-1"], replace(report, run_id=run_id or report.run_id), job.now)
    assert job.job.tasks["worker-1"].attempt == attempt


def test_the_start_of_a_program_has_the_time_that_its_launcher_reports() -> None:
    job = running(workers=1)
    task = job.job.tasks["worker-0"]
    task.state = "starting"
    job.now += 30
    job.sync("worker-0")
    assert (task.state, task.since) == ("running", BEGIN), "the first report of it was lost"


def test_what_was_restarted_with_old_addresses_is_replaced_by_another_attempt() -> None:
    job = running(ps=1, workers=1, restart=ANY)
    cut_off = job.launchers.pop("worker-0")
    job.come("ps-0", port=29_999)
    assert job.job.tasks["worker-0"].attempt == 2
    job.launchers["worker-0"] = cut_off
    assert job.fail_alone("worker-0")
    assert cut_off.attempt == 2
    job.settle()
    assert job.running() == "ps-0/3, worker-0/3"
    assert cut_off.address_book[0].address == "127.0.0.1:29999"


def test_a_launcher_that_was_killed_meanwhile_leaves_what_it_began() -> None:
    job = running(workers=1, restart=ANY)
    assert job.fail_alone("worker-0")
    before = job.launchers["worker-0"]
    job.launchers["worker-0"] = Launcher("worker-0", before.port, job.now)
    job.launchers["worker-0"].inherit(before)
    job.return_after(60)
    job.settle()
    assert job.running() == "worker-0/3"
    assert [(event.kind, event.attempt) for event in job.events] == [
        (TASK_RESTARTING, 2),
        (TASK_STARTED, 2),
        (LAUNCHER_LOST, 2),
        (LAUNCHER_REGISTERED, 0),
        (TASK_STARTED, 3),
    ]


def test_a_launcher_that_was_cut_off_during_the_end_of_the_run_is_stopped() -> None:
    job = running(workers=2, restart=ANY)
    assert job.fail_alone("worker-1")
    cut_off = job.launchers.pop("worker-1")
    job.stop()
    job.launchers["worker-1"] = cut_off
    job.settle()
    assert job.launchers == {}
    assert job.states() == "worker-0 stopped (by request), worker-1 stopped (by request)"


@pytest.mark.parametrize("first", ["worker-0", "worker-1"])
def test_a_success_counts_before_a_later_failure_whoever_reports_first(first: str) -> None:
    job = running(workers=2, restart={"maximum": 0})
    job.launchers["worker-0"].end_child(0, job.now)
    job.launchers["worker-1"].end_child(1, job.now + 30)
    job.return_after(600)
    job.sync(first)
    assert job.verdict() == "none", "the other launcher is not heard yet"
    job.settle()
    assert job.verdict() == "succeeded: worker-0 succeeded"


def test_a_launcher_that_does_not_come_back_delays_decisions_for_a_moment_only() -> None:
    job = running(workers=2)
    job.lose("worker-1")
    job.launchers["worker-0"].end_child(0, job.now)
    job.return_after(600)
    job.wait(HEAR_SECONDS - 1)
    assert job.verdict() == "none"
    job.wait(2)
    assert job.verdict() == "succeeded: worker-0 succeeded"


@pytest.mark.parametrize(("port", "after"), [(21_000, "ps-0/1, worker-0/3"), (21_007, "ps-0/3, worker-0/5")])
def test_an_older_copy_of_the_record_ends_no_program_with_the_addresses_that_it_has(port: int, after: str) -> None:
    """As of a controller that takes the record from the bucket: it lacks two attempts, and perhaps other addresses."""
    job = running(ps=1, workers=1, restart=ANY)
    older, former = json.dumps(job.job.to_dict()), job.launchers["worker-0"]
    job.lose("worker-0")
    job.come("worker-0", port=port)
    job.exit("worker-0", 3)
    job.wait(2)
    begun = job.running()
    job.job = RunState.from_dict(json.loads(older))
    job.events.clear()
    job.return_after(600)
    job.settle()
    assert job.running() == after
    assert (begun == after) == (port == 21_000)
    assert LAUNCHER_LOST not in [event.kind for event in job.events]
    assert job.job.tasks["worker-0"].attempt == job.launchers["worker-0"].attempt
    assert job.take(former.report()).action == END, "the launcher that was replaced after the copy stays fenced"


def test_a_launcher_may_not_start_a_program_while_the_addresses_change() -> None:
    job = running(ps=1, workers=1, restart=ANY)
    job.lose("ps-0")
    launcher = job.launchers["worker-0"]
    assert launcher.last
    job.come("ps-0", port=29_999)
    job.lose("ps-0")
    restart_barrier(job.job, job.now)
    job.settle()
    assert not launcher.running
    assert launcher.last is None


class Running:
    """A controller with a fake clock, and the launchers of a run."""

    def __init__(self, folder: Path, **args: Any) -> None:
        self.now = BEGIN
        self.record = Record(folder)
        self.controller = Controller(self.record, clock=Clock(lambda: self.now, lambda: self.now))
        spec = plan(**{"workers": 1, **args}).run
        self.controller.submit_run(replace(spec, cost_per_hour=2.0, budget=3.0) if args.get("budget") else spec)
        self.launchers = {task.hostname: Launcher(task.hostname) for task in spec.tasks}
        self.wait(2.0)

    def wait(self, seconds: float) -> None:
        for _ in range(int(seconds * 2)):
            self.now += 0.5
            self.controller.tick()
            for launcher in self.launchers.values():
                order = self.controller.sync(replace(launcher.report(self.now), can_upload=True))
                launcher.obey(order, self.now)

    def events(self) -> list[Event]:
        return self.record.events(self.record.runs()[-1])

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events()]


@pytest.mark.parametrize("seconds", [PAUSE_SECONDS + 1, 600.0])
def test_a_controller_that_stood_still_hears_its_launchers_before_it_decides(tmp_path: Path, seconds: float) -> None:
    running = Running(tmp_path, workers=2, restart={"maximum": 0})
    ended = running.now
    running.launchers["worker-0"].end_child(0, ended)
    running.launchers["worker-1"].end_child(1, ended + 3)
    running.now += seconds
    running.controller.tick()
    running.controller.sync(running.launchers["worker-1"].report(running.now))
    running.controller.tick()
    assert events.RUN_ENDED not in running.kinds()
    running.wait(2)
    result = running.record.current().result  # type: ignore[union-attr]
    assert result
    assert result.state == "succeeded"
    ends = [event.at for event in running.events() if event.kind == events.TASK_SUCCEEDED]
    assert ends == [ended]


def test_an_upload_is_not_lost_because_its_controller_stood_still(tmp_path: Path) -> None:
    running = Running(tmp_path, artifacts=["*.keras"], train_dir=str(tmp_path))
    running.launchers["worker-0"].end_child(0, running.now)
    running.wait(1)
    assert running.controller.is_uploading()
    running.now += HOUR
    running.controller.tick()
    running.wait(1)
    assert running.controller.is_uploading()
    assert events.ARTIFACTS_LOST not in running.kinds()


def test_a_status_does_not_take_the_absence_of_the_controller_for_silence(tmp_path: Path) -> None:
    running = Running(tmp_path)
    task = "worker-0"
    running.now += 600
    running.controller.tick()
    run = stored_run(running.record)
    assert run.silent_seconds(run.tasks[task], running.now + 3) == 3.0
    assert reconcile.make_order(run, running.launchers[task].report(), running.now).action == RUN


# The launcher's side.


class Away:
    """A launcher's program and its last order, with a clock that the test turns."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, maximum: int = 3) -> None:
        self.now = 1000.0
        for module in (last_order, program):
            monkeypatch.setattr(module, "boot_seconds", lambda: self.now)
        self.program, self.last = Program(folder), LastOrder()
        self.order = Order(
            RUN,
            run_id="run",
            attempt=1,
            address_book=[TaskAddress("worker-0", "worker", 0, "here:1")],
            restart=RestartPolicy(maximum, 2.0, ["signal"]),
        )
        self.last.note_response(self.order)
        self.end(1)

    def end(self, attempt: int, code: int = 137, cause: str = "") -> None:
        self.program.fail("run", attempt, code, cause)
        assert self.program.exit is not None
        self.program.exit = replace(self.program.exit, signal="SIGKILL" if code > 128 else "")

    def follow(self, seconds: float = AWAY_SECONDS) -> int:
        """The attempt that is begun after so many seconds without a response; 0 for none."""
        self.last.note_silence()
        self.now += seconds
        order = self.last.follow(self.program)
        return order.attempt if order else 0


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Away:
    return Away(tmp_path, monkeypatch)


def test_a_failed_program_starts_again_after_a_silence_by_a_growing_back_off_up_to_the_maximum(away: Away) -> None:
    assert away.follow(AWAY_SECONDS - 0.1) == 0
    assert away.follow(0.1) == 2
    assert away.follow(0.0) == 2, "as long as it could not be started"
    assert [end.attempt for end, _ in away.program.restarted] == [1]
    away.end(2)
    assert away.follow(1.9) == 0
    assert away.follow(0.1) == 3
    away.end(3)
    assert away.follow(3.9) == 0
    assert away.follow(0.1) == 4
    away.end(4)
    assert away.follow(10_000) == 0


@pytest.mark.parametrize(("code", "cause"), [(0, ""), (3, ""), (137, INTERRUPTED)])
def test_an_end_that_the_policy_does_not_retry_waits_for_the_controller(away: Away, code: int, cause: str) -> None:
    away.end(1, code, cause)
    assert away.follow(10_000) == 0


def test_a_controller_that_responds_decides_itself(away: Away) -> None:
    assert away.last.follow(away.program) is None
    away.now += 60
    away.last.note_response(Order(NOTHING))
    assert away.follow(AWAY_SECONDS - 1) == 0
    away.last.note_response()
    assert away.follow(AWAY_SECONDS - 1) == 0
    assert away.follow(1) == 2


@pytest.mark.parametrize("action", [WAIT, STOP])
def test_an_order_that_takes_the_permission_away_holds(away: Away, action: str) -> None:
    away.last.note_response(Order(action, run_id="run", attempt=2))
    assert away.follow(10_000) == 0


def test_a_wait_for_the_back_off_is_a_permission(away: Away) -> None:
    policy = RestartPolicy(3, 20.0, ["signal"])
    away.last.note_response(Order(WAIT, run_id="run", attempt=2, restart=policy, failures=1))
    assert away.follow(19) == 0
    assert away.follow(1) == 2


def test_a_launcher_reports_a_limited_number_of_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    away = Away(tmp_path, monkeypatch, maximum=1000)
    for attempt in range(2, MAX_RESTARTS + 2):
        assert away.follow(300) == attempt
        away.end(attempt)
    assert away.follow(300) == 0


def test_the_next_launcher_reads_an_end_without_an_attempt_and_an_attempt_without_an_end(tmp_path: Path) -> None:
    end = {"run_id": "run", "attempt": 2, "port": 7, "started": 1.0, "ended_at": 5.0, "boot": "another"}
    (tmp_path / "exit.json").write_text(json.dumps({**end, "exit": Ended(3, at=9.0).to_dict()}))
    read = Program(tmp_path)
    assert (read.attempt, read.exit and read.exit.code, read.restarted) == (2, 3, [])
