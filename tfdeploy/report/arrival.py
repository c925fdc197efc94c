"""Whether a run that has moved trains at its new place: only then may what is at the former one be deleted. Pure."""

import re

from ..agent.control.success_policy import deciding_tasks
from ..agent.record.artifacts import CHECKPOINT
from ..agent.run_state import RUNNING, SUCCEEDED
from ..backends.move import StoppedRun
from .log_metrics import reading
from .progress import Training
from .report import Report

_STEP_OF_CHECKPOINT = re.compile(r"-(\d{1,15})$")

_STEP_LINES = 200
"""So many last lines of a task are read for its last step."""


class Arrival:
    """What was observed of a run since it was submitted at a new place. `submitted` is that moment, in seconds since 1970."""

    def __init__(self, submitted: float) -> None:
        self._submitted = submitted
        self._before: float | None = None
        self.step: float | None = None
        """The first step that was logged since then, once `trains`; None for a program that prints none."""
        self.problem = ""
        """Why the last step does not show that it trains."""

    def trains(self, latest: Report, needs_step: bool = True) -> bool:
        """Whether the run has succeeded, or runs with a step since then that it cannot have without its checkpoint. That it runs is
        enough where no step is needed, and for a program that prints none."""
        if latest.state != RUNNING:
            return latest.state == SUCCEEDED
        earlier, later = Training(), Training()
        for lines in latest.timed.values():
            earlier.add_lines(line for line in lines if line[0] < self._submitted)
            later.add_lines(line for line in lines if line[0] >= self._submitted)
        self.step = self._first_step(latest) if self.step is None else self.step
        self._before = earlier.progress.step if self._before is None else self._before
        step, least = later.progress.step, _least_step(latest, self._before or 0.0)
        self.problem = (
            ""
            if step is None or step >= least
            else f"it logs step {step:,.0f}, and would continue at {least:,.0f} or later"
        )
        return not needs_step or (self._before is None if step is None else step >= least)

    def _first_step(self, latest: Report) -> float | None:
        lines = [line for of_task in latest.timed.values() for line in of_task if line[0] >= self._submitted]
        steps = (reading(text).step for _, text in sorted(lines))
        return next((step for step in steps if step is not None), None)


def _least_step(latest: Report, before: float) -> float:
    """The step that shows that a run which had logged the step `before` has continued: that of its checkpoint, if the names of
    checkpoints count the same steps. A counter that begins at 0 shows nothing."""
    names = (row["name"] for row in latest.artifacts or () if row["kind"] == CHECKPOINT)
    steps = (float(match[1]) for match in map(_STEP_OF_CHECKPOINT.search, names) if match)
    return max((step for step in steps if step <= before), default=1.0 if before else 0.0)


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
