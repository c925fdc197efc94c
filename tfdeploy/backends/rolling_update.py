"""A rolling update: changed tasks get their new definitions one at a time, by job and index, each when the one before runs again.

Pulumi updates several resources at once and in an order that it does not promise, so each update waits here for its turn. When a
task does not start again, the tasks after it keep their old settings; the next `pulumi up` updates them.

The turns belong to this process and not by the controller: its restart queue restarts the processes of tasks, while here the
engine replaces containers, which a controller cannot do. All updates of one `pulumi up` reach one process.

The start itself may take as long as a pull of the image (`wait_for_start`).
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from ..agent.control.end_policy import end_of_time, may_finish
from ..agent.model.run_state import FINAL, RUNNING, RunState
from ..agent.system.polling import wait_until
from ..errors import BackendError, NotStarted
from ..program.plugin_exit import is_cancelled
from .base import EngineTask

_START_TIMEOUT = 60.0
_MAX_START_TIMEOUT = 1800.0
"""The timeout is extended while a container starts, but not beyond this; the time of a pull does not count."""

_STABLE_SECONDS = 2.0
_POLL_SECONDS = 0.2
_RECHECK_SECONDS = 0.1
"""An update that is refused leaves the queue without a notification."""
_MAX_FAILURES = 3
"""So many times the engine may fail to start a container."""

GATHER_SECONDS = 2.0
"""A turn begins when no other update has arrived for this time: on a busy computer those of one `pulumi up` arrive a second apart."""

PULLING, STARTING = "pulling", "starting"
_START_POLL_SECONDS, _LONGEST_PAUSE, _OBSERVE_SECONDS = 0.05, 1.0, 0.5

Position = tuple[int, int]
"""The position of a task in the order of updates: that of its job among all jobs, and its index."""

Definition = TypeVar("Definition", contravariant=True)
"""What an engine creates a task's container from."""


class StartFailure(NamedTuple):
    """A container that could not start, or failed."""

    id: str
    reason: str


@dataclass(frozen=True)
class TaskHistory:
    """What the engine reports of one task's containers."""

    newest: EngineTask | None
    """None where there is none, and none will be."""
    failures: Sequence[StartFailure]
    """Newest last."""


class TaskEngine(Protocol[Definition]):
    """The tasks of one cluster on an engine."""

    def apply(self, desired: Definition) -> None:
        """Give a task this definition, when its former container has ended."""

    def history(self, hostname: str) -> TaskHistory:
        """The containers of a task."""


