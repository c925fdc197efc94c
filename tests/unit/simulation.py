"""A job's life without processes or time: launchers that obey orders at once, and a clock that a test turns."""

import itertools
import json
from dataclasses import replace
from typing import Any

from tests.unit.cases import plan
from tfdeploy.agent.control import controller_absence, elastic, reconcile, until_metrics
from tfdeploy.agent.model import sync
from tfdeploy.agent.model.events import Event
from tfdeploy.agent.model.restart_delay import restart_delay
from tfdeploy.agent.model.run_state import FINAL, RESTARTING, WAITING, Ended, LauncherReport, RunState, TaskState
from tfdeploy.agent.model.sync import Order
from tfdeploy.agent.model.task_command import TaskAddress
from tfdeploy.agent.record.metric_values import LoggedValue
from tfdeploy.report.events import exit_text, restart_text, result_text

BEGIN = 1_000.0
_ROUNDS = 12
_PORTS = {
    "ps": 20_000,
    "worker": 21_000,
    "chief": 22_000,
    "evaluator": 23_000,
    "gpu-worker": 24_000,
    "tensorboard": 6006,
    "store": 26_000,
    "data-dispatcher": 27_000,
    "data-worker": 28_000,
}


class Launcher:
    """What `agent.launch` is to the controller: a reporter that does what it is told. Its child ends by a test's word."""

    _count = itertools.count(1)

    def __init__(self, hostname: str, port: int = 0, now: float = BEGIN) -> None:
        job, _, index = hostname.rpartition("-")
        self.hostname = hostname
        self.generation = 0
        self.instance = f"{hostname}#{next(self._count)}"
        self.port = port or _PORTS[job] + int(index)
        self.takes_ports = not port
        """It uses the port that an order names, as long as that is free."""
        self.created = now
        self.run = ""
        self.attempt = 0
        self.running = False
        self.started = 0.0
        self.address_book: list[TaskAddress] = []
        self.exit: Ended | None = None
        self.ended = False
        self.is_listening = False
        self.last: Order | None = None
        """The last order that it may follow while the controller is away."""
        self.restarted: list[Ended] = []
        self.begun: list[tuple[str, int]] = []
        """Run and attempt of each start of the program in the launcher's folder."""

    def inherit(self, other: "Launcher") -> None:
        """Begin in the folder of a launcher that was killed."""
        self.run, self.attempt, self.exit, self.begun = other.run, other.attempt, other.exit, other.begun
        self.restarted = other.restarted

    def report(self, now: float | None = None) -> LauncherReport:
        """What it reports; `now` is for the ages of what has ended."""

        def aged(end: Ended) -> Ended:
            return replace(end, age=now - end.at if now else 0.0)

        return LauncherReport(
            self.hostname,
            self.instance,
            container="4711",
            machine="box",
            host="127.0.0.1",
            port=self.port if self.run else 0,
            created=self.created,
            run_id=self.run,
            ready=bool(self.run),
            attempt=self.attempt,
            phase=sync.EXITED if self.exit else sync.RUNNING if self.running else sync.IDLE,
            started=self.started,
            exit=self.exit and aged(self.exit),
            restarted=[aged(ended) for ended in self.restarted],
            generation=self.generation,
            is_listening=self.is_listening and self.running,
            running_seconds=now - self.started if now and self.running else 0.0,
        )

    def end_child(self, code: int, now: float, signal: str = "", oom: bool = False, cause: str = "") -> None:
        self.running = False
        self.exit = Ended(code, signal, oom, at=now, cause=cause, attempt=self.attempt, ran_seconds=now - self.started)

    def obey(self, order: Order, now: float) -> None:
        order = Order.from_dict(json.loads(json.dumps(order.to_dict())))
        self.generation = order.generation or self.generation
        same = (order.run_id, order.attempt) == (self.run, self.attempt)
        if order.action != sync.NOTHING:
            self.last = self._followed(order)
        if order.action == sync.RUN and not same:
            self.restarted = []
        if self.running:
            if order.action in (sync.STOP, sync.END):
                self.end_child(143, now, "SIGTERM", cause="stopped")
            elif not same:
                self.end_child(143, now, "SIGTERM", cause="replaced")
        elif order.action == sync.END:
            self.ended = True
        elif order.action == sync.PREPARE:
            self.run, self.attempt, self.exit, self.restarted = order.run_id, 0, None, []
            self.port = order.port if order.port and self.takes_ports else self.port
        elif order.action == sync.RUN and not same:
            assert order.run_id == self.run, "ordered to run what it has not prepared"
            self._begin(order.attempt, now)
            self.address_book = order.address_book

    def _begin(self, attempt: int, now: float) -> None:
        self.begun.append((self.run, attempt))
        self.attempt, self.running, self.started, self.exit = attempt, True, now, None

    def _followed(self, order: Order) -> Order | None:
        if order.restart is None or order.address_book:
            return order if order.restart else None
        return self.last and replace(self.last, restart=order.restart, failures=order.failures)

    def begin_again(self, now: float) -> None:
        """The controller is away, and it follows the last order."""
        assert self.last is not None
        assert self.exit is not None
        self.restarted = [*self.restarted, self.exit]
        self._begin(self.attempt + 1, now)
        self.last = replace(self.last, attempt=self.attempt, failures=self.last.failures + 1)


