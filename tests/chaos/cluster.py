"""A cluster under test, driven by Pulumi as a user drives it: commands that end in time, and what they leave."""

import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import Any

from tests.chaos import training
from tests.chaos.clocks import AWAY_SECONDS, ShiftedClocks
from tests.chaos.invariants import Observation, RunAccount
from tests.chaos.oracle import Touch
from tests.chaos.recorded import accounts
from tests.chaos.schedule import WORKERS, Step
from tests.integration.conftest import Project
from tests.verbs import COMMAND
from tfdeploy.agent.record.record import Record

JOB = (
    'command=["python", "train.py"], code="code", wait="0", stop_grace_period="5s", '
    'restart={"on": ["any"], "maximum": 100, "backoff": "1s"}'
)
ENV = 'env={{"COUNTER": __import__("os").environ["COUNTER"], "PACE": "{pace}"}}'
COMMANDS = {
    "up": ("up", "--yes", "--skip-preview"),
    "refresh": ("up", "--yes", "--skip-preview", "--refresh"),
    "destroy": ("destroy", "--yes", "--skip-preview"),
    "cancel": ("cancel", "--yes"),
}


@dataclass
class Running:
    """A command that runs."""

    name: str
    process: "Popen[str]"
    output: "Future[str]"
    killed: bool = False


@dataclass
class Story:
    """What is written down during a round, besides the ledger."""

    outputs: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    stored: list[tuple[str, str, int]] = field(default_factory=list)
    neighbour: list[str] = field(default_factory=list)
    heals: list[Callable[[], None]] = field(default_factory=list)
    """What ends the faults that do not end by themselves."""
    until: float = 0.0
    """When the last fault that ends by itself has ended, by the clock of the samples."""
    touches: list[Touch] = field(default_factory=list)
    destroy_failed: bool = False
    """Whether a `destroy` was killed or failed."""
    machines_failed: bool = False
    """Whether a fault has ended all containers of a machine, also those of the cluster beside this one."""


