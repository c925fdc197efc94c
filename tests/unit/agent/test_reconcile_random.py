"""Whatever happens in whatever order, some things hold at every moment of a job, and it comes to an end."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.examples import examples
from tests.unit.simulation import Launcher, World
from tfdeploy.agent.model.events import TASKS_CHANGED
from tfdeploy.agent.model.run_state import FINAL, STARTUP_TIMEOUT, LauncherReport, TaskState

TASKS = st.sampled_from(["ps-0", "worker-0", "worker-1", "worker-2", "evaluator-0", "tensorboard-0"])
GO_ON = ("evaluator-0", "tensorboard-0")
SETTINGS: dict[str, Any] = {"restart": {"on": ["any"], "maximum": 2}, "start_timeout": "10m", "stop_grace_period": "5s"}
ENDS = [
    {"code": 0},
    {"code": 3},
    {"code": 137, "signal": "SIGKILL"},
    {"code": 137, "signal": "SIGKILL", "oom": True},
    {"code": 0, "cause": "interrupted"},
    {"code": 143, "signal": "SIGTERM", "cause": "interrupted"},
]


class LifeOfAJob(RuleBasedStateMachine):
    """Launchers come, die and report late or twice; programs end; controllers are killed; counts change; time passes."""

    @initialize(evaluator=st.integers(0, 1), kind=st.sampled_from(["worker-0", "all-workers", "elastic"]))
    def begin(self, evaluator: int, kind: str) -> None:
        rule = {"elastic": {"max": 3}} if kind == "elastic" else {"success": kind}
        self.others: dict[str, Any] = {"ps": 1, "evaluator": evaluator, **rule}
        self.world = World(workers=2, **self.others, **SETTINGS)
        self.reports: list[LauncherReport] = []
        self.result: object = None
        self.final: dict[str, str] = {}
        self.attempts: dict[str, int] = {}

    @rule(hostname=TASKS, port=st.sampled_from([0, 29_999]))
    def a_launcher_comes(self, hostname: str, port: int) -> None:
        if hostname in self.world.job.tasks:
            self.world.launchers.pop(hostname, None)
            self.world.come(hostname, port=port)

    @rule(hostname=TASKS)
    def a_launcher_is_killed_and_the_next_one_begins_in_its_folder(self, hostname: str) -> None:
        if hostname in self.world.job.tasks and hostname in self.world.launchers:
            before = self.world.launchers[hostname]
            self.world.launchers[hostname] = Launcher(hostname, before.port, self.world.now)
            self.world.launchers[hostname].inherit(before)
            self.world.settle()

    @rule(hostname=TASKS, end=st.sampled_from([{"code": 3, "signal": ""}, {"code": 137}]), times=st.integers(1, 3))
    def a_program_fails_while_the_controller_is_away(self, hostname: str, end: dict[str, Any], times: int) -> None:
        launcher = self.world.launchers.get(hostname)
        for _ in range(times):
            if launcher and launcher.running:
                self.world.fail_alone(hostname, **end)

    @rule(seconds=st.sampled_from([0.1, 3.0, 600.0]))
    def the_controller_returns(self, seconds: float) -> None:
        self.world.return_after(seconds)

    @rule(hostname=TASKS)
    def a_launcher_is_lost(self, hostname: str) -> None:
        self.world.launchers.pop(hostname, None)

    @rule(hostname=TASKS, end=st.sampled_from(ENDS))
    def a_program_ends(self, hostname: str, end: dict[str, Any]) -> None:
        launcher = self.world.launchers.get(hostname)
        if launcher and launcher.running:
            launcher.end_child(now=self.world.now, **end)

    @rule(hostname=TASKS)
    def a_launcher_reports(self, hostname: str) -> None:
        launcher = self.world.launchers.get(hostname)
        if launcher:
            self.reports.append(launcher.report())
            order = self.world.sync(hostname)
            task = self.world.job.tasks.get(hostname)
            assert order.action in ("prepare", "wait", "run", "stop", "end")
            assert order.action != "run" or (task and task.state not in FINAL)
            assert order.action != "run" or hostname in GO_ON or not self.is_over()

    @precondition(lambda self: self.reports)
    @rule(data=st.data())
    def an_old_report_of_the_last_launcher_comes_late(self, data: st.DataObject) -> None:
        report = data.draw(st.sampled_from(self.reports))
        task = self.world.job.tasks.get(report.hostname)
        if task and task.report.instance == report.instance:
            self.world.take(report)

    @rule(seconds=st.sampled_from([0.1, 1.0, 3.0, 60.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.now += seconds

    @rule()
    def all_speak(self) -> None:
        self.world.settle()

    @rule()
    def the_controller_is_killed(self) -> None:
        self.world.restart_controller()

    @rule(workers=st.integers(1, 3), tensorboard=st.booleans())
    def the_run_is_given_again(self, workers: int, tensorboard: bool) -> None:
        before = [task.hostname for task in self.world.job.training_tasks]
        happened = len(self.world.events)
        self.world.give(workers=workers, tensorboard=tensorboard, **self.others, **SETTINGS)
        is_elastic = "elastic" in self.others
        assert not (is_elastic and any(event.kind == TASKS_CHANGED for event in self.world.events[happened:]))
        changed = before != [task.hostname for task in self.world.job.training_tasks]
        if changed and not is_elastic and not self.world.job.result:
            self.final.clear()  # all start again, with other flags
        for known in (self.final, self.attempts):
            for hostname in [name for name in known if name not in self.world.job.tasks]:
                del known[hostname]

    @rule(hostname=TASKS)
    def a_task_is_to_be_restarted(self, hostname: str) -> None:
        if hostname in self.world.job.tasks and not self.world.job.result:
            self.world.roll(hostname)

    @precondition(lambda self: self.world.job.result)
    @rule()
    def what_still_runs_after_the_result_is_stopped(self) -> None:
        self.world.stop(auxiliary=False)

    def is_over(self) -> bool:
        """Whether the run has ended, and no worker has time left."""
        result = self.world.job.result
        if result is None or self.world.job.stopped_at:
            return result is not None
        return result.state != "succeeded" or self.world.now >= result.at + self.world.job.spec.worker_timeout

    @invariant()
    def a_success_is_that_of_all_tasks_that_decide(self) -> None:
        result = self.world.job.result
        if result is not None and result.state == "succeeded":
            assert {self.tasks()[name].state for name in result.tasks} == {"succeeded"}

    @invariant()
    def only_a_task_that_is_not_optional_fails_an_elastic_run(self) -> None:
        result = self.world.job.result
        if "elastic" in self.others and result is not None and result.state == "failed":
            assert not {"worker-1", "worker-2"} & {*result.tasks} or result.cause == STARTUP_TIMEOUT

    def tasks(self) -> dict[str, TaskState]:
        return self.world.job.tasks

    @invariant()
    def a_verdict_stands(self) -> None:
        assert self.result is None or self.world.job.result == self.result
        self.result = self.world.job.result

    @invariant()
    def a_task_that_is_done_stays_done(self) -> None:
        for name, state in self.final.items():
            assert self.tasks()[name].state == state
        self.final = {task.hostname: task.state for task in self.world.job.training_tasks if task.state in FINAL}

    @invariant()
    def attempts_never_go_back(self) -> None:
        for name, attempt in self.attempts.items():
            assert self.tasks()[name].attempt >= attempt
        self.attempts = {name: task.attempt for name, task in self.tasks().items()}

    @invariant()
    def no_attempt_begins_twice(self) -> None:
        for launcher in self.world.launchers.values():
            assert len(launcher.begun) == len({*launcher.begun})

    @invariant()
    def who_runs_in_the_present_attempt_has_the_present_book(self) -> None:
        for name, launcher in self.world.launchers.items():
            task = self.tasks().get(name)
            if task and launcher.running and launcher.attempt == task.attempt and task.state not in FINAL:
                book = {name: task.address} if task.is_auxiliary else self.world.job.address_book
                assert {entry.hostname: entry.address for entry in launcher.address_book} == book

    def teardown(self) -> None:
        """When launchers live and programs do their work, the job comes to its end and nobody is left."""
        world = self.world
        for _ in range(20):
            for name, task in world.job.tasks.items():
                if task.state not in FINAL and name not in world.launchers:
                    world.come(name)
            for hostname in [name for name, it in world.launchers.items() if it.running and name != "ps-0"]:
                if hostname in world.launchers and world.launchers[hostname].running:
                    world.exit(hostname)
            world.wait(400)
        assert world.job.result is not None
        assert world.done()
        assert world.launchers == {}


TestLifeOfAJob = LifeOfAJob.TestCase
TestLifeOfAJob.settings = settings(max_examples=examples(60), stateful_step_count=40)