class World:
    """One cluster: the controller's job, the launchers that there are, and all that happened."""

    def __init__(self, at: float = BEGIN, **args: Any) -> None:
        self.now = at
        self.job = RunState(plan(**args).run, self.now)
        self.launchers: dict[str, Launcher] = {}
        self.events: list[Event] = []
        self._free_ports = itertools.count(25_000)
        self.saving: set[str] = set()
        """The tasks whose program goes on for a while when it is stopped."""

    def come(self, *hostnames: str, port: int = 0) -> None:
        """New launchers, in place of those that were; no name means all tasks of the run."""
        for hostname in hostnames or tuple(self.job.tasks):
            self.launchers[hostname] = Launcher(hostname, port, self.now)
        self.settle()

    def lose(self, hostname: str) -> None:
        """The launcher dies, and its child with it; nobody says so."""
        del self.launchers[hostname]

    def take(self, report: LauncherReport) -> Order:
        """What the controller does with a report: the next order."""
        report = LauncherReport.from_dict(json.loads(json.dumps(report.to_dict())))
        self.note(reconcile.apply_report(self.job, report, self.now))
        self.advance()
        order = reconcile.make_order(self.job, report, self.now)
        reconcile.note_order(self.job, report, order)
        return order

    def advance(self) -> None:
        """What the controller does at each of its steps."""
        elastic.reserve_addresses(self.job, lambda: next(self._free_ports))
        self.note(reconcile.advance(self.job, self.now))

    def note(self, events: list[Event]) -> None:
        self.events += [
            Event.from_dict(json.loads(json.dumps(replace(event, at=event.at or self.now).to_dict())))
            for event in events
        ]

    def sync(self, hostname: str) -> Order:
        launcher = self.launchers[hostname]
        order = self.take(launcher.report(self.now))
        if not (order.action == sync.STOP and hostname in self.saving):
            launcher.obey(order, self.now)
        if launcher.ended:
            del self.launchers[hostname]
        return order

    def settle(self) -> None:
        """Let all launchers speak with the controller until nothing more comes of it."""
        for _ in range(_ROUNDS):
            for hostname in list(self.launchers):
                self.sync(hostname)

    def exit(self, hostname: str, code: int = 0, **how: Any) -> None:
        """The program of a task ends by itself."""
        self.launchers[hostname].end_child(code, self.now, **how)
        self.settle()

    def fail_alone(self, hostname: str, code: int = 137, signal: str = "SIGKILL") -> bool:
        """A program fails while the controller is away; whether its launcher has started it again by the last order."""
        launcher = self.launchers[hostname]
        launcher.end_child(code, self.now, signal)
        order = launcher.last
        policy = order.restart if order and order.attempt == launcher.attempt else None
        delay = restart_delay(policy, order.failures, Ended(code, signal)) if order and policy else None
        if delay is not None:
            self.now += delay
            launcher.begin_again(self.now)
        return delay is not None

    def return_after(self, seconds: float) -> None:
        """The controller was away for so long, and its first step comes before any report."""
        self.now += seconds
        controller_absence.listen_again(self.job, self.now, seconds)
        self.advance()

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.advance()
        self.settle()

    def give(self, **args: Any) -> None:
        """A new `up`: the same run with other counts or policies, or another run."""
        run = plan(**args).run
        if run.id != self.job.spec.id:
            self.job = RunState(run, self.now)
        self.note(reconcile.update_spec(self.job, run, self.now))
        self.settle()

    def resize(self, **args: Any) -> None:
        """All that an update to other counts does: it removes tasks first, and adds launchers last."""
        before, asked = set(self.job.tasks), {task.hostname for task in plan(**args).tasks}
        self.note(reconcile.remove_tasks(self.job, [*before - asked]))
        self.settle()
        self.give(**args)
        for hostname in self.job.tasks.keys() - before:
            self.come(hostname)

    def roll(self, *hostnames: str) -> None:
        """Tasks whose settings have changed are to be restarted."""
        reconcile.queue_restarts(self.job, list(hostnames), self.now)
        self.settle()

    def again(self, hostname: str, word: str = "restarted") -> None:
        """The user's word: another launcher for a task."""
        self.note(reconcile.announce_new_launcher(self.job, hostname, word))
        if hostname in self.launchers:
            self.launchers[hostname].end_child(143, self.now, "SIGTERM", cause="interrupted")
            self.sync(hostname)
        self.come(hostname)

    def restart_controller(self) -> None:
        """The controller is killed and knows no more than its record."""
        self.job = RunState.from_dict(json.loads(json.dumps(self.job.to_dict())))

    def stop(self, auxiliary: bool = True, time_limit: float = 0.0) -> None:
        """The user's request, or the end of the time limit."""
        self.note(reconcile.stop_run(self.job, self.now, auxiliary, time_limit))
        self.settle()

    def pay(self, before: float | None = None, **cost: Any) -> None:
        """A new `up`, which knows this about the cost of the machines; they have cost so much before."""
        self.note(reconcile.update_spec(self.job, replace(self.job.spec, **cost), self.now))
        self.job.cost_before = self.job.cost_before if before is None else before
        self.settle()

    def measure(self, **values: LoggedValue) -> None:
        """The controller has read these values of metrics in the logs."""
        until_metrics.apply_values(self.job, values, self.now)
        self.settle()

    def states(self) -> str:
        """`ps-0 running, worker-0 waiting for worker-1 …` in the order of the tasks, reasons in brackets."""

        def detail(task: TaskState) -> str:
            if task.state == RESTARTING:
                return (
                    f"{restart_text(task.restart_delay, task.failures, task.max_failures)} after {exit_text(task.end)}"
                )
            return task.waiting_for if task.state == WAITING else task.reason

        return ", ".join(
            f"{name} {task.state}" + (f" ({detail(task)})" if detail(task) else "")
            for name, task in self.job.tasks.items()
        )

    def verdict(self) -> str:
        return f"{self.job.result.state}: {result_text(self.job.result)}" if self.job.result else "none"

    def running(self) -> str:
        """Whose children run, and in which attempt."""
        return ", ".join(f"{name}/{it.attempt}" for name, it in sorted(self.launchers.items()) if it.running)

    def happened(self) -> list[tuple[str, str]]:
        """Kind and task of each event."""
        return [(event.kind, event.task) for event in self.events]

    def done(self) -> bool:
        return all(task.state in FINAL for task in self.job.tasks.values())


def running(at: float = BEGIN, **args: Any) -> World:
    """A job of which all tasks run; what has happened until then is forgotten."""
    made = World(at, **args)
    made.come()
    made.events.clear()
    return made
