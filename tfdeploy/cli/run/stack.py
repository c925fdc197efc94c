"""The stacks of `tfdeploy run`: one Pulumi project with its own file backend and passphrase, in the user's state folder.

Pulumi runs in a session of its own, so that only `tfdeploy run` receives the terminal's Ctrl-C, and a removal continues without it.
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

from ... import registry
from ...errors import BackendError, CommandError, NotFound, SpecError
from ...paths import make_private, state_folder
from ...registry import Entry
from ...spec.backends import is_this_computer
from ..pulumi import start_pulumi
from .cluster_arguments import CLUSTER

PROJECT = "tfdeploy-run"
_LOCKS = "locks/organization"
"""The folder of the locks in a file backend; `organization` is Pulumi's name for that of all its stacks."""

_PROGRAM = "from tfdeploy.cli.run.pulumi_program import declare_cluster\n\ndeclare_cluster()\n"

CALL = "call.json"
"""The call itself, locked by the process in the foreground."""

LOG, WARNINGS, LOCK = "log", "warnings", "lock"
"""The output of Pulumi; the warnings of the component, one a line; a file that is locked while Pulumi runs."""

REFUSAL = "refusal.json"
"""The error of the component, if it refused: the three parts of a `SpecError`, or a message."""


@dataclass(frozen=True)
class Call:
    """One `tfdeploy run`."""

    stack: str
    args: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    """Arguments that are set by the stack's configuration."""
    keep: bool = False
    """Whether the cluster remains after the end of the run."""

    @property
    def folder(self) -> Path:
        """The folder with what is stored of this call, until its stack is removed."""
        return home() / "calls" / self.stack

    def file(self, name: str) -> Path:
        """A file there: `CALL`, `LOG`, `REFUSAL`, `WARNINGS` or `LOCK`."""
        return self.folder / name

    @property
    def entry(self) -> Entry:
        """The registry's entry of its cluster.

        Raises:
            NotFound: there is none.
        """
        entry = registry.find(PROJECT, self.stack, CLUSTER)
        if entry is None:
            raise NotFound(f"{PROJECT}/{self.stack} has no cluster.")
        return entry

    @property
    def abandoned(self) -> bool:
        """Whether no process will remove its cluster, though it should not remain."""
        return not (self.keep or _is_locked(self.file(CALL)) or _is_locked(self.file(LOCK)))

    def begin(self) -> IO[str]:
        """Store the call. The open file is locked: this shows that the call is in the foreground.

        Raises:
            SpecError: there is a call with this name.
        """
        for folder in (state_folder(), home(), home() / "backend", self.folder.parent):
            make_private(folder)
        _write_new(home() / "Pulumi.yaml", f"name: {PROJECT}\nruntime: python\n")
        _write_new(home() / "__main__.py", _PROGRAM)
        _write_new(_passphrase(), secrets.token_hex(32))
        try:
            self.folder.mkdir(0o700)
        except FileExistsError:
            remedy = f"Choose another name, or remove that run: tfdeploy run --remove {self.stack}."
            raise SpecError("--name", f"{self.stack!r} already exists", remedy) from None
        file = _open_locked(self.file(CALL), "x")
        json.dump(asdict(self), file)
        file.flush()
        return file

    def forget(self) -> None:
        """Remove what is stored of a call, after its cluster was removed.

        `pulumi stack rm` keeps the history and backups of a stack, and an update that was killed keeps its lock. All such stacks share
        one backend, so their files are removed one by one. The layout is that of Pulumi's file backend:
        https://github.com/pulumi/pulumi/blob/master/pkg/backend/diy/backend.go.
        """
        with suppress(NotFound):
            if not self.entry.ended:
                registry.mark_destroyed(self.entry.cluster)
        for folder in ("history", "backups", _LOCKS):
            shutil.rmtree(_stored(folder, PROJECT, self.stack), ignore_errors=True)
        for path in _stored("stacks", PROJECT).glob(f"{self.stack}.json*"):
            path.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def home() -> Path:
    """The folder of all such stacks, which is also the folder of their Pulumi project."""
    return state_folder() / "run"


