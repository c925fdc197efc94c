"""A real cluster of processes, stood by the local backend's own hands, without Pulumi in between."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

import psutil
import pytest

from tests.clusters import cluster_ref
from tests.components.processes import alive
from tests.waiting import until
from tfdeploy.agent.model.events import Event
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.agent.record.output_lines import STDERR, STDOUT
from tfdeploy.agent.record.record import Record, ViewRequest
from tfdeploy.backends.base import ClusterRef, RunProps, TaskProps
from tfdeploy.backends.local.backend import BACKEND
from tfdeploy.backends.local.paths import CLUSTERS, Places
from tfdeploy.backends.local.supervisor import MARK, Supervisor
from tfdeploy.backends.zipapp import version
from tfdeploy.paths import cluster_folder, state_folder
from tfdeploy.plan.code_bundle import collect
from tfdeploy.plan.plan import Plan, make_plan
from tfdeploy.report.expected_state import expected_state
from tfdeploy.report.report import Report, report
from tfdeploy.spec.cluster import ClusterSpec, cluster_spec

TOKEN = "a-token-of-the-tests"

STEPS = """
import os, pathlib, sys, time

here = pathlib.Path({folder!r})
hostname = os.environ["TFDEPLOY_HOSTNAME"]
noted = here / ("starts-" + hostname)
number = 1 + (len(noted.read_text().splitlines()) if noted.exists() else 0)


def begin():
    with noted.open("a") as starts:
        starts.write(str(os.getpid()) + "\\n")
    return number


def wait_for(*gates):
    while not any((here / gate).exists() for gate in gates):
        time.sleep(0.02)
