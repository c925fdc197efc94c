"""Runs that make no steps any more: when an event says so, and when none does."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cases import plan
from tests.unit.printing import write
from tests.unit.simulation import Launcher
from tfdeploy.agent.control.clock import Clock
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.control.step_watch import STALL_SECONDS, StepWatch
from tfdeploy.agent.model.events import STEPS_CONTINUED, STEPS_STOPPED, Event
from tfdeploy.agent.record.output_lines import STDOUT
from tfdeploy.agent.record.record import Record

BEGIN = 1_000_000.0
LATER = STALL_SECONDS + 10.0


class Training:
    """A controller with launchers that obey, and a clock that a test turns."""

    def __init__(self, folder: Path, **args: Any) -> None:
        self.now = BEGIN
        self.clock = Clock(lambda: self.now, lambda: self.now)
        self.folder = folder
        self.plan = plan(**{"ps": 1, "workers": 2, **args})
        self.launchers = {task.hostname: Launcher(task.hostname) for task in self.plan.tasks}
        self.silent: set[str] = set()
        self.start_controller()
        self.controller.submit_run(self.plan.run)
        self.run_id = self.plan.run.id
        self.step = 0
        for _ in range(6):
            self.sync()

    def start_controller(self) -> None:
        self.controller = Controller(Record(self.folder), clock=self.clock)
        self.watch = StepWatch(self.controller, self.clock)

    def sync(self) -> None:
        for name, launcher in self.launchers.items():
            if name not in self.silent:
                launcher.obey(self.controller.sync(launcher.report(self.now)), self.now)
        self.controller.tick()

    def log(self, hostname: str, *lines: str) -> None:
        log = self.controller.record.log(self.run_id, hostname)
        write(log, [(STDOUT, f"{line}\n".encode()) for line in lines], begin=self.now)

    def wait(self, seconds: float, between: Callable[[], object] = lambda: None, pause: float = 5.0) -> None:
        """Let time pass, with what happens meanwhile, and the watch that looks."""
        for _ in range(round(seconds / pause)):
            self.now += pause
            between()
            self.sync()
            self.watch.poll()

    def train(self, lines: int = 10, form: str = "step {} loss 0.5") -> None:
        """Log a step every five seconds."""

        def log_step() -> None:
            self.step += 1
            self.log("worker-0", form.format(self.step))

        self.wait(lines * 5.0, log_step)

    def happened(self) -> list[str]:
        events = self.controller.record.events(self.run_id)
        return [event.kind for event in events if event.kind in (STEPS_STOPPED, STEPS_CONTINUED)]


@pytest.fixture
def training(tmp_path: Path) -> Training:
    return Training(tmp_path)


def test_one_event_says_each_time_that_the_steps_have_stopped(training: Training) -> None:
    training.train()
    assert training.happened() == []
    training.wait(LATER)
    assert training.happened() == [STEPS_STOPPED]
    (event,) = [item for item in training.controller.record.events(training.run_id) if item.kind == STEPS_STOPPED]
    assert event == Event(STEPS_STOPPED, event.at, delay=STALL_SECONDS)
    training.wait(3 * LATER, pause=30.0)
    training.start_controller()
    training.wait(3 * LATER, pause=30.0)
    assert training.happened() == [STEPS_STOPPED], "it is the same time, also for another controller"
    training.train()
    assert training.happened() == [STEPS_STOPPED, STEPS_CONTINUED]
    training.wait(LATER)
    assert training.happened() == [STEPS_STOPPED, STEPS_CONTINUED, STEPS_STOPPED]


@pytest.mark.parametrize("form", ["Epoch {}/90", "INFO:tensorflow:global_step/sec: 17, step = {}", "[1/2] iter: {}"])
def test_epochs_and_other_forms_of_steps_are_known(training: Training, form: str) -> None:
    training.train(form=form)
    training.wait(LATER)
    assert training.happened() == [STEPS_STOPPED]


def test_a_run_without_steps_has_none(training: Training) -> None:
    training.train(form="loaded part {} of the data")
    training.train(3)
    training.wait(2 * LATER)
    assert training.happened() == [], "the usual interval of three steps is not known"


def test_steps_of_one_task_are_enough_and_those_of_a_ps_or_an_evaluator_do_not_count(tmp_path: Path) -> None:
    training = Training(tmp_path, evaluator=True)
    training.train()
    training.wait(LATER, lambda: training.log("worker-1", "step 1"))
    assert training.happened() == []

    def log_elsewhere() -> None:
        for hostname in ("ps-0", "evaluator-0"):
            training.log(hostname, "step 1")

    training.wait(LATER, log_elsewhere)
    assert training.happened() == [STEPS_STOPPED]


def test_ten_usual_intervals_are_no_stop(training: Training) -> None:
    for _ in range(6):
        training.wait(90.0)
        training.log("worker-0", "step 1")
    training.wait(840.0)
    assert training.happened() == [], "the usual interval is 90 s"
    training.wait(100.0)
    assert training.happened() == [STEPS_STOPPED]


def test_steps_not_searched_yet_may_have_been_made(training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    training.train()
    whole = Controller.search
    with monkeypatch.context() as slow:
        slow.setattr(Controller, "search", lambda *args: replace(whole(*args), is_at_end=False))
        training.wait(2 * LATER)
        assert training.happened() == []
    training.wait(LATER)
    assert training.happened() == [STEPS_STOPPED]


def restart(training: Training) -> None:
    """It is over before the watch looks."""
    training.controller.queue_restarts(["worker-1"])
    for _ in range(10):
        training.now += 1.0
        training.sync()
    assert training.launchers["worker-1"].running
    assert training.launchers["worker-1"].attempt == 2


def silence(training: Training) -> None:
    training.silent.add("worker-0")


def stop(training: Training) -> None:
    training.controller.stop([])


@pytest.mark.parametrize("change", [restart, silence, stop])
def test_time_in_which_steps_were_not_possible_or_not_known_does_not_count(
    training: Training, change: Callable[[Training], None]
) -> None:
    training.train()
    training.wait(STALL_SECONDS - 40.0)
    change(training)
    training.wait(STALL_SECONDS - 40.0)
    assert training.happened() == []
    training.wait(LATER)
    assert training.happened() == ([STEPS_STOPPED] if change is restart else [])
