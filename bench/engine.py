"""Pulumi projects in the benchmark's own folder, with their own state, caches and stacks."""

import itertools
import json
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from tests.pulumi_home import pulumi_home
from tfdeploy.backends.local.supervisor import marked

from .ending import undisturbed
from .processes import Process, until

ROOT = Path(__file__).parent
CLUSTER = ROOT / "cluster"
FLEET = ROOT / "baselines" / "fleet"
TASKS = ROOT / "tasks"

UP = ("up", "--yes", "--skip-preview", "--suppress-outputs")

STACK = f"bench-{secrets.token_hex(3)}"
"""A name of this run's own: an engine may be shared with others."""

_FORKS = "PULUMI_PYTHON_CMD"
"""It names what the tests save time with. A user's programs are new processes."""

_SECONDS = 900.0
"""How long one call of the engine may take."""

_CLEAR_SECONDS = 600.0
_INTERRUPT_SECONDS = 60.0
_KILL_SECONDS = 30.0


class Workplace:
    """A temporary folder, and the environment that keeps Pulumi and tfdeploy in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        stacks = folder / "stacks"
        for made in (self.state, stacks):
            made.mkdir()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PULUMI_", "TFDEPLOY_"))}
        self.environment = {
            **inherited,
            "XDG_STATE_HOME": str(self.state),
            "XDG_CACHE_HOME": str(folder / "cache"),
            **{name: value for name, value in pulumi_home(folder).items() if name != _FORKS},
            "PULUMI_BACKEND_URL": f"file://{stacks}",
            "PULUMI_CONFIG_PASSPHRASE": secrets.token_hex(16),
            "PULUMI_SKIP_UPDATE_CHECK": "1",
        }


class Project:
    """One program with one stack."""

    def __init__(self, workplace: Workplace, program: Path, name: str) -> None:
        self._workplace = workplace
        self._calls: list[Process] = []
        self._numbers = itertools.count()
        self._begun = False
        self._home: Path | None = None
        self.folder = workplace.folder / name
        shutil.copytree(program, self.folder, ignore=shutil.ignore_patterns("__pycache__"))
        self.code = self.folder / "code"
        self.code.mkdir()

    def begin(self, config: Mapping[str, Any]) -> None:
        """Make the stack, with its configuration."""
        self.pulumi("stack", "init", STACK)
        self._begun = True
        self.configure(config)

    @property
    def home(self) -> Path:
        """The folder of the latest cluster of `bench/cluster`, also after it was removed. A call that runs may create it: then it is
        waited for."""
        return until(lambda: self._latest_home(any(not call.over for call in self._calls)), "the folder of the cluster")

    def _latest_home(self, may_come: bool) -> Path | None:
        clusters = self._workplace.state / "tfdeploy" / "clusters"
        homes = sorted(clusters.glob("bench-*"), key=lambda path: path.stat().st_mtime)
        self._home = homes[-1] if homes else self._home
        return self._home or (None if may_come else clusters / "none")

    @property
    def environment(self) -> Mapping[str, str]:
        """What leads a program to this project's stacks and state."""
        return self._workplace.environment

    def ship(self, name: str) -> None:
        """Copy one program of `bench/tasks` into the code folder."""
        shutil.copy(TASKS / name, self.code)

    def configure(self, config: Mapping[str, Any]) -> None:
        """Set the stack's configuration."""
        texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
        self.pulumi("config", "set-all", *(f"--plaintext={key}={text}" for key, text in texts.items()))

    def start(self, *words: str) -> Process:
        """Begin one call of the engine, in its own session, as in a terminal."""
        self._calls = [call for call in self._calls if not call.over]
        output_file = self.folder / f"output-{next(self._numbers)}"
        command = ["pulumi", *words, "--non-interactive"]
        with undisturbed():
            call = Process(command, output_file, self.folder, self._workplace.environment, new_session=True)
            self._calls.append(call)
        return call

    def call(self, *words: str, seconds: float = _SECONDS) -> str:
        """One call of the engine, to its end; what it printed.

        Raises:
            BenchError: it failed, or took too long.
        """
        return self.start(*words).finish(seconds)

    def pulumi(self, *words: str) -> float:
        """One call of the engine, to its end; the seconds that it took."""
        begun = time.perf_counter()
        self.call(*words)
        return time.perf_counter() - begun

    def clear(self) -> None:
        """Destroy all that was made, and remove the stack. Of processes on this machine none is left, also where that fails."""
        try:
            self._destroy()
        finally:
            for call in self._calls:
                if not call.over:
                    call.kill()
            _kill(self._latest_home(False) or self.folder)

    def _destroy(self) -> None:
        killed = [call for call in self._calls if not call.over and not call.interrupt(_INTERRUPT_SECONDS)]
        if not self._begun:
            return
        if killed:
            self.call("cancel", "--yes", seconds=_CLEAR_SECONDS)
        self.call("destroy", "--yes", "--skip-preview", "--remove", seconds=_CLEAR_SECONDS)


def _kill(home: Path) -> None:
    """Kill the processes of a cluster on this machine, also those that are stopped."""
    deadline = time.monotonic() + _KILL_SECONDS
    while (left := marked(home)) and time.monotonic() < deadline:
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=1)


@contextmanager
def workplace() -> Iterator[Workplace]:
    """A workplace that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        yield Workplace(Path(folder))


@contextmanager
def project(place: Workplace, program: Path, name: str, config: Mapping[str, Any]) -> Iterator[Project]:
    """A project; afterwards it is cleared."""
    made = Project(place, program, name)
    try:
        made.begin(config)
        yield made
    finally:
        with undisturbed():
            made.clear()