"""
"""Module `steps` of every test program: the `number` of its start, `begin` when it is ready, `wait_for` until the test opens a gate."""

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
        cluster = cluster_ref("local", project="tests", stack=folder.name, name=name, cluster_id=token_hex(5))
        self.cluster: ClusterRef = {**cluster, "home": str(state_folder() / CLUSTERS / cluster_folder(cluster))}
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
        self.spec = cluster_spec(self.cluster["name"], {"stop_grace_period": "5s", **args})
        bundle = collect("test", Path(self.spec.code)) if self.spec.code else None
        inventory = BACKEND.planner.inspect(self.cluster, self.spec, self.folder)
        self.plan = make_plan(self.spec, inventory, bundle.name if bundle else "")

    def validate(self) -> None:
        """Refuse what the planner refuses in a preview."""
        inventory = BACKEND.planner.inspect(self.cluster, self.spec, self.folder)
        BACKEND.planner.validate(self.cluster, self.spec, self.plan, inventory, ("program.py", "steps.py"))

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
            "limits": task.limits.to_dict(),
            "gpus": list(task.gpus),
            "port": task.port,
            "grace": self.spec.stop_grace_period,
            "agent": version(),
            "run": self.plan.run.id,
            "container": {},
            "dependencies": {},
        }

    def run_props(self, secrets: dict[str, str] | None = None) -> RunProps:
        """The properties of the run, as the component gives them."""
        return {
            "cluster": self.cluster,
            "token": TOKEN,
            "run": self.plan.run.to_dict(),
            "code_folder": self.spec.code,
            "code_without": [],
            "secrets": secrets or {},
            "container": {},
            "dependencies": {},
        }

    def stand(self, without: tuple[str, ...] = (), secrets: dict[str, str] | None = None) -> None:
        """Make tasks and run stand, in the order in which Pulumi does."""
        self.stand_tasks(without)
        BACKEND.runner.submit_run(self.run_props(secrets))

    def stand_tasks(self, without: tuple[str, ...] = ()) -> None:
        """Make the tasks stand, and nothing more."""
        for task in self.plan.tasks:
            if task.hostname not in without:
                BACKEND.runner.create_task(self.task_props(task.hostname))

    def up(self, script: str = "", **args: Any) -> None:
        """Declare and stand."""
        self.declare(script, **args)
        self.stand()

    def run(self, script: str = "", **args: Any) -> None:
        """Declare and stand, and wait until all tasks run."""
        self.up(script, **args)
        self.until_running(*(task.hostname for task in self.plan.tasks))

    def finish(self) -> Report:
        """Open the gate for all programs, and wait for the success of the run."""
        self.open()
        return self.until_state("succeeded")

    def limit(self, *hostnames: str, script: str = WAITS, **args: Any) -> None:
        """Declare anew, and give these tasks their new limits in this order; then the run."""
        olds = {hostname: self.task_props(hostname) for hostname in hostnames}
        self.declare(script, **args)
        for hostname in hostnames:
            BACKEND.runner.update_task(olds[hostname], self.task_props(hostname))
        BACKEND.runner.submit_run(self.run_props())

    def train(self, script: str, arguments: tuple[str, ...] = ("first",), **args: Any) -> None:
        """Declare and stand a program that is given arguments of its own."""
        self.up(script, **{"command": [sys.executable, "program.py", *arguments], **args})

    def look(self) -> Report:
        """One look."""
        request = ViewRequest(self.spec.log_lines)
        return report(expected_state(self.plan, self.spec), BACKEND.runner.observe(self.cluster, TOKEN, request))

    def status(self, hostname: str) -> str:
        """The status of one task, in the report's words."""
        return str(next(row["status"] for row in self.look().tasks if row["hostname"] == hostname))

    def last_report(self, hostname: str) -> float:
        """When the controller heard last of a task's launcher, as a look has it."""
        sight = BACKEND.runner.observe(self.cluster, TOKEN, ViewRequest())
        run = sight.view.run_state
        assert run is not None
        return run.tasks[hostname].seen

    def until_status(self, hostname: str, status: str) -> None:
        """Wait until a task's status begins with `status`."""
        try:
            until(lambda: self.status(hostname).startswith(status), f"{hostname} {status}")
        except AssertionError as error:
            raise AssertionError(
                f"{error}; it is {self.status(hostname)!r}\n{self.look().status}\n{self.events()}"
            ) from None

    def until_running(self, *hostnames: str, times: int = 1) -> None:
        """Wait until the programs of these tasks have begun so often, and the controller knows it."""
        for hostname in hostnames:
            self.until_started(hostname, times)
            self.until_status(hostname, "running")

    def until_state(self, state: str) -> Report:
        """Wait until the job is in a state and nothing runs any more."""

        def there() -> Report | None:
            seen = self.look()
            settled = not any(row["status"] in ("running", "starting") for row in seen.tasks)
            return seen if seen.state == state and settled else None

        try:
            return until(there, f"job {state}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.look().status}\n{self.events()}") from None

    def job(self) -> RunState:
        """The job as the controller remembers it: it must have been given."""
        return self.recorded_in(self.places.record)

    def recorded_in(self, folder: Path) -> RunState:
        """The present job of a record, wherever that lies."""
        job = Record(folder).current()
        assert job is not None
        return job

    def recorded(self, hostname: str) -> str:
        """A task's state as it stands on disk, without a word from the controller."""
        return self.job().tasks[hostname].state

    def events(self) -> list[Event]:
        """The events of the current run."""
        record, job = Record(self.places.record), Record(self.places.record).current()
        return record.events(job.spec.id) if job else []

    def happened(self) -> list[tuple[str, str]]:
        """Kind and task of each event."""
        return [(event.kind, event.task) for event in self.events()]

    def output(self, hostname: str, name: str = "stdout") -> bytes:
        """All bytes that a task of the present run printed on one pipe, from the record."""
        pipe = {"stdout": STDOUT, "stderr": STDERR}[name]
        return Record(self.places.record).log(self.job().spec.id, hostname).printed(pipe)

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
        """The process id of the controller, of a launcher, or of `supervisord` itself."""
        if program == "supervisord":
            return int(self.places.supervisor_pid.read_text())
        return int(self.supervisor().programs()[program]["pid"])

    def clear(self) -> str:
        """Clear it away; what that says."""
        return BACKEND.runner.delete_all(self.cluster, TOKEN, {"volumes": False, "record": True})

    def kept(self, said: str) -> Path:
        """The folder that `clear` has named."""
        return Path(said.rpartition(" ")[2])

    def idle(self) -> bool:
        """Whether every launcher has ended as one does that has nothing more to do."""
        programs = self.supervisor().programs()
        return all(programs[task.hostname]["statename"] == "EXITED" for task in self.plan.tasks)

    def kill(self, program: str) -> None:
        """Kill the controller, a launcher or `supervisord` as nothing can be caught, and wait until it has gone."""
        pid = self.signal(program, signal.SIGKILL)
        until(lambda: not alive(pid), f"{program} has gone")

    def signal(self, program: str, number: int) -> int:
        """Send a signal to the controller, a launcher or `supervisord` as soon as it runs; its process id."""
        process = until(lambda: self._process(program), f"{program} runs")
        process.send_signal(number)
        return process.pid

    def _process(self, program: str) -> psutil.Process | None:
        """A process of this cluster: supervisord has 0 of a program that it starts again, and a number may be another's by now."""
        with suppress(psutil.Error, OSError):
            process = psutil.Process(self.pid(program))
            environment = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
            return process if f"{MARK}={self.places.home}".encode() in environment else None
        return None


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
        standing.clear()


@pytest.fixture
def cluster(clusters: Callable[[str], Standing]) -> Standing:
    """One cluster, not yet declared."""
    return clusters("test")
