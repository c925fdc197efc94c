"""A job's life without processes or time: launchers that obey orders at once, and a clock that a test turns."""

import itertools
import json
from collections.abc import Mapping
from typing import Any

from tests.unit.cases import plan
from tfdeploy.agent import orders
from tfdeploy.agent.states import FINAL, Job

BEGIN = 1_000.0
_ROUNDS = 12
_PORTS = {
    "ps": 20_000,
    "worker": 21_000,
    "chief": 22_000,
    "evaluator": 23_000,
    "gpu-worker": 24_000,
    "tensorboard": 6006,
}


class Launcher:
    """What `agent.launch` is to the keeper: a reporter that does what it is told. Its child ends by a test's word."""

    _count = itertools.count(1)

    def __init__(self, hostname: str, port: int = 0, now: float = BEGIN) -> None:
        job, _, index = hostname.rpartition("-")
        self.hostname = hostname
        self.instance = f"{hostname}#{next(self._count)}"
        self.port = port or _PORTS[job] + int(index)
        self.created = now
        self.run = ""
        self.attempt = 0
        self.running = False
        self.started = 0.0
        self.book: list[list[Any]] = []
        self.exit: dict[str, Any] | None = None
        self.ended = False

    def report(self) -> dict[str, Any]:
        return {
            "hostname": self.hostname,
            "instance": self.instance,
            "container": "4711",
            "machine": "box",
            "host": "127.0.0.1",
            "port": self.port if self.run else 0,
            "created": self.created,
            "run": self.run,
            "ready": bool(self.run),
            "attempt": self.attempt,
            "phase": "exited" if self.exit else "running" if self.running else "idle",
            "started": self.started,
            "exit": self.exit,
        }

    def end_child(self, code: int, now: float, signal: str = "", oom: bool = False, cause: str = "") -> None:
        self.running = False
        self.exit = {"code": code, "signal": signal, "oom": oom, "cause": cause, "at": now}

    def obey(self, order: Mapping[str, Any], now: float) -> None:
        same = (order.get("run"), order.get("attempt")) == (self.run, self.attempt)
        if self.running:
            if order["do"] in ("stop", "end"):
                self.end_child(143, now, "SIGTERM", cause="stopped")
            elif not same:
                self.end_child(143, now, "SIGTERM", cause="replaced")
        elif order["do"] == "end":
            self.ended = True
        elif order["do"] == "prepare":
            self.run, self.attempt, self.exit = order["run"], 0, None
        elif order["do"] == "run" and not same:
            assert order["run"] == self.run, "told to run what it has not prepared"
            self.attempt, self.running, self.started, self.exit = order["attempt"], True, now, None
            self.book = order["book"]


class World:
    """One cluster: the keeper's job, the launchers that there are, and all that happened."""

    def __init__(self, **args: Any) -> None:
        self.now = BEGIN
        self.job = Job(dict(plan(**args).run), self.now)
        self.launchers: dict[str, Launcher] = {}
        self.events: list[str] = []

    def begin_at(self, now: float) -> None:
        """Have it begin at another moment."""
        self.now = self.job.given = self.job.waiting_since = now

    def come(self, *hostnames: str, port: int = 0) -> None:
        """New launchers, in place of those that were; no name means all tasks of the run."""
        for hostname in hostnames or tuple(self.job.tasks):
            self.launchers[hostname] = Launcher(hostname, port, self.now)
        self.settle()

    def lose(self, hostname: str) -> None:
        """The launcher dies, and its child with it; nobody says so."""
        del self.launchers[hostname]

    def take(self, report: Mapping[str, Any]) -> orders.Order:
        """What the keeper does with a report: the next order."""
        self.note(orders.absorb(self.job, dict(report), self.now))
        self.note(orders.advance(self.job, self.now))
        return orders.order(self.job, report["hostname"], self.now)

    def note(self, events: list[str]) -> None:
        self.events += events

    def sync(self, hostname: str) -> orders.Order:
        launcher = self.launchers[hostname]
        order = self.take(launcher.report())
        launcher.obey(order, self.now)
        if launcher.ended:
            del self.launchers[hostname]
        return order

    def settle(self) -> None:
        """Let all launchers speak with the keeper until nothing more comes of it."""
        for _ in range(_ROUNDS):
            for hostname in list(self.launchers):
                self.sync(hostname)

    def exit(self, hostname: str, code: int = 0, **how: Any) -> None:
        """The program of a task ends by itself."""
        self.launchers[hostname].end_child(code, self.now, **how)
        self.settle()

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.note(orders.advance(self.job, self.now))
        self.settle()

    def give(self, **args: Any) -> None:
        """A new `up`: the same run with other counts or policies, or another run."""
        run = dict(plan(**args).run)
        if run["id"] != self.job.run["id"]:
            self.job = Job(run, self.now)
        self.note(orders.hand_over(self.job, run, self.now))
        self.settle()

    def roll(self, *hostnames: str) -> None:
        """Tasks whose settings have changed are to be restarted."""
        orders.roll(self.job, list(hostnames), self.now)
        self.settle()

    def again(self, hostname: str, word: str = "restarted") -> None:
        """The user's word: another launcher for a task."""
        self.note(orders.leave(self.job, hostname, word))
        if hostname in self.launchers:
            self.launchers[hostname].end_child(143, self.now, "SIGTERM", cause="interrupted")
            self.sync(hostname)
        self.come(hostname)

    def restart_keeper(self) -> None:
        """The keeper is killed and knows no more than its record."""
        self.job = Job.from_dict(json.loads(json.dumps(self.job.to_dict())))

    def stop(self) -> None:
        """The user's word."""
        self.note(orders.dismiss(self.job, self.now))
        self.settle()

    def states(self) -> str:
        """`ps-0 running, worker-0 waiting for worker-1 …` in the order of the tasks, reasons in brackets."""
        return ", ".join(
            f"{name} {task.state}" + (f" ({task.reason})" if task.reason else "")
            for name, task in self.job.tasks.items()
        )

    def verdict(self) -> str:
        return f"{self.job.verdict.state}: {self.job.verdict.reason}" if self.job.verdict else "none"

    def running(self) -> str:
        """Whose children run, and in which attempt."""
        return ", ".join(f"{name}/{it.attempt}" for name, it in sorted(self.launchers.items()) if it.running)

    def done(self) -> bool:
        return all(task.state in FINAL for task in self.job.tasks.values())
