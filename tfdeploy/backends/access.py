"""How a user gets at one task of a standing cluster: the second part of a backend's contract, and what is the same in all.

Nothing here needs Pulumi, nor waits for the stack's lock.
"""

import importlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from ..agent.protocol import CallError
from ..agent.states import FINAL, RUNNING, WORKERS, Job, Task
from ..errors import BackendError, NotFound
from . import keeping
from .base import Cluster, load
from .keeping import Keeper

_TRAINERS = ("chief", *WORKERS)


class Line(Protocol):
    """One connection to a task."""

    def send(self, data: bytes) -> None:
        """Send bytes; OSError when nobody takes them any more."""

    def end(self) -> None:
        """Say that there is nothing more to send; what comes back still does."""

    def receive(self) -> bytes:
        """The next bytes; none at the end."""

    def why(self) -> str:
        """Why there was no connection; known at the end, empty where there was one."""

    def close(self) -> None:
        """End it in both directions."""


Dial = Callable[[], Line]
"""Makes a new connection."""


@dataclass(frozen=True)
class Way:
    """How this computer connects to a task."""

    host: str
    port: int
    """Where its peers find it."""
    dial: Dial
    direct: bool = False
    """This computer finds it there too."""


class Access(Protocol):
    """`local`, `docker` and `ec2` each have one object of this shape. A hostname that is no task's is `NotFound`."""

    def means(self, cluster: Cluster, hostname: str, anew: bool) -> str:
        """What `restart`, or `replace` (`anew`), does to the task and its data, in sentences.

        Raises:
            BackendError: the task has ended, so neither would do anything.
        """

    def restart(self, cluster: Cluster, hostname: str) -> None:
        """Start a task again where it stands; return when it is back. The others go on, and it counts as no failure.

        Raises:
            BackendError: it has ended, or does not come back.
        """

    def replace(self, cluster: Cluster, hostname: str) -> None:
        """The same, without what it keeps for itself alone."""

    def execute(self, cluster: Cluster, hostname: str, command: Sequence[str]) -> int:
        """Run a command where the task's program runs, with this process' own streams and terminal; its exit code."""

    def ssh(self, cluster: Cluster, machine: str) -> list[str]:
        """The command that leads to a machine, which is given by its name or by that of a task on it.

        Raises:
            BackendError: there is no such way; with the one that there is.
        """

    def way(self, cluster: Cluster, hostname: str) -> Way:
        """How this computer connects to the address of a task.

        Raises:
            BackendError: the task does not listen now.
        """


def access(name: str) -> Access:
    """That of a backend."""
    load(name)
    found: Access = importlib.import_module(f"{__package__}.{name}.access").ACCESS
    return found


def no_task(title: str, hostname: str, known: Iterable[str]) -> NotFound:
    """The error where a cluster has no task of that name."""
    return NotFound(f"{title} has no task {hostname!r}; it has {', '.join(known)}.")


def task_of(job: Job | None, cluster: Cluster, hostname: str) -> Task:
    """A task of the present job, by its hostname.

    Raises:
        NotFound: there is none of that name.
    """
    if job is None:
        raise NotFound(f"{cluster['name']} has no run yet. `tfdeploy show` says what it waits for.")
    if hostname not in job.tasks:
        raise no_task(cluster["name"], hostname, job.tasks)
    return job.tasks[hostname]


def to_restart(job: Job | None, cluster: Cluster, hostname: str) -> Task:
    """A task that may start again.

    Raises:
        BackendError: it has ended, and this run starts it no more.
    """
    task = task_of(job, cluster, hostname)
    revived = task.looks_on and job is not None and not job.dismissed
    if task.state in FINAL and not revived:
        raise BackendError(
            f"{hostname} has ended ({task.state}), and finished is finished: started again it would do nothing. "
            "Change the code or an argument, and `pulumi up` begins a new run."
        )
    return task


def forgotten(job: Job | None, hostname: str) -> list[str]:
    """What of the training a task has in its memory alone, in sentences."""
    crew = job.crew if job else []
    task = next((one for one in crew if one.hostname == hostname), None)
    if task is None or task.state in FINAL:
        return []
    if task.job == "ps":
        lost = "What has changed since the last checkpoint in the variables that it holds in memory is lost"
        return [f"{lost}: the sessions of the other tasks break, and resume from that checkpoint."]
    alone = not any(one.job == "ps" for one in crew) and sum(one.job in _TRAINERS for one in crew) == 1
    if task.job in _TRAINERS and alone:
        return ["What it has in memory alone is lost: it resumes from the last checkpoint."]
    return []


def address_of(job: Job | None, cluster: Cluster, hostname: str) -> tuple[str, int]:
    """Host and port at which a task listens, as its peers reach it.

    Raises:
        BackendError: it does not listen now.
    """
    task = task_of(job, cluster, hostname)
    if task.state in FINAL:
        raise BackendError(f"{hostname} has ended ({task.state}): nothing listens there any more.")
    if not task.port:
        raise BackendError(f"{hostname} has no address yet: it is {task.state}. `tfdeploy show` says how it goes on.")
    return task.host, task.port


def announce(keeper: Keeper, hostname: str, word: str) -> None:
    """Have the keeper know that a task gets another launcher by the user's word; one that is away, or older than this call,
    takes it for any other."""
    with suppress(OSError, CallError):
        keeper.json("POST", "/again", {"hostname": hostname, "word": word})


def until_back(look: Callable[[], Job | None], before: Task, seconds: float) -> None:
    """Wait until another launcher keeps the task, and its program runs again where it did.

    Raises:
        BackendError: not within so many seconds.
    """

    def back() -> bool:
        job = look()
        task = job.tasks.get(before.hostname) if job else None
        if job is None or task is None or task.instance == before.instance:
            return False
        return job.verdict is not None or before.state != RUNNING or task.state == RUNNING or task.state in FINAL

    keeping.wait_for(back, f"{before.hostname} did not come back", seconds)
