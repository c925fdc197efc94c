"""Notices that a run makes no steps any more: an event says so, and one that they continue.

"No step" means that no task of the training has logged one, nor an epoch, for far longer than usual, although all of its tasks run and
their launchers respond. It is measured by the controller's clock, from when a line arrived. The usual interval is between lines of one
task. Runs that log no steps have no such event.
"""

import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Deque, Dict, Iterable, Iterator, List, Optional, Tuple

from ..events import STEPS_CONTINUED, STEPS_STOPPED, Event
from ..record.output import Log, Reader
from ..record.output_lines import Line
from ..record.steps import is_progress
from ..record.terminal_text import plain
from ..run_state import EVALUATOR, FINAL, RUNNING, RunState, TaskState
from .clock import Clock
from .controller import Controller

POLL_SECONDS = 10.0

STALL_SECONDS, STALL_INTERVALS = 300.0, 10.0
"""No step for so long, and for so many usual intervals: most evaluations, checkpoints and compilations take less."""

MAX_TASKS = 50
"""Of more tasks that train, the output of the first ones is read."""

_LEAST_TIMES, _MOST_TIMES = 5, 64
"""The usual interval is known after so many lines with steps; it is that of the last ones."""

_FIRST_LINES, _LINE_BYTES = 200, 1024
"""So many lines of before the controller began are read, and so many bytes of a line."""

_SILENT_SECONDS = 15.0
"""Steps may have been made that are not known, where a launcher or this controller was silent for so long."""

_SERVER = "ps"


@dataclass
class _Task:
    """What is read of one task's output."""

    reader: Reader
    times: Deque[float] = field(default_factory=lambda: deque(maxlen=_MOST_TIMES))
    """When steps were logged, by the launcher's clock. Lines that were printed at once count once."""

    def add(self, lines: Iterable[Line]) -> bool:
        """Whether one of these lines reports a step."""
        times = [line.at for line in lines if is_progress(plain(line.content[:_LINE_BYTES].decode("utf-8", "replace")))]
        for at in times:
            if not self.times or at != self.times[-1]:
                self.times.append(at)
        return bool(times)

    @property
    def usual(self) -> Optional[float]:
        """The median interval in seconds; None where it is not known."""
        times = list(self.times)
        return median(b - a for a, b in zip(times, times[1:])) if len(times) >= _LEAST_TIMES else None


class StepWatch:
    """Watches the current run of a controller. `run` is for a thread of its own."""

    def __init__(self, controller: Controller, clock: Clock) -> None:
        self._controller, self._clock = controller, clock
        self._run_id = ""
        self._tasks: Dict[str, _Task] = {}
        self._attempts: List[Tuple[str, int]] = []
        self._stepped = self._polled = clock.steady()
        self._is_stalled = False

    def run(self) -> None:
        """Watch for ever."""
        while True:
            time.sleep(POLL_SECONDS)
            with suppress(OSError):
                self.poll()

    def poll(self) -> None:
        """Read what has arrived since the last call, and note where the run has made no steps for too long."""
        run, now = self._controller.snapshot(), self._clock.steady()
        if run is None:
            return
        if run.spec.id != self._run_id:
            self._begin(run.spec.id, now)
        has_stepped = self._read(run)
        has_paused, self._polled = now - self._polled > POLL_SECONDS + _SILENT_SECONDS, now
        if has_stepped:
            if self._is_stalled:
                self._controller.note(run.spec.id, [Event(STEPS_CONTINUED)])
            self._stepped, self._is_stalled = now, False
        elif has_paused or not self._is_known(run):
            self._stepped = now
        elif not self._is_stalled and now - self._stepped >= self._limit(run):
            self._is_stalled = True
            self._controller.note(run.spec.id, [Event(STEPS_STOPPED, delay=now - self._stepped)])

    def _begin(self, run_id: str, now: float) -> None:
        """Watch another run. It may have stalled before this controller began."""
        kinds = [event.kind for event in self._controller.record.events(run_id)]
        changes = [kind for kind in kinds if kind in (STEPS_STOPPED, STEPS_CONTINUED)]
        self._run_id, self._tasks, self._attempts = run_id, {}, []
        self._stepped = now
        self._is_stalled = changes[-1:] == [STEPS_STOPPED]

    def _read(self, run: RunState) -> bool:
        """Whether a task has logged a step since the last call."""
        has_stepped = False
        for task in _trainers(run):
            if task.hostname not in self._tasks:
                self._tasks[task.hostname] = _opened(self._controller.record.log(run.spec.id, task.hostname))
            watched = self._tasks[task.hostname]
            has_stepped |= watched.add(watched.reader.more())
        return has_stepped

    def _is_known(self, run: RunState) -> bool:
        """Whether the run could have made steps since the last call, and they would be known: all tasks run, as they did then, and
        those that log steps are heard."""
        open_tasks = [task for task in run.training_tasks if task.state not in FINAL]
        attempts = [(task.hostname, task.attempt) for task in open_tasks]
        is_same, self._attempts = attempts == self._attempts, attempts
        is_running = run.result is None and not run.stop_requested and all(it.state == RUNNING for it in open_tasks)
        now = self._clock.read()
        return (
            is_same
            and is_running
            and not any(task.problem or run.silent_seconds(task, now) > _SILENT_SECONDS for task, _ in self._usual(run))
        )

    def _usual(self, run: RunState) -> Iterator[Tuple[TaskState, float]]:
        """The tasks that log steps, and their usual intervals."""
        for task in _trainers(run):
            usual = self._tasks[task.hostname].usual if task.hostname in self._tasks else None
            if usual is not None:
                yield task, usual

    def _limit(self, run: RunState) -> float:
        """After how many seconds without a step the run stalls."""
        usual = min((seconds for _, seconds in self._usual(run)), default=float("inf"))
        return max(STALL_SECONDS, STALL_INTERVALS * usual)


def _opened(log: Log) -> _Task:
    """A task whose output is read from now on, and its last lines at once."""
    task = _Task(Reader(log, log.end))
    task.add(log.tail(_FIRST_LINES))
    return task


def _trainers(run: RunState) -> List[TaskState]:
    """The running tasks that may log the steps of the training."""
    others = (_SERVER, EVALUATOR)
    tasks = [task for task in run.training_tasks if task.job not in others and not run.spec.is_service(task.job)]
    return [task for task in tasks if task.state == RUNNING][:MAX_TASKS]
