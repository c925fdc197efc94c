"""What Pulumi's table of resources shows of a cluster while `pulumi up` waits: a short text for each row. Pure."""

from collections.abc import Iterable, Mapping

from ..agent.run_state import RUNNING
from ..outputs import CostSummary, TaskRow
from ..units import dollars
from .failure import is_noise
from .live_display import WATCH_COMMAND
from .progress import Training, goal, progress_text
from .report import Report

CLUSTER_ROW, RUN_ROW = "cluster", "run"
"""The rows of a cluster that are not a task's. Those are named by their hostnames, which end with a number."""

_MIN_SECONDS = 1.0
_SECONDS_PER_TASK = 0.1
"""At most one message a second for each row, and ten for a cluster: Pulumi Cloud and `--event-log` store each one."""


class LiveRows:
    """The rows of a cluster. Each line of a task is read once."""

    def __init__(self) -> None:
        self._trainings: dict[str, Training] = {}
        self._read: dict[str, float] = {}
        self._shown: dict[str, str] = {}
        self._next_at = 0.0
        self._run = ""

    def changes(self, latest: Report, now: float) -> Mapping[str, str]:
        """The rows with another text than the last time; none if that was a moment ago. `now` is a clock that does not step."""
        self._read_lines(latest)
        if now < self._next_at:
            return {}
        self._next_at = now + max(_MIN_SECONDS, _SECONDS_PER_TASK * len(latest.tasks))
        texts = {row["hostname"]: self._task_text(row, latest) for row in latest.tasks}
        texts |= {CLUSTER_ROW: _cluster_text(latest), RUN_ROW: f"more: {WATCH_COMMAND}"}
        changed = {name: text for name, text in texts.items() if text != self._shown.get(name)}
        self._shown |= changed
        return changed

    def _read_lines(self, latest: Report) -> None:
        if latest.run != self._run:
            self._run, self._trainings, self._read = latest.run, {}, {}
        for row in latest.tasks:
            name = row["hostname"]
            training = self._trainings.setdefault(name, Training(goal(row["command"])))
            lines = [line for line in latest.timed.get(name, []) if line[0] > self._read.get(name, 0.0)]
            training.add_lines(lines)
            if lines:
                self._read[name] = lines[-1][0]

    def _task_text(self, row: TaskRow, latest: Report) -> str:
        """`running  1200/2000  20s left  41.0 steps/s  loss 0.31 ▇▅▃▂▁`; the last line of a task that prints no steps."""
        if row["status"] != RUNNING:
            return row["status"]
        progress = self._trainings[row["hostname"]].progress
        if progress.step is not None or progress.loss is not None:
            return f"{RUNNING}  {progress_text(progress)}"
        lines = [text for _, text in latest.timed.get(row["hostname"], []) if not is_noise(text)]
        return _joined([RUNNING, *lines[-1:]])


def _cluster_text(latest: Report) -> str:
    return _joined([latest.state, _cost_text(latest.cost), latest.reason, latest.time_left])


def _cost_text(cost: CostSummary) -> str:
    """`$0.0412 so far, $0.31/h`; empty on `local` and `docker`."""
    spent, per_hour = cost.get("spent"), cost.get("per_hour")
    amounts = [] if spent is None else [f"{dollars(spent)} so far"]
    return ", ".join([*amounts, *([] if per_hour is None else [f"{dollars(per_hour)}/h"])])


def _joined(parts: Iterable[str]) -> str:
    return "  ".join(part for part in parts if part)
