"""Whether a run that has moved trains at its new place: only then may what is at the former one be deleted. Pure."""

from ..agent.run_state import RUNNING, SUCCEEDED
from ..agent.success_policy import deciding_tasks
from ..backends.run_mover import StoppedRun
from .log_metrics import reading
from .progress import Training
from .report import Report

_STEP_LINES = 200
"""So many last lines of a task are read for its last step."""


class Arrival:
    """What was observed of a run since it was submitted at a new place. `submitted` is that moment, in seconds since 1970."""

    def __init__(self, submitted: float) -> None:
        self._submitted = submitted
        self._prints_steps = False
        self.step: float | None = None
        """The first step that was logged since then, once `trains`; None for a program that prints none."""

    def trains(self, latest: Report, needs_step: bool = True) -> bool:
        """Whether the run has succeeded, or runs with a step since then. That it runs is enough where no step is needed, and for a
        program that prints none."""
        if latest.state != RUNNING:
            return latest.state == SUCCEEDED
        earlier, later = Training(), Training()
        for lines in latest.timed.values():
            earlier.add_lines(line for line in lines if line[0] < self._submitted)
            later.add_lines(line for line in lines if line[0] >= self._submitted)
        self.step = self._first_step(latest) if self.step is None else self.step
        self._prints_steps |= earlier.progress.step is not None
        return later.progress.step is not None or not (needs_step and self._prints_steps)

    def _first_step(self, latest: Report) -> float | None:
        lines = [line for of_task in latest.timed.values() for line in of_task if line[0] >= self._submitted]
        steps = (reading(text).step for _, text in sorted(lines))
        return next((step for step in steps if step is not None), None)


def last_step(stopped: StoppedRun) -> int:
    """The last step that the current run of a record has logged; 0 for none."""
    run = stopped.record.current()
    for task in deciding_tasks(run) if run else ():
        training = Training()
        lines = stopped.record.log(run.spec.id if run else "", task.hostname).tail(_STEP_LINES)
        training.add_lines((line.at, line.text) for line in lines)
        if training.progress.step is not None:
            return int(training.progress.step)
    return 0
