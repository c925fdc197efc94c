"""A real cluster of processes, stood by the local backend's own hands, without Pulumi in between."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.components.processes import alive
from tests.waiting import PATIENCE, until
from tfdeploy.agent.record import Record
from tfdeploy.agent.states import Job
from tfdeploy.application import version
from tfdeploy.backends.base import Cluster, RunProps, TaskProps
from tfdeploy.backends.local import BACKEND
from tfdeploy.backends.local.places import Places
from tfdeploy.backends.local.supervisor import Supervisor
from tfdeploy.bundle import collect
from tfdeploy.outline import outline
from tfdeploy.plan import Given, Plan, make_plan
from tfdeploy.report import Report, report
from tfdeploy.spec import ClusterSpec, cluster_spec

TOKEN = "a-token-of-the-tests"

STEPS = """
import os, pathlib, sys, time

here = pathlib.Path({folder!r})
hostname = os.environ["TFDEPLOY_HOSTNAME"]


def begin():
    with (here / ("starts-" + hostname)).open("a") as starts:
        starts.write(str(os.getpid()) + "\\n")
    return len((here / ("starts-" + hostname)).read_text().splitlines())


def wait_for(*gates):
    while not any((here / gate).exists() for gate in gates):
        time.sleep(0.02)
"""
"""Module `steps` of every test program: `begin` counts its starts, `wait_for` waits until the test opens a gate."""

WAITS = """
from steps import begin, hostname, wait_for

begin()
wait_for("gate", hostname)
"""
"""A program that ends well as soon as the test opens the gate, or one of its task's name."""


