"""Changes of standing tasks, one at a time in the order of job and index, each when the one before runs again.

Pulumi hands several changes to one process at once, and in no order that it promises: so each waits here for its turn. When one
does not come up, those after it are refused and keep their old settings; the next `up` brings them again.
"""

import threading
import time
from collections.abc import Callable

from ...agent.states import FINAL, RUNNING, Job
from ...errors import BackendError
from .services import Service
from .swarm import Swarm

_COME_UP_SECONDS = 60.0
_LONGEST_SECONDS = 1800.0
"""How long a container may take to come up, and longer while its image is pulled, but never longer than this."""

_SETTLED_SECONDS = 2.0
_LOOK_SECONDS = 0.2
_TRIES = 3
"""So often the engine may fail to start a container before it is given up."""

GATHER_SECONDS = 0.5
"""So long after the last arrival the first turn is given."""

Order = tuple[int, int]
"""What changes are put in order by: the place of the job, the task's index."""


class Turns:
    """The turns of one cluster in this process."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting: list[Order] = []
        self._busy = False
        self._arrived = 0.0
        self._stuck = ""

    def take(self, order: Order, hostname: str, change: Callable[[], None]) -> None:
        """Make the change when its turn has come.

        Raises:
            BackendError: the change failed, or one before it did.
        """
        with self._condition:
            self._waiting.append(order)
            self._arrived = time.monotonic()
            while self._busy or min(self._waiting) != order or self._gathering():
                self._condition.wait(GATHER_SECONDS / 5)
            self._waiting.remove(order)
            if self._stuck:
                raise BackendError(
                    f"{hostname} keeps its old settings, because {self._stuck} did not come up with its new"
                )
            self._busy = True
        try:
            change()
        except BaseException:
            self._stuck = hostname
            raise
        finally:
            with self._condition:
                self._busy = False
                self._condition.notify_all()

    def _gathering(self) -> bool:
        return time.monotonic() < self._arrived + GATHER_SECONDS


_turns: dict[str, Turns] = {}
_lock = threading.Lock()


def turns(cluster: str) -> Turns:
    """The turns of a cluster, by the name of what is its."""
    with _lock:
        return _turns.setdefault(cluster, Turns())


def runs(job: Job, hostname: str) -> bool:
    """Whether a task is at work, so that those after it wait until it is again."""
    task = job.tasks.get(hostname)
    return job.verdict is None and task is not None and task.state not in FINAL


def replace(swarm: Swarm, wanted: Service, former: Service, hostname: str, look: Callable[[], Job | None]) -> None:
    """Change one service, and wait until its task runs again; `look` gives the present job.

    Raises:
        BackendError: it did not; with the engine's reason. The service is as it was, as the state has it.
    """
    before = look()
    if before is not None and not runs(before, hostname):
        swarm.ensure(wanted)
        return
    known = {task["ID"] for task in swarm.fate(hostname)[1]}
    instance = before.tasks[hostname].instance if before else ""
    swarm.ensure(wanted)
    begun = time.monotonic()
    deadline, latest = begun + _COME_UP_SECONDS, begun + _LONGEST_SECONDS
    why = ""
    while time.monotonic() < deadline:
        job = look()
        task = job.tasks.get(hostname) if job else None
        if job is not None and (task is None or job.verdict or task.state in FINAL):
            return
        came = task is not None and task.instance != instance and task.state == RUNNING
        if task is not None and came and task.seen - task.started > _SETTLED_SECONDS:
            return
        seen, failures = swarm.fate(hostname)
        broken = [failure["Status"].get("Err", "") for failure in failures if failure["ID"] not in known]
        why = broken[-1] if broken else (seen.reason or seen.word) if seen else "its service is gone"
        if len(broken) >= _TRIES:
            break
        if seen is not None and seen.word in ("pulling", "starting"):
            deadline = min(latest, time.monotonic() + _COME_UP_SECONDS)
        time.sleep(_LOOK_SECONDS)
    swarm.ensure(former)
    raise BackendError(f"{hostname} did not come up again with its new settings: {why}")
