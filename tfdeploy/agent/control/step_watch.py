"""Searches what is printed, and notices that a run makes no steps any more: an event says so, and one that they continue.

"No step" means that no task of the training has logged one, nor an epoch, for far longer than usual, although all of its tasks run and
their launchers respond. It is measured by the controller's clock, from when a line arrived. The usual interval is between lines of one
task. Runs that log no steps have no such event.
"""

import time
import traceback
from typing import Dict, Iterator, List, Tuple

from ..model.events import STEPS_CONTINUED, STEPS_STOPPED, Event
from ..model.run_state import EVALUATOR, FINAL, RUNNING, RunState, TaskState
from ..record.progress import Progress
from ..system.polling import pause_after
from .clock import Clock
from .controller import Controller

POLL_SECONDS = 2.0
_PAUSE_FACTOR, _LONGEST_PAUSE = 10.0, 10.0
"""The shortest pause between two searches. After one that has found all, the pause is so many times as long, up to the longest."""

STALL_SECONDS, STALL_INTERVALS = 300.0, 10.0
"""No step for so long, and for so many usual intervals: most evaluations, checkpoints and compilations take less."""

_SILENT_SECONDS = 15.0
"""Steps may have been made that are not known, where a launcher or this controller was silent for so long."""

_SERVER = "ps"


class StepWatch:
    """Watches the current run of a controller. `run` is for a thread of its own."""

    def __init__(self, controller: Controller, clock: Clock) -> None:
        self._controller, self._clock = controller, clock
        self._run_id = ""
        self._progress: Dict[str, Progress] = {}
        self._attempts: List[Tuple[str, int]] = []
        self._stepped = self._polled = clock.steady()
        self._is_stalled = False

    def run(self) -> None:
        """Search and watch for ever."""
        while True:
            begin, is_at_end = time.monotonic(), True
            try:
                is_at_end = self.poll()
            except Exception:  # the next search may succeed
                traceback.print_exc()
            factor = _PAUSE_FACTOR if is_at_end else 1.0
            time.sleep(pause_after(factor * (time.monotonic() - begin), POLL_SECONDS, _LONGEST_PAUSE))

    def poll(self) -> bool:
        """Search, decide `until`, and note where the run has made no steps for too long; whether all output was searched."""
        run, now = self._controller.snapshot(), self._clock.steady()
        if run is None:
            return True
        found = self._controller.decide_until()
        has_paused, self._polled = now - self._polled > _LONGEST_PAUSE + _SILENT_SECONDS, now
        if not found.is_at_end:  # the steps of a search that began again are not new
            self._stepped = now
            return False
        before, self._progress = self._progress, found.progress
        if run.spec.id != self._run_id:
            self._begin(run.spec.id, now)
            before = self._progress
        has_stepped = any(_lines(self._progress, task) > _lines(before, task) for task in _trainers(run))
        if has_stepped:
            if self._is_stalled:
                self._controller.note(run.spec.id, [Event(STEPS_CONTINUED)])
            self._stepped, self._is_stalled = now, False
        elif has_paused or not self._is_known(run):
            self._stepped = now
        elif not self._is_stalled and now - self._stepped >= self._limit(run):
            self._is_stalled = True
            self._controller.note(run.spec.id, [Event(STEPS_STOPPED, delay=now - self._stepped)])
        return True

    def _begin(self, run_id: str, now: float) -> None:
        """Watch another run. It may have stalled before this controller began."""
        kinds = [event.kind for event in self._controller.record.events(run_id)]
        changes = [kind for kind in kinds if kind in (STEPS_STOPPED, STEPS_CONTINUED)]
        self._run_id, self._attempts = run_id, []
        self._stepped = now
        self._is_stalled = changes[-1:] == [STEPS_STOPPED]

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
            and not any(
                task.report.problem or run.silent_seconds(task, now) > _SILENT_SECONDS for task, _ in self._usual(run)
            )
        )

    def _usual(self, run: RunState) -> Iterator[Tuple[TaskState, float]]:
        """The tasks that log steps, and their usual intervals."""
        for task in _trainers(run):
            usual = self._progress[task.hostname].usual if task.hostname in self._progress else None
            if usual is not None:
                yield task, usual

    def _limit(self, run: RunState) -> float:
        """After how many seconds without a step the run stalls."""
        usual = min((seconds for _, seconds in self._usual(run)), default=float("inf"))
        return max(STALL_SECONDS, STALL_INTERVALS * usual)


def _lines(progress: Dict[str, Progress], task: TaskState) -> int:
    """How many lines of a task have reported steps or epochs."""
    return progress[task.hostname].lines if task.hostname in progress else 0


def _trainers(run: RunState) -> List[TaskState]:
    """The running tasks that may log the steps of the training."""
    others = (_SERVER, EVALUATOR)
    tasks = [task for task in run.training_tasks if task.job not in others and not run.spec.is_service(task.job)]
    return [task for task in tasks if task.state == RUNNING]