class Standing:
    """One cluster that stands; what a test starts through it, `clear` stops."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder / name
        self.folder.mkdir()
        any_spec = cluster_spec(name, {"command": ["python"], "workers": 1})
        self.cluster: Cluster = BACKEND.cluster("tests", folder.name, any_spec)
        self.places = Places(self.cluster["home"])
        self.spec: ClusterSpec
        self.plan: Plan

    def declare(self, script: str = "", **args: Any) -> None:
        """Plan a cluster whose tasks run `script` with Python, or `command`."""
        code = self.folder / "code"
        if script:
            code.mkdir(exist_ok=True)
            (code / "steps.py").write_text(STEPS.format(folder=str(self.folder)))
            (code / "program.py").write_text(script)
            args = {"command": [sys.executable, "program.py"], "code": str(code), **args}
        self.spec = cluster_spec(self.cluster["name"], {"grace": "5s", **args})
        bundle = collect("test", Path(self.spec.code)) if self.spec.code else None
        train_dir = BACKEND.folder(self.cluster, self.spec, "train_dir", str(self.folder))
        data_dir = BACKEND.folder(self.cluster, self.spec, "data_dir", str(self.folder))
        known = Given(bundle.name if bundle else "", train_dir, data_dir)
        self.plan = make_plan(self.spec, BACKEND.machines(self.cluster, self.spec), known)

    def task_props(self, hostname: str) -> TaskProps:
        """The properties of one task, as the component gives them."""
        task = next(task for task in self.plan.tasks if task.hostname == hostname)
        return {
            "cluster": self.cluster,
            "token": TOKEN,
            "hostname": hostname,
            "job": task.job,
            "index": task.index,
            "machine": task.machine,
            "memory": task.memory,
            "cpus": task.cpus,
            "gpus": ",".join(task.gpus),
            "port": task.port,
            "grace": self.spec.grace,
            "agent": version(),
            "container": {},
            "supplies": {},
        }

    def run_props(self, secrets: dict[str, str] | None = None) -> RunProps:
        """The properties of the run, as the component gives them."""
        return {
            "cluster": self.cluster,
            "token": TOKEN,
            "run": dict(self.plan.run),
            "code_folder": self.spec.code,
            "code_without": [],
            "secrets": secrets or {},
            "container": {},
            "supplies": {},
        }

    def stand(self, without: tuple[str, ...] = (), secrets: dict[str, str] | None = None) -> None:
        """Make tasks and run stand, in the order in which Pulumi does."""
        self.stand_tasks(without)
        BACKEND.give(self.run_props(secrets))

    def stand_tasks(self, without: tuple[str, ...] = ()) -> None:
        """Make the tasks stand, and nothing more."""
        for task in self.plan.tasks:
            if task.hostname not in without:
                BACKEND.stand(self.task_props(task.hostname))

    def up(self, script: str = "", **args: Any) -> None:
        """Declare and stand."""
        self.declare(script, **args)
        self.stand()

    def sweep(self) -> None:
        """Stop what is no longer declared."""
        BACKEND.sweep(self.cluster, TOKEN, [task.hostname for task in self.plan.tasks])

    def limit(self, *hostnames: str, script: str = WAITS, **args: Any) -> None:
        """Declare anew, and give these tasks their new limits in this order; then the run."""
        olds = {hostname: self.task_props(hostname) for hostname in hostnames}
        self.declare(script, **args)
        for hostname in hostnames:
            BACKEND.change(olds[hostname], self.task_props(hostname))
        BACKEND.give(self.run_props())

    def train(self, script: str, arguments: tuple[str, ...] = ("first",), **args: Any) -> None:
        """Declare and stand a program that is given arguments of its own."""
        self.up(script, **{"command": [sys.executable, "program.py", *arguments], **args})

    def look(self) -> Report:
        """One look."""
        ask = {"log_lines": self.spec.log_lines, "metrics": dict(self.spec.metrics)}
        return report(outline(self.plan, self.spec), BACKEND.look(self.cluster, TOKEN, ask))

    def status(self, hostname: str) -> str:
        """The status of one task, in the report's words."""
        return str(next(row["status"] for row in self.look().tasks if row["hostname"] == hostname))

    def last_report(self, hostname: str) -> float:
        """When the keeper heard last of a task's launcher, as a look has it."""
        sight = BACKEND.look(self.cluster, TOKEN, {"log_lines": 0, "metrics": {}})
        return float(sight.view["job"]["tasks"][hostname]["seen"])

    def until_reported(self, hostname: str) -> None:
        """Wait until the keeper has heard from a task's launcher once more."""
        known = self.last_report(hostname)
        until(lambda: self.last_report(hostname) > known, f"a later report of {hostname}")

    def keeper_alive(self) -> float:
        """When the keeper last said that it lives."""
        return Record(self.places.record).last_alive()

    def until_status(self, hostname: str, status: str, seconds: float = PATIENCE) -> None:
        """Wait until a task's status begins with `status`."""
        try:
            until(lambda: self.status(hostname).startswith(status), f"{hostname} {status}", seconds)
        except AssertionError as error:
            raise AssertionError(
                f"{error}; it is {self.status(hostname)!r}\n{self.look().status}\n{self.events()}"
            ) from None

    def until_running(self, *hostnames: str, times: int = 1) -> None:
        """Wait until the programs of these tasks have begun so often, and the keeper knows it."""
        for hostname in hostnames:
            self.until_started(hostname, times)
            self.until_status(hostname, "running")

    def until_state(self, state: str, seconds: float = PATIENCE) -> Report:
        """Wait until the job is in a state and nothing runs any more."""

        def there() -> Report | None:
            seen = self.look()
            settled = not any(row["status"] in ("running", "starting") for row in seen.tasks)
            return seen if seen.state == state and settled else None

        try:
            return until(there, f"job {state}", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.look().status}\n{self.events()}") from None

    def job(self) -> Job:
        """The job as the keeper remembers it: it must have been given."""
        return self.recorded_in(self.places.record)

    def recorded_in(self, folder: Path) -> Job:
        """The present job of a record, wherever that lies."""
        job = Record(folder).current()
        assert job is not None
        return job

    def recorded(self, hostname: str) -> str:
        """A task's state as it stands on disk, without a word from the keeper."""
        return self.job().tasks[hostname].state

    def events(self) -> list[str]:
        """What happened in the present run."""
        record, job = Record(self.places.record), Record(self.places.record).current()
        return [event["text"] for event in record.events(job.run["id"])] if job else []

    def output(self, hostname: str, name: str = "stdout") -> bytes:
        """All bytes that a task of the present run printed on one pipe, from the record."""
        stream = Record(self.places.record).log(self.job().run["id"], hostname).streams[name]
        return stream.span(stream.start, stream.end)

    def until_output(self, hostname: str, expected: bytes) -> None:
        """Wait until this is all that a task of the present run has printed."""
        try:
            until(lambda: self.output(hostname) == expected, f"the output of {hostname}")
        except AssertionError:
            assert self.output(hostname) == expected

    def open(self, gate: str = "gate") -> None:
        """Let the programs go on that wait for this gate; a hostname opens that task's."""
        (self.folder / gate).touch()

    def started(self, hostname: str) -> list[int]:
        """The process ids that the task's program has had: one for each of its starts."""
        starts = self.folder / f"starts-{hostname}"
        return [int(line) for line in starts.read_text().splitlines()] if starts.exists() else []

    def until_started(self, hostname: str, times: int = 1) -> int:
        """Wait until the task's program has been started so often; the newest process id."""
        return until(lambda: self.started(hostname)[times - 1 :], f"start {times} of {hostname}")[0]

    def supervisor(self) -> Supervisor:
        """The cluster's supervisord."""
        return Supervisor(self.places)

    def pid(self, program: str) -> int:
        """The process id of the keeper, of a launcher, or of `supervisord` itself."""
        if program == "supervisord":
            return int((self.places.runtime / "supervisord.pid").read_text())
        return int(self.supervisor().programs()[program]["pid"])

    def clear(self, token: str = TOKEN) -> str:
        """Clear it away; what that says."""
        return BACKEND.clear(self.cluster, token, {"volumes": False, "record": True})

    def kept(self, said: str) -> Path:
        """The folder that `clear` has named."""
        return Path(said.rpartition(" ")[2])

    def idle(self) -> bool:
        """Whether every launcher has ended as one does that has nothing more to do."""
        programs = self.supervisor().programs()
        return all(programs[task.hostname]["statename"] == "EXITED" for task in self.plan.tasks)

    def kill(self, program: str) -> None:
        """Kill the keeper, a launcher or `supervisord` as nothing can be caught, and wait until it has gone."""
        pid = self.pid(program)
        os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(pid), f"{program} has gone")


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """State and cache of the test's own, so that nothing of the user's is touched."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[Callable[[str], Standing]]:
    """Makes clusters by name, and clears them all at the end."""
    made: list[Standing] = []

    def make(name: str) -> Standing:
        made.append(Standing(tmp_path, name))
        return made[-1]

    yield make
    for standing in made:
        BACKEND.clear(standing.cluster, TOKEN, {"volumes": False, "record": True})


@pytest.fixture
def cluster(clusters: Callable[[str], Standing]) -> Standing:
    """One cluster, not yet declared."""
    return clusters("test")
