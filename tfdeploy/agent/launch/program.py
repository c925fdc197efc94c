"""The program of a task, as its launcher sees it: which attempt runs or ran last, and how it ended."""

import json
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import List, Optional, Tuple

from ..model import sync
from ..model.run_state import Ended, LauncherReport
from ..model.settings import Limits
from ..system.files import write_whole
from ..system.polling import boot_seconds
from ..wire.log_shipper import Shipper
from . import docker_env
from .log_pump import Pump
from .process import Child, boot_id, reap_orphans
from .workdir import Command, unstored_models

_PIPE_SECONDS = 2.0


class Program:
    """The task's program. Its end is stored on disk before anything else, and is loaded by the next launcher."""

    def __init__(self, folder: Path) -> None:
        self.run_id = ""
        self.attempt = 0
        self.port = 0
        self.started = 0.0
        self.exit: Optional[Ended] = None
        self.restarted: List[Tuple[Ended, float]] = []
        """The attempts that have ended and were followed by another one without an order: the controller may not know of them. With the
        moment by `boot_seconds`; -1 where that was before the machine was started."""
        self._started_at = 0.0
        self._ended_at = 0.0
        self._folder = folder
        self._note = folder / "child.json"
        self._exit_file = folder / "exit.json"
        self._is_stored = True
        self._child: Optional[Child] = None
        self._pump: Optional[Pump] = None
        self._dropped = 0
        self._cause = ""
        self._kill_at = 0.0
        self._load()

    @property
    def is_running(self) -> bool:
        """Whether there is a process."""
        return self._child is not None

    @property
    def group(self) -> int:
        """Its process group; 0 while there is no process."""
        return self._child.process.pid if self._child else 0

    @property
    def phase(self) -> str:
        """One of the phases of `sync`."""
        return sync.EXITED if self.exit else sync.RUNNING if self.is_running else sync.IDLE

    @property
    def dropped(self) -> int:
        """The output that could not be stored, since this launcher started."""
        return self._dropped + (self._pump.dropped if self._pump else 0)

    def start(self, command: Command, limits: Limits, spool: Shipper, run_id: str, attempt: int, port: int) -> None:
        """Start it.

        Raises:
            OSError, ValueError: the program cannot be started; the end of the last attempt is still to be reported.
        """
        if self.restarted:  # the controller does not know of this attempt: the next launcher must
            self._write(run_id, attempt, None, -1.0)
        child = Child(command.arguments, command.environment, command.folder, self._note, limits)
        if self.restarted:
            self.exit, self._is_stored = None, True
        else:
            self.forget()
        self.run_id, self.attempt, self.port = run_id, attempt, port
        self.started, self._started_at = time.time(), boot_seconds()
        self._child, self._folder = child, command.folder
        stdout, stderr = child.process.stdout, child.process.stderr
        if stdout is not None and stderr is not None:
            self._pump = Pump(spool.log, stdout, stderr, attempt)

    def stop(self, cause: str, grace: float) -> None:
        """Send SIGTERM now, and SIGKILL after `grace` seconds."""
        if self._child is not None and not self._cause:
            self._cause, self._kill_at = cause, time.monotonic() + grace
            self._child.signal(signal.SIGTERM)

    def collect(self) -> None:
        """Note the program's end; send SIGKILL when it is due."""
        reap_orphans(self._child.process.pid if self._child else 0)
        if self._child is None:
            self._store()
            return
        if self._kill_at and time.monotonic() >= self._kill_at:
            self._child.signal(signal.SIGKILL)
        end = self._child.end()
        if end is None or self._pump is None:
            return
        self._ended_at = boot_seconds()
        ran, notice = self._ended_at - self._started_at, docker_env.notice()
        self.exit = replace(
            end, cause=self._cause, notice=notice, attempt=self.attempt, at=time.time(), ran_seconds=ran
        )
        self._is_stored = False
        self._store()
        self._child.finish()
        if end.code == 0 and not self._cause:
            unstored = unstored_models(self._folder, self.started)
            self.exit = replace(self.exit, killed=self._child.left, unstored=unstored)
            self._is_stored = not self._child.left and not unstored
            self._store()
        self._child.forget()
        self._pump.finish(_PIPE_SECONDS)
        self._dropped = self.dropped
        self._child = self._pump = None
        self._cause, self._kill_at = "", 0.0

    def fail(self, run_id: str, attempt: int, code: int, cause: str = "", notice: str = "") -> None:
        """It has ended without having been started."""
        self.run_id, self.attempt, self._ended_at = run_id, attempt, boot_seconds()
        self.exit = Ended(code, cause=cause, notice=notice, attempt=attempt, at=time.time())

    def forget(self) -> None:
        """The end of the last attempt has been reported, and no longer matters."""
        self.attempt, self.exit, self._is_stored, self.restarted = 0, None, True, []
        with suppress(OSError):
            self._exit_file.unlink()

    @property
    def seconds_since_end(self) -> float:
        """How long ago the last attempt has ended."""
        return boot_seconds() - self._ended_at

    def keep_end(self) -> None:
        """The end of the last attempt is followed by another attempt before it has been reported."""
        if self.exit is not None:
            self.restarted.append((self.exit, self._ended_at))

    def forget_restarts(self) -> None:
        """The controller knows of all attempts."""
        self.restarted = []

    def _store(self) -> None:
        """Store the program's end, so that the next launcher can report it. A full disk is tried again."""
        if self._is_stored or self.exit is None:
            return
        try:
            self._write(self.run_id, self.attempt, self.exit, self._ended_at)
        except OSError:
            return
        self._is_stored = True

    def _write(self, run_id: str, attempt: int, exit_: Optional[Ended], ended_at: float) -> None:
        """Store an attempt that has ended, or, without its end, one that begins without an order."""
        content = {
            "run_id": run_id,
            "attempt": attempt,
            "port": self.port,
            "started": self.started,
            "exit": exit_.to_dict() if exit_ else None,
            "ended_at": ended_at,
            "restarted": [(end.to_dict(), at) for end, at in self.restarted],
            "boot": boot_id(),
        }
        write_whole(self._exit_file, json.dumps(content), sync=True)

    def _load(self) -> None:
        try:
            content = json.loads(self._exit_file.read_text())
            self.exit = Ended.from_dict(content["exit"]) if content["exit"] else None
            self.run_id, self.attempt, self.port = content["run_id"], content["attempt"], content["port"]
            self.started = content["started"]
            is_this_boot = content["boot"] == boot_id()
            self._ended_at = content["ended_at"] if is_this_boot else -1.0
            self.restarted = [
                (Ended.from_dict(end), at if is_this_boot else -1.0) for end, at in content.get("restarted", [])
            ]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            self.exit = None

    def complete(self, report: LauncherReport) -> LauncherReport:
        """The report with the durations of this moment."""
        now = boot_seconds()
        report = replace(report, restarted=[_aged(*ended) for ended in self.restarted])
        if self.is_running:
            return replace(report, running_seconds=now - self._started_at)
        if report.exit is None:
            return report
        return replace(report, exit=_aged(report.exit, self._ended_at))

    def seconds_until_kill(self, seconds: float) -> float:
        """At most so many seconds, and less when SIGKILL is due earlier."""
        if self._kill_at:
            return min(seconds, max(0.01, self._kill_at - time.monotonic()))
        return seconds


def _aged(end: Ended, at: float) -> Ended:
    """For a report of this moment; the program has ended `at`, by `boot_seconds`."""
    return replace(end, age=boot_seconds() - at if at >= 0 else -1.0)
