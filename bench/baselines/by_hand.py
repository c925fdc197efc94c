"""A TensorFlow cluster as one starts it by hand: a process for each task, with the four flags, its output in a file."""

import os
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from ..ending import undisturbed
from ..processes import Process


class ByHand:
    """One ps and some workers on this machine, killed at the end of the `with` block."""

    def __init__(self, code: Path, logs: Path, workers: int, command: Sequence[str]) -> None:
        logs.mkdir(parents=True)
        self._code, self._logs, self._workers, self._command = code, logs, workers, command
        self._processes: list[Process] = []

    def __enter__(self) -> "ByHand":
        try:
            self._start()
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kill()

    def _start(self) -> None:
        ports = free_ports(1 + self._workers)
        addresses = [f"127.0.0.1:{port}" for port in ports]
        hosts = [f"--ps_hosts={addresses[0]}", f"--worker_hosts={','.join(addresses[1:])}"]
        for number in range(1 + self._workers):
            job, index = ("worker", number - 1) if number else ("ps", 0)
            command = [sys.executable, "-u", *self._command, f"--job_name={job}", f"--task_index={index}", *hosts]
            environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
            output_file = self.log(f"{job}-{index}")
            with undisturbed():
                self._processes.append(Process(command, output_file, self._code, environment))

    def _kill(self) -> None:
        with undisturbed(), ExitStack() as stack:
            for process in self._processes:
                stack.callback(process.kill)

    def log(self, hostname: str) -> Path:
        """The file with what a task prints."""
        return self._logs / f"{hostname}.log"

    @property
    def pids(self) -> list[int]:
        """The processes of all tasks."""
        return [process.pid for process in self._processes]

    def check(self) -> None:
        """Raise BenchError when one of them has failed."""
        for process in self._processes:
            process.check()

    def tail(self) -> str:
        """The last lines of each."""
        return "\n".join(process.tail() for process in self._processes)


def free_ports(count: int) -> list[int]:
    """A number of free ports."""
    with ExitStack() as stack:
        trials = [stack.enter_context(socket.socket()) for _ in range(count)]
        for trial in trials:
            trial.bind(("", 0))
        return [int(trial.getsockname()[1]) for trial in trials]
