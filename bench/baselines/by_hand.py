"""A TensorFlow cluster as one starts it by hand: a process for each task, with the four flags, its output in a file."""

import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ..ending import undisturbed
from ..processes import Process


@dataclass(frozen=True)
class ByHand:
    """One ps and some workers on this machine."""

    logs: Path
    processes: list[Process] = field(default_factory=list)

    def log(self, hostname: str) -> Path:
        """The file with what a task prints."""
        return self.logs / f"{hostname}.log"

    def check(self) -> None:
        """Raise BenchError when one of them has failed."""
        for process in self.processes:
            process.check()

    def tail(self) -> str:
        """The last lines of each."""
        return "\n".join(process.tail() for process in self.processes)


@contextmanager
def by_hand(code: Path, logs: Path, workers: int, command: Sequence[str]) -> Iterator[ByHand]:
    """Their processes, killed at the end of the `with` block."""
    logs.mkdir(parents=True)
    made, environment = ByHand(logs), {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    addresses = [f"127.0.0.1:{port}" for port in free_ports(1 + workers)]
    try:
        for job, index in tasks(workers):
            words = [sys.executable, "-u", *command, *flags(job, index, addresses)]
            with undisturbed():
                made.processes.append(Process(words, made.log(f"{job}-{index}"), code, environment))
        yield made
    finally:
        with undisturbed(), ExitStack() as stack:
            for process in made.processes:
                stack.callback(process.kill)


def tasks(workers: int) -> list[tuple[str, int]]:
    """Job and index of each task: one ps, some workers."""
    return [("ps", 0), *[("worker", index) for index in range(workers)]]


def flags(job: str, index: int, addresses: Sequence[str]) -> list[str]:
    """The four flags of a task; the first address is that of the ps."""
    hosts = [f"--ps_hosts={addresses[0]}", f"--worker_hosts={','.join(addresses[1:])}"]
    return [f"--job_name={job}", f"--task_index={index}", *hosts]


def free_ports(count: int) -> list[int]:
    """A number of free ports."""
    with ExitStack() as stack:
        trials = [stack.enter_context(socket.socket()) for _ in range(count)]
        for trial in trials:
            trial.bind(("", 0))
        return [int(trial.getsockname()[1]) for trial in trials]
