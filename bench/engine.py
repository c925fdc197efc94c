"""Pulumi projects in a folder of the benchmark's own, with state, caches and stacks of their own."""

import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
CLUSTER = ROOT / "cluster"
FLEET = ROOT / "baselines" / "fleet"
TASKS = ROOT / "tasks"

UP = ("up", "--yes", "--skip-preview")

STACK = f"bench-{secrets.token_hex(3)}"
"""A name of this run's own: an engine may be shared with others."""

_LAST_LINES = 30
_PATIENCE = 60.0


class BenchError(Exception):
    """A benchmark could not be carried through."""


class Workplace:
    """A temporary folder, and the environment that keeps Pulumi and tfdeploy in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        pulumi_home, stacks = folder / "pulumi", folder / "stacks"
        for made in (self.state, pulumi_home, stacks):
            made.mkdir()
        plugins = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi") / "plugins"
        if plugins.is_dir():
            (pulumi_home / "plugins").symlink_to(plugins)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PULUMI_", "TFDEPLOY_"))}
        self.environment = {
            **kept,
            "XDG_STATE_HOME": str(self.state),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "PULUMI_HOME": str(pulumi_home),
            "PULUMI_BACKEND_URL": f"file://{stacks}",
            "PULUMI_CONFIG_PASSPHRASE": secrets.token_hex(16),
            "PULUMI_SKIP_UPDATE_CHECK": "1",
        }


class Call:
    """One call of the engine, begun; out of the reach of Ctrl-C, so that it is ended in order."""

    def __init__(self, words: tuple[str, ...], folder: Path, environment: Mapping[str, str]) -> None:
        self._words = words
        handle, name = tempfile.mkstemp(prefix="said-", dir=folder)
        self._said = Path(name)
        with os.fdopen(handle, "w") as said:
            self.process = subprocess.Popen(
                ["pulumi", *words, "--non-interactive"],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def finish(self) -> str:
        """Wait for its end; what it printed.

        Raises:
            BenchError: it failed.
        """
        code = self.process.wait()
        said = self._said.read_text()
        if code:
            last = "\n".join(said.splitlines()[-_LAST_LINES:])
            raise BenchError(f"pulumi {' '.join(self._words)} ended with exit code {code}:\n{last}")
        return said

    def interrupt(self) -> bool:
        """End it before its time; whether it went in order, without leaving its stack locked."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False
        return True


class Project:
    """One program with one stack."""

    def __init__(self, workplace: Workplace, program: Path, name: str) -> None:
        self._workplace = workplace
        self._calls: list[Call] = []
        self.folder = workplace.folder / name
        shutil.copytree(program, self.folder, ignore=shutil.ignore_patterns("__pycache__"))
        self.code = self.folder / "code"
        self.code.mkdir()
        self.pulumi("stack", "init", STACK)

    @property
    def home(self) -> Path:
        """Where the cluster of `bench/cluster` keeps what is its own."""
        return self._workplace.state / "tfdeploy" / "clusters" / f"bench.{STACK}.bench"

    @property
    def environment(self) -> Mapping[str, str]:
        """What leads a program to this project's stacks and state."""
        return self._workplace.environment

    def ship(self, name: str) -> None:
        """Copy one program of `bench/tasks` into the code folder."""
        shutil.copy(TASKS / name, self.code)

    def configure(self, config: Mapping[str, Any]) -> None:
        """Set the stack's configuration."""
        for key, value in config.items():
            self.pulumi("config", "set", key, value if isinstance(value, str) else json.dumps(value))

    def start(self, *words: str) -> Call:
        """Begin one call of the engine."""
        self._calls = [call for call in self._calls if call.process.poll() is None]
        self._calls.append(Call(words, self.folder, self._workplace.environment))
        return self._calls[-1]

    def pulumi(self, *words: str) -> float:
        """One call of the engine; the seconds that it took.

        Raises:
            BenchError: it failed.
        """
        begun = time.perf_counter()
        self.start(*words).finish()
        return time.perf_counter() - begun

    def clear(self) -> None:
        """Destroy all that was made, and remove the stack."""
        for call in self._calls:
            if call.process.poll() is None and not call.interrupt():
                self.pulumi("cancel", "--yes")
        self.pulumi("destroy", "--yes", "--skip-preview", "--remove")


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
        made.configure(config)
        yield made
    finally:
        made.clear()