def stored_call(stack: str) -> Call:
    """The stored call with this name.

    Raises:
        NotFound: there is none.
        BackendError: its file is incomplete.
    """
    file = Call(stack).file(CALL)
    try:
        return Call(**json.loads(file.read_text(encoding="utf-8")))
    except OSError:
        names = ", ".join(sorted(path.name for path in (home() / "calls").glob("*"))) or "none"
        raise NotFound(f"there is no run {stack!r}. The runs are: {names}.") from None
    except (ValueError, TypeError):
        raise BackendError(
            f"{file} is incomplete: that run was interrupted before it created anything. Delete its folder."
        ) from None


class PulumiEngine:
    """The command `pulumi` on the stack of one call."""

    def __init__(self, call: Call, verbose: bool) -> None:
        self._call = call
        self._verbose = verbose
        self._process: subprocess.Popen[Any] | None = None

    def up(self) -> None:
        """Create the stack, and start `pulumi up`."""
        settings = [f"--config=tfdeploy:{name}={value}" for name, value in self._call.config.items()]
        with _open_locked(self._call.file(LOCK), "w") as lock:
            self._start(lock, "stack", "init", "--no-select")
            if self.wait() and not self._code:
                self._start(lock, "up", "--yes", "--skip-preview", "--config-path", *settings)

    def destroy(self) -> None:
        """Start `pulumi destroy` once an abandoned update of the stack has ended. A killed one has left Pulumi's own lock."""
        self._process = None
        self._call.file(REFUSAL).unlink(missing_ok=True)
        with _open_locked(self._call.file(LOCK), "w") as lock:
            shutil.rmtree(_stored(_LOCKS, PROJECT, self._call.stack), ignore_errors=True)
            if _stored("stacks", PROJECT, f"{self._call.stack}.json").exists():
                self._start(lock, "destroy", "--yes", "--skip-preview", "--remove")

    def _start(self, lock: IO[str], *arguments: str) -> None:
        """Start `pulumi` with our backend and passphrase, not the user's. It has the lock as long as it runs."""
        env = {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
            "PULUMI_BACKEND_URL": f"file://{home() / 'backend'}",
            "PULUMI_CONFIG_PASSPHRASE": _passphrase().read_text(),
            "PULUMI_CONFIG_PASSPHRASE_FILE": "",
            "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
        }
        if is_this_computer(self._call.args.get("backend", "")):
            # No plugin is used. Pulumi would install those of all packages of Python that have one, such as that of AWS.
            env["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] = "true"
        with self._call.file(LOG).open("wb") as log:
            out = sys.stderr if self._verbose else log
            self._process = start_pulumi(
                home(),
                [*arguments, "--stack", self._call.stack],
                env,
                stdout=out,
                stderr=out,
                start_new_session=True,
                pass_fds=[lock.fileno()],
            )

    @property
    def _code(self) -> int:
        """The exit code of the ended process; 0 if there was nothing to do."""
        return self._process.returncode if self._process else 0

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end of the process; False if it still runs after `seconds`."""
        try:
            if self._process is not None:
                self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def interrupt(self) -> None:
        """Let Pulumi finish its current operations, and start no others."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def check(self, what: str) -> None:
        """Raise the error of the ended process, if it failed.

        Raises:
            SpecError: the component refused its arguments; nothing was created.
            BackendError: the component refused for another reason; likewise.
            CommandError: Pulumi failed.
        """
        if not self._code:
            return
        if self._call.file(REFUSAL).exists():
            refusal: list[str] = json.loads(self._call.file(REFUSAL).read_text())
            raise SpecError(*refusal) if len(refusal) > 1 else BackendError(*refusal)
        lines = self._call.file(LOG).read_text(encoding="utf-8", errors="replace").splitlines()
        raise CommandError(what, self._code, [line for line in lines if line.strip()])


def _stored(*names: str) -> Path:
    """A path in the file backend."""
    return Path(home(), "backend", ".pulumi", *names)


def _open_locked(path: Path, mode: str) -> IO[str]:
    """A new or emptied file, once no other process has its lock; who inherits the open file keeps it."""
    file = path.open(mode)
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def _is_locked(path: Path) -> bool:
    """Whether a running process has locked this file."""
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


def _write_new(path: Path, text: str) -> None:
    """Write a file that only the user can read, unless another process has just written it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.touch(0o600)
    draft.write_text(text)
    with suppress(FileExistsError):
        path.hardlink_to(draft)
    draft.unlink()
