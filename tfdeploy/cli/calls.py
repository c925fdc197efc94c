"""The stack of one `tfdeploy run`: a project, a state backend and a passphrase of its own, in the user's state folder.

The engine works in a process and a session of its own, so that the terminal's Ctrl-C is for `run` alone to act upon.
"""

import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from .. import registry
from ..backends.base import Cluster
from ..backends.folders import make_private, state_folder
from ..errors import BackendError, CommandError, NotFound, SpecError
from ..registry import Entry
from .commanding import CLUSTER

PROJECT = "tfdeploy-run"
_ORGANIZATION = "organization"
"""What Pulumi calls that of all stacks which are kept in files."""

REFUSED = 3
"""What the engine's process exits with when the cluster was refused; the file `refusal` says why."""


@dataclass(frozen=True)
class Call:
    """One call of `run`."""

    stack: str
    args: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    """What of the stack's configuration stands for arguments."""
    keep: bool = False
    """Whether its cluster is to stay when the job is over."""

    @property
    def path(self) -> Path:
        """Where it is written down while its stack stands."""
        return home() / "calls" / f"{self.stack}.json"

    @property
    def log(self) -> Path:
        """What the engine printed."""
        return self.path.with_suffix(".log")

    @property
    def refusal(self) -> Path:
        """Why the cluster was refused."""
        return self.path.with_suffix(".refusal")

    @property
    def lock(self) -> Path:
        """Held by the engine at work on it."""
        return self.path.with_suffix(".lock")

    @property
    def entry(self) -> Entry:
        """Its cluster.

        Raises:
            NotFound: it has none.
        """
        about: Cluster = {"backend": "", "project": PROJECT, "stack": self.stack, "name": CLUSTER, "home": ""}
        try:
            return registry.read(registry.path_of(about))
        except (OSError, ValueError, KeyError, TypeError):
            raise NotFound(f"{PROJECT}/{self.stack} has no cluster.") from None

    @property
    def abandoned(self) -> bool:
        """Whether nobody is at work on it who would take its cluster away, and nobody has asked for it to stay."""
        return not (self.keep or _held(self.path) or _held(self.lock))

    def begin(self) -> IO[str]:
        """Write it down; what says, while it is open, that it is in the foreground.

        Raises:
            SpecError: one of that name stands.
        """
        for folder in (state_folder(), home(), home() / "backend", self.path.parent):
            make_private(folder)
        project = home() / "Pulumi.yaml"
        if not project.exists():
            _write(project, f"name: {PROJECT}\nruntime: python\n")
        if not _passphrase().exists():
            _write(_passphrase(), secrets.token_hex(32))
        try:
            file = self.path.open("x")
        except FileExistsError:
            remedy = f"Choose another, or take that one away: tfdeploy run --remove {self.stack}."
            raise SpecError("--name", f"{self.stack!r} stands", remedy) from None
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump(asdict(self), file)
        file.flush()
        return file

    def forget(self) -> None:
        """It is over, and nothing of it stands; also where it ended before Pulumi had a resource that would tell."""
        with suppress(NotFound):
            if not self.entry.ended:
                registry.end(self.entry.cluster)
        kept = home() / "backend" / ".pulumi"
        for folder in (kept / "history", kept / "backups", kept / "locks" / _ORGANIZATION):
            shutil.rmtree(folder / PROJECT / self.stack, ignore_errors=True)
        states = (kept / "stacks" / PROJECT).glob(f"{self.stack}.json*")
        for path in (*states, self.log, self.refusal, self.lock, self.path):
            path.unlink(missing_ok=True)


def home() -> Path:
    """The folder of all such stacks; to Pulumi it is a program's."""
    return state_folder() / "run"


def known(stack: str) -> Call:
    """The call whose stack still stands.

    Raises:
        NotFound: there is none of that name.
        BackendError: it was cut short while it was written down.
    """
    try:
        return Call(**json.loads(Call(stack).path.read_text()))
    except OSError:
        names = ", ".join(sorted(path.stem for path in (home() / "calls").glob("*.json"))) or "none"
        raise NotFound(f"no run {stack!r} stands; there is: {names}.") from None
    except (ValueError, TypeError):
        path = Call(stack).path
        raise BackendError(
            f"{path} is torn: that run was cut short before it made anything. Remove that file."
        ) from None


def environment() -> dict[str, str]:
    """What keeps the engine to its own state, whatever the user's says."""
    return {
        "PULUMI_BACKEND_URL": f"file://{home() / 'backend'}",
        "PULUMI_CONFIG_PASSPHRASE": _passphrase().read_text(),
        "PULUMI_CONFIG_PASSPHRASE_FILE": "",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
    }


class Engine:
    """Pulumi at work on one call's stack."""

    def __init__(self, call: Call, shown: bool) -> None:
        self._call = call
        self._shown = shown
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, action: str) -> None:
        """Begin `up` or `destroy`."""
        command = [sys.executable, "-m", "tfdeploy.cli.run_engine", action, self._call.stack]
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        with self._call.log.open("ab") as log:
            out = sys.stderr if self._shown else log
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **environment(), "PATH": path},
                cwd=home(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def ended(self, seconds: float) -> bool:
        """Whether it has ended, or does within so many seconds."""
        with suppress(subprocess.TimeoutExpired):
            if self._process is not None:
                self._process.wait(seconds)
            return True
        return False

    def interrupt(self) -> None:
        """Have it end as soon as nothing is left half done."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)

    def demand(self, what: str) -> None:
        """Make sure that it has done it.

        Raises:
            SpecError: the cluster was refused; nothing was made.
            CommandError: it failed.
        """
        code = self._process.returncode if self._process else 0
        if code == REFUSED:
            raise Refused(self._call.refusal.read_text())
        if code:
            lines = self._call.log.read_text(errors="replace").splitlines()
            raise CommandError(what, code, [line for line in lines if line.strip()])


class Refused(SpecError):
    """A cluster that the component has refused, in its words."""

    def __init__(self, text: str) -> None:
        ValueError.__init__(self, text)


def _held(path: Path) -> bool:
    """Whether a process that lives has locked this file."""
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def _passphrase() -> Path:
    return home() / "passphrase"


def _write(path: Path, text: str) -> None:
    """Write a file that only the user can read, unless another call was first."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.touch(0o600)
    draft.write_text(text)
    with suppress(FileExistsError):
        path.hardlink_to(draft)
    draft.unlink()