class Turns:
    """The turns of one cluster's updates."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting: list[Position] = []
        self._busy = False
        self._last_arrival = 0.0
        self._failed_hostname = ""

    def take(self, position: Position, hostname: str, update: Callable[[], None]) -> None:
        """Wait for the turn of a task, then update it.

        Raises:
            BackendError: this update failed, or one before it.
        """
        with self._condition:
            self._waiting.append(position)
            self._last_arrival = time.monotonic()
            while self._busy or min(self._waiting) != position or self._gathering_for() > 0:
                self._condition.wait(max(_RECHECK_SECONDS, self._gathering_for()))
            self._waiting.remove(position)
            if self._failed_hostname:
                reason = f"{self._failed_hostname} did not start with its new settings"
                raise BackendError(f"{hostname} keeps its old settings, because {reason}")
            self._busy = True
        try:
            update()
        except BaseException:
            self._failed_hostname = hostname
            raise
        finally:
            with self._condition:
                self._busy = False
                self._condition.notify_all()

    def _gathering_for(self) -> float:
        """Seconds until a turn may begin; not positive when it may."""
        return self._last_arrival + GATHER_SECONDS - time.monotonic()


def is_active(run: RunState, hostname: str) -> bool:
    """Whether a task takes part in the run, so that the tasks after it wait until it runs again."""
    task = run.tasks.get(hostname)
    return run.result is None and task is not None and task.state not in FINAL


def replace_task(
    engine: TaskEngine[Definition],
    desired: Definition,
    previous: Definition,
    hostname: str,
    observe_run: Callable[[], RunState | None],
    needs_program: bool = True,
) -> None:
    """Update one task, and wait until it runs again: its launcher, and its program unless another run is submitted next, for which the
    settings are.

    Raises:
        NotStarted: it does not. The task then has its previous definition, as in the state.
    """
    run = observe_run()
    if run is not None and not is_active(run, hostname):
        wait_for_finish(run, hostname, observe_run)
        engine.apply(desired)
        return
    clock = StartClock(engine, hostname, hostname, " again with its new settings")
    launcher = run.tasks[hostname].report.instance if run else ""
    engine.apply(desired)
    clock.begin(_START_TIMEOUT, _MAX_START_TIMEOUT)

    def has_started() -> bool:
        nonlocal run
        run = observe_run()
        return _is_done(run, hostname, launcher, needs_program)

    try:
        wait_for_start(clock, has_started, lambda: _end_of_program(run, hostname, launcher) or clock.state)
    except NotStarted:
        engine.apply(previous)
        raise


def wait_for_finish(run: RunState | None, hostname: str, observe_run: Callable[[], RunState | None]) -> None:
    """Wait while a task has time left to end by itself after the success of the run: an update would end its program."""
    deadline, is_reported = float("inf"), False
    while run is not None and time.monotonic() < deadline and (remaining := _remaining(run, hostname)) > 0:
        deadline = min(deadline, time.monotonic() + remaining)
        if not is_reported:
            print(
                f"{hostname} gets its new settings when its program has ended, in at most {remaining:.0f} s", flush=True
            )
            is_reported = True
        time.sleep(_POLL_SECONDS)
        run = observe_run()


def _remaining(run: RunState, hostname: str) -> float:
    """How long a task may still run after the success of the run, by the time of the last report."""
    task, now = run.tasks.get(hostname), max((task.seen for task in run.tasks.values()), default=0.0)
    if run.result is None or task is None or not may_finish(run, task, now):
        return 0.0
    return end_of_time(run, task) - now


def _end_of_program(run: RunState | None, hostname: str, former_launcher: str) -> str:
    """How the program of a new launcher has ended; empty where it runs or that is not known."""
    task = run.tasks.get(hostname) if run else None
    if task is None or task.report.instance == former_launcher or task.exit_code is None:
        return ""
    return f"its program ended with exit code {task.exit_code}"


def _is_done(run: RunState | None, hostname: str, former_launcher: str, needs_program: bool) -> bool:
    """Whether a new launcher has run the task for a while, or has reported where the program need not run, or this run does not start
    the task any more."""
    if run is None:
        return False
    if not is_active(run, hostname):
        return True
    task = run.tasks[hostname]
    is_new = task.report.instance != former_launcher
    return is_new and (not needs_program or (task.state == RUNNING and task.seen - task.started > _STABLE_SECONDS))


class StartClock:
    """Measures how long one container takes to start, and prints that its image is pulled, or why it does not start. The time in which
    the engine pulls the image does not count: it may take an hour."""

    def __init__(self, engine: TaskEngine[Definition], hostname: str, title: str, manner: str = "") -> None:
        """Made before the engine gets the definition: what has failed by then does not count. `manner` is how it is to start."""
        self._engine, self._hostname, self._title = engine, hostname, title
        self.failure, self.state = f"{title} did not start{manner}", "it was removed"
        self._former = {failure.id for failure in engine.history(hostname).failures}
        self._printed = self.problem = ""
        self._has_failed = False

    def begin(self, seconds: float, most: float) -> None:
        """`seconds` without progress are too long; `most` seconds are too long in any case, but not those of a pull."""
        self._seconds, self._seen = seconds, time.monotonic()
        self._deadline, self._last = self._seen + seconds, self._seen + most

    def observe(self) -> None:
        """Note what the engine reports of the container. A reason why it does not start may pass in a moment; one that
        lasts for `_START_TIMEOUT`, or `_MAX_FAILURES` failures, end the wait."""
        history, now = self._engine.history(self._hostname), time.monotonic()
        task, failures = history.newest, [item for item in history.failures if item.id not in self._former]
        self._has_failed = len(failures) >= _MAX_FAILURES
        self.problem = failures[-1].reason if failures else task.reason if task else ""
        self.state = task.state if task else "it was removed"
        if task is not None and task.reason:
            self._print(f"{task.state}: {task.reason}")
        elif task is not None and task.state == PULLING:
            self._last += now - self._seen
            self._print("the machine pulls the image")
        if task is not None and task.state in (PULLING, STARTING):
            self._deadline = min(self._deadline, now + _START_TIMEOUT) if task.reason else now + self._seconds
        self._seen = now

    def _print(self, text: str) -> None:
        if text != self._printed:
            self._printed = text
            print(f"{self._title}: {text}", flush=True)

    def is_over(self) -> bool:
        """Whether it takes too long, or has failed too often."""
        return self._has_failed or time.monotonic() >= min(self._deadline, self._last)


def wait_for_start(
    clock: StartClock,
    has_started: Callable[[], bool],
    explain: Callable[[], str] = lambda: "the engine reports no reason",
) -> None:
    """Wait until a container has started. Where the engine has no reason why it does not, `explain` returns one.

    Raises:
        NotStarted: it does not in time, or before `pulumi` receives a signal.
    """
    due = 0.0

    def is_decided() -> bool:
        nonlocal due
        with suppress(OSError):
            if has_started():
                return True
            if time.monotonic() >= due or clock.is_over():  # several calls of an engine that is busy with the start
                clock.observe()
                due = time.monotonic() + _OBSERVE_SECONDS
        return clock.is_over() or is_cancelled()

    wait_until(is_decided, float("inf"), _START_POLL_SECONDS, _LONGEST_PAUSE)
    if (clock.is_over() or is_cancelled()) and not has_started():
        end = " before `pulumi` received a signal" if is_cancelled() else ""
        raise NotStarted(f"{clock.failure}{end}: {clock.problem or explain()}")
