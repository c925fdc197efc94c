"""Processes and containers that are stopped for a while, each by its own handle, and continued afterwards."""

import fcntl
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil

from .observed import alive
from .processes import BenchError, docker, until

_SECONDS = 30.0
"""How long the engine may take to pause or to unpause one container."""

_AGAIN = "unable to freeze"
_NOTHING_TO_DO = ("is not paused", "is not running", "No such container")


class Handle(NamedTuple):
    """How one process or one container is stopped and continued; it may already run then, or have ended."""

    halt: Callable[[], None]
    release: Callable[[], None]


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
    """By SIGSTOP and SIGCONT."""

    def each(process: psutil.Process, action: Callable[[psutil.Process], None]) -> None:
        with suppress(psutil.NoSuchProcess):
            action(process)

    stop, resume = psutil.Process.suspend, psutil.Process.resume
    return [Handle(partial(each, process, stop), partial(each, process, resume)) for process in processes]


def of_update(processes: Sequence[psutil.Process], lock: Path) -> Handle:
    """The processes of a `pulumi up` that observes a cluster, stopped between two observations. An observation locks `lock`: if `up` is
    stopped then, it holds the lock, and every other observer waits."""
    handles = of_processes(processes)

    def is_halted() -> bool:
        halt(handles)
        until(lambda: all(map(_is_stopped, processes)), "SIGSTOP", seconds=_SECONDS)
        with lock.open("rb") as opened:  # it exists: `up` has observed
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                release(handles)
                return False
        return True

    def halt_between() -> None:
        until(is_halted, "a moment in which `pulumi up` does not observe", seconds=_SECONDS)

    return Handle(halt_between, lambda: release(handles))


def _is_stopped(process: psutil.Process) -> bool:
    return not alive(process) or process.status() == psutil.STATUS_STOPPED


def of_containers(names: Sequence[str]) -> list[Handle]:
    """By `docker pause`, which a busy machine may need several tries for, and `docker unpause`."""

    def pause(name: str) -> None:
        until(lambda: _docker("pause", name, but=(_AGAIN,)), f"`docker pause {name}`", seconds=_SECONDS)

    def unpause(name: str) -> None:
        _docker("unpause", name, but=_NOTHING_TO_DO)

    return [Handle(partial(pause, name), partial(unpause, name)) for name in names]


def _docker(verb: str, name: str, but: Sequence[str]) -> bool:
    """Whether it succeeded; False where it failed with one of these texts.

    Raises:
        BenchError: it failed with another, or the engine did not respond in time.
    """
    try:
        docker(verb, name, seconds=_SECONDS)
    except BenchError as error:
        if not any(text in str(error) for text in but):
            raise
        return False
    return True
