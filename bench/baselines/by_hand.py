"""A TensorFlow cluster as one starts it by hand: a process for each task, with the four flags, its output in a file."""

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType


class ByHand:
    """One ps and some workers on this machine, stopped at the end of the `with` block."""

    def __init__(self, code: Path, logs: Path, workers: int, command: Sequence[str]) -> None:
        logs.mkdir(parents=True)
        ports = free_ports(1 + workers)
        addresses = [f"127.0.0.1:{port}" for port in ports]
        hosts = [f"--ps_hosts={addresses[0]}", f"--worker_hosts={','.join(addresses[1:])}"]
        self._logs = logs
        self._processes: list[subprocess.Popen[bytes]] = []
        for number in range(1 + workers):
            job, index = ("worker", number - 1) if number else ("ps", 0)
            with self.log(f"{job}-{index}").open("w") as log:
                self._processes.append(
                    subprocess.Popen(
                        [sys.executable, "-u", *command, f"--job_name={job}", f"--task_index={index}", *hosts],
                        cwd=code,
                        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                    )
                )

    def log(self, hostname: str) -> Path:
        """The file with what a task prints."""
        return self._logs / f"{hostname}.log"

    @property
    def pids(self) -> list[int]:
        """The processes of all tasks."""
        return [process.pid for process in self._processes]

    def __enter__(self) -> "ByHand":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()


def free_ports(count: int) -> list[int]:
    """So many ports that nobody listens on."""
    with ExitStack() as stack:
        trials = [stack.enter_context(socket.socket()) for _ in range(count)]
        for trial in trials:
            trial.bind(("", 0))
        return [int(trial.getsockname()[1]) for trial in trials]
