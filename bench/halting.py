"""Processes and containers that are stopped for a while, each by its own handle, and continued afterwards."""

import fcntl
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

from .observed import alive
from .processes import BenchError, docker, until

_SECONDS = 30.0
"""How long the engine may take to pause or to unpause one container."""

_AGAIN = "unable to freeze"
_NOTHING_TO_DO = ("is not paused", "is not running", "No such container")


class Handle(Protocol):
    """One process or one container."""

    def halt(self) -> None:
        """Stop it."""

    def release(self) -> None:
        """Continue it; it may already run, or have ended."""


@dataclass(frozen=True)
class OfProcess:
    """A process of this machine's."""

    process: psutil.Process

    def halt(self) -> None:
        """By SIGSTOP."""
        with suppress(psutil.NoSuchProcess):
            self.process.suspend()

    def release(self) -> None:
        """By SIGCONT."""
        with suppress(psutil.NoSuchProcess):
            self.process.resume()


@dataclass(frozen=True)
class OfUpdate:
    """The processes of a `pulumi up` that observes a cluster."""

    processes: Sequence[psutil.Process]
    lock: Path
    """The file that an observation locks: if `up` is stopped then, it holds the lock, and every other observer waits."""

    def halt(self) -> None:
        """By SIGSTOP, between two observations."""
        until(self._halted, "a moment in which `pulumi up` does not observe", seconds=_SECONDS)

    def _halted(self) -> bool:
        halt(of_processes(self.processes))
        until(lambda: all(map(_is_stopped, self.processes)), "SIGSTOP", seconds=_SECONDS)
        with self.lock.open("rb") as lock:  # it exists: `up` has observed
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.release()
                return False
        return True

    def release(self) -> None:
        """By SIGCONT."""
        release(of_processes(self.processes))


def _is_stopped(process: psutil.Process) -> bool:
    return not alive(process) or process.status() == psutil.STATUS_STOPPED


@dataclass(frozen=True)
class OfContainer:
    """A container, by its name or id."""

    name: str

    def halt(self) -> None:
        """By `docker pause`, which a busy machine may need several tries for."""
        until(self._paused, f"`docker pause {self.name}`", seconds=_SECONDS)

    def _paused(self) -> bool:
        try:
            docker("pause", self.name, seconds=_SECONDS)
        except BenchError as error:
            if _AGAIN not in str(error):
                raise
            return False
        return True

    def release(self) -> None:
        """By `docker unpause`.

        Raises:
            BenchError: the engine did not do so in time.
        """
        try:
            docker("unpause", self.name, seconds=_SECONDS)
        except BenchError as error:
            if not any(text in str(error) for text in _NOTHING_TO_DO):
                raise


def halt(handles: Sequence[Handle]) -> None:
    """Stop all."""
    for handle in handles:
        handle.halt()


def release(handles: Sequence[Handle]) -> None:
    """Continue all, even if one fails."""
    with ExitStack() as stack:
        for handle in reversed(handles):
            stack.callback(handle.release)


def of_processes(processes: Sequence[psutil.Process]) -> list[Handle]:
    """Their handles."""
    return [OfProcess(process) for process in processes]


def of_containers(names: Sequence[str]) -> list[Handle]:
    """Their handles."""
    return [OfContainer(name) for name in names]