class Cluster:
    """One cluster of one round. What differs between backends is in subclasses."""

    HEAL = "refresh"
    """The command that creates what is missing, as the documentation names it."""

    COMMAND_SECONDS = 120.0
    """A command that takes longer hangs."""

    END_SECONDS = 90.0
    """Without faults, the run must end within this time."""

    SETTLE_SECONDS = 10.0
    """So long after the end of a fault that touches programs it may still end some."""

    PACE = 0.08
    """Seconds of a step of the training."""

    COPIES = ""
    """The subfolder of the state folder with the copies of records."""

    POLL_SECONDS = 0.1
    """Between two questions whether the run has ended."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.story = Story()
        self.tasks = f'ps=1, workers={WORKERS}, success="all-workers"'
        self.more = ""
        """Arguments of the backend's."""
        self.clocks: ShiftedClocks | None = None
        """Those of the controller and of the launchers, where they can be shifted."""
        self._threads = ThreadPoolExecutor(8)

    # What a subclass knows.

    def write(self, clock_steps: bool) -> None:
        """Write the Pulumi program and its training."""
        arguments = ", ".join(filter(None, (JOB, ENV.format(pace=self.PACE), self.tasks, self.more)))
        self.project.write(arguments, training.PROGRAM)

    def records(self) -> list[Path]:
        """The records of this cluster's earlier lives, then the present one's; on most backends the user's copies."""
        state = self.project.folder / "state/tfdeploy"
        retained = sorted(state.glob("retained/*/*"), key=lambda path: path.name)
        return [path / "record" for path in retained] + sorted(state.glob(f"{self.COPIES}/*/record"))

    def left(self) -> list[str]:
        """What is left of the cluster on its backend."""
        raise NotImplementedError

    def storage_exists(self, train_dir: str) -> bool:
        """Whether the folder of checkpoints that programs were given is still there."""
        return Path(train_dir).exists()

    def close(self) -> None:
        """Take away whatever is left, without Pulumi."""
        with variables({"XDG_STATE_HOME": self.project.env["XDG_STATE_HOME"]}):
            self.project.clean()
        self._threads.shutdown(wait=False)

    def pass_time(self) -> None:
        """Half an hour passes for launchers, where their clocks can be shifted."""
        if self.clocks:
            self.clocks.pass_time(AWAY_SECONDS)

    # Commands.

    def start(self, name: str) -> Running:
        """Start a command of `COMMANDS`, or of `tfdeploy`."""
        if name == "destroy":
            self.story.touches.append(Touch(time.monotonic()))
        if name in COMMANDS:
            process = self.project.start(*COMMANDS[name], "--stack", self.project.stack)
        else:
            # What is lost is restored in all clusters of a stack.
            cluster = [] if "--lost" in name else ["--cluster", "test"]
            process = self.project.begin(COMMAND, *name.split(), *cluster, "--stack", self.project.stack)
        return Running(name, process, self._threads.submit(self._output, name, process))

    def _output(self, name: str, process: "Popen[str]") -> str:
        """What a command has printed, at its end. What became of the checkpoints is noted before another command creates new ones."""
        output = process.communicate()[0]
        if name == "destroy":
            self._note_storage()
        return output

    def finish(self, running: Running, must: bool = False) -> str:
        """Wait for a command; note how it ended."""
        number = len(self.story.outputs) + 1
        try:
            output = running.output.result(self.COMMAND_SECONDS)
        except (TimeoutError, TimeoutExpired):
            self.kill(running)
            output = running.output.result(30)
            self.story.failed[f"{number} {running.name}"] = (
                f"it did not end within {self.COMMAND_SECONDS:.0f} s: {output}"
            )
        if must and running.process.returncode != 0:
            self.story.failed.setdefault(f"{number} {running.name}", output)
        self.story.outputs[f"{number} {running.name}"] = output
        if running.name == "destroy":
            self._note_storage()  # the plugins of one that was killed may have deleted more
            has_failed = running.process.returncode != 0
            self.story.destroy_failed |= has_failed
            # What a `destroy` has left undone, any later `up` may repair.
            self.story.touches[-1].end = inf if has_failed else time.monotonic() + self.SETTLE_SECONDS
        return output

    def command(self, name: str, must: bool = False) -> str:
        """Call a command and wait for its end; what it printed."""
        return self.finish(self.start(name), must)

    def kill(self, running: Running) -> None:
        """Kill a command and the plugins that would outlive it."""
        running.killed = True
        self.project.kill(running.process)

    @contextmanager
    def touch(self, task: str) -> Iterator[None]:
        """In this context a fault touches a task's programs, or all where it names none."""
        touch = Touch(time.monotonic(), task or "*")
        self.story.touches.append(touch)
        try:
            yield
        finally:
            touch.end = max(time.monotonic(), self.story.until) + self.SETTLE_SECONDS

    def _note_storage(self) -> None:
        folders = {note.train_dir for note in self.ledger().notes if note.kind == "start"}
        if folders and not any(map(self.storage_exists, folders)):
            self.note("storage_lost")

    # The ledger.

    @property
    def folder(self) -> Path:
        """Where the ledger is."""
        return self.project.folder / "counter"

    def ledger(self) -> training.Ledger:
        """The ledger as it is now."""
        return training.read(self.folder)

    def note(self, kind: str, task: str = "*") -> None:
        """Append to it."""
        training.write(self.folder, kind, task)

    def until_done(self, part: float, seconds: float) -> bool:
        """Wait until this part of the training is done, or nothing has changed for so many seconds."""
        seen, deadline = -1.0, time.monotonic() + seconds
        while (done := self.ledger().done) < part:
            if done != seen:
                seen, deadline = done, time.monotonic() + seconds
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    # The end of a round.

    def state(self) -> str:
        """The result of the current run, from its record; empty while it is open, or where it cannot be read."""
        for folder in self.records()[-1:]:
            with suppress(OSError, ValueError, LookupError, TypeError):
                run = Record(folder).current()
                return run.result.state if run and run.result else ""
        return ""

    def heal(self) -> None:
        """End all faults, and let Pulumi restore what is lost."""
        for heal in reversed(self.story.heals):
            heal()
        self.story.heals.clear()
        if any(self.project.folder.glob("backend/.pulumi/locks/**/*.json")):
            self.command("cancel", must=True)
        self.command(self.HEAL, must=True)

    def observe(self) -> Observation:
        """Wait for the end of the run, destroy the cluster, and gather what is left."""
        begun = time.monotonic()
        while not self.state() and time.monotonic() < begun + self.END_SECONDS:
            time.sleep(self.POLL_SECONDS)
        seconds = time.monotonic() - begun
        shown = self.shown()
        self.command("destroy", must=True)
        runs: list[RunAccount] = [account for folder in self.records() for account in accounts(folder)]
        return Observation(
            self.ledger(),
            runs,
            seconds,
            shown.get("state", ""),
            shown.get("reason", ""),
            self.story.stored,
            self.story.outputs,
            self.story.failed,
            self.left(),
            self.story.destroy_failed,
            self.story.neighbour,
            touches=self.story.touches,
        )

    def shown(self, must: bool = True) -> dict[str, Any]:
        """What `tfdeploy status` prints of the cluster."""
        output = self.command("show --json", must)
        with suppress(ValueError, IndexError):
            found: dict[str, Any] = json.loads(output)[0]
            return found
        return {}


@contextmanager
def variables(values: dict[str, str]) -> Iterator[None]:
    """Environment variables of this process, for as long as the context lasts."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


Apply = Callable[[Any, Step, Running | None], str]
"""What a fault does to a cluster, during a command or alone: what was done, or "" where it could not be."""
