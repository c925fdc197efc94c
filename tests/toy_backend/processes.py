"""A command that a shell starts again until it ends well: a process group whose id is in a file."""

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

JOB_SECONDS = "TOY_JOB_SECONDS"
"""An environment variable with the time limit of a task; without it there is none."""

_LOOP = 'while true; do timeout --foreground "$0" "$@"; code=$?; if [ $code = 0 ]; then touch ended; exit 0; fi; sleep 1; done'
_NOT_FOR_TASKS = ("PULUMI", "PYTHONPATH")


class Group:
    """The processes whose id and log are in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._id = folder / "group"

    @staticmethod
    @contextmanager
    def lock(path: Path) -> Iterator[None]:
        """One at a time, over all processes."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with path.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def start(self, command: Sequence[str], limit: str = "0") -> None:
        """Start the command, unless it runs. After `limit` seconds it gets SIGTERM, and is started again; "0" is no limit."""
        if self.alive():
            return
        (self._folder / "ended").unlink(missing_ok=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_FOR_TASKS)}
        with (self._folder / "log").open("ab") as log:
            process = subprocess.Popen(
                ["/bin/sh", "-c", _LOOP, limit, *command],
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._id.write_text(str(process.pid))

    def alive(self) -> bool:
        """Whether a process of the group runs."""
        if not self._id.exists():
            return False
        number = int(self._id.read_text())
        with suppress(ChildProcessError):
            os.waitpid(number, os.WNOHANG)
        try:
            os.killpg(number, 0)
        except ProcessLookupError:
            return False
        return True

    def ended_well(self) -> bool:
        """Whether the command has nothing more to do."""
        return (self._folder / "ended").exists()

    def stop(self, seconds: float) -> None:
        """Stop all processes of the group; kill them after so many seconds."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.alive():
                os.killpg(int(self._id.read_text()), number)
            deadline = time.monotonic() + seconds
            while self.alive() and time.monotonic() < deadline:
                time.sleep(0.05)
        self._id.unlink(missing_ok=True)
