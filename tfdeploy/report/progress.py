"""The progress of a training, from a task's output and its command. Pure."""

import math
import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from ..agent.record.terminal_text import plain
from ..units import text_of_number, text_of_seconds
from .log_metrics import Reading, is_of_evaluation, reading

LEADERS = ("chief-0", "worker-0", "gpu-worker-0")
"""The first of these that a cluster has is the task that prints most about the training."""

_GOAL = re.compile(
    r"(?<![\w-])--?(?:(?:global|train|training|max|num|n|total|number_of)[_-])*(?:steps|iterations|iters|max[_-]step|num[_-]step)"
    r"[= ]['\"]?(\d[\d_]{0,14})\b"
)
_STEP_AND_GOAL = re.compile(
    r"\b(?:step|iteration|iter)\b\D{0,3}[0-9,]{1,15}\s*(?:/|of)\s*([0-9,]{1,15})(?![\d,])", re.IGNORECASE
)
"""A number with 16 digits or more is not a step, as in `reading`."""

_BLOCKS = "▁▂▃▄▅▆▇█"
_RATE_SECONDS = 30.0
"""The period over which the speed is measured."""

_MAX_STEPS = 4096
"""So many steps are stored for it: the speed of a program that prints more is measured over a shorter period."""

_LOSSES = ("loss", "cost", "entropy")
_WIDTH = 16
_LARGEST = 1e300
"""Larger values are not in a curve: their sum would not be finite."""

_MAX_LOSSES = 4096
"""How many values of a loss are stored; every other one is dropped when there are more."""


class Progress(NamedTuple):
    """The progress of one task's training at one moment."""

    step: float | None = None
    goal: float | None = None
    """The last step, if the command or the log has it."""
    loss: float | None = None
    rate: float | None = None
    """Steps per second."""
    losses: Sequence[float] = ()
    stepped_at: float | None = None
    """When the last step was printed, in seconds since 1970."""

    @property
    def part(self) -> float | None:
        """The part that is done, from 0 to 1."""
        if self.step is None or not self.goal:
            return None
        return min(1.0, max(0.0, self.step / self.goal))

    @property
    def left(self) -> float | None:
        """Seconds to the goal at this speed."""
        if self.step is None or not self.goal or not self.rate:
            return None
        return max(0.0, (self.goal - self.step) / self.rate)


def read_progress(lines: Iterable[tuple[float, str]], command: str = "") -> Progress:
    """The progress of a task that has printed these lines, with their times, and runs this command."""
    training = Training(goal(command))
    training.add_lines(lines)
    return training.progress


def leaders_first(hostnames: Iterable[str]) -> list[str]:
    """The tasks that print most about the training, then the others."""
    names = list(hostnames)
    return [*(name for name in LEADERS if name in names), *(name for name in names if name not in LEADERS)]


def goal(command: str) -> float | None:
    """The last step in a command, such as 2000 for `--train_steps=2000`; None if it has none."""
    match = _GOAL.search(command)
    return float(match[1].replace("_", "")) if match else None


@dataclass
class Training:
    """What the lines of one task say so far. Each line is read once."""

    goal: float | None = None
    _steps: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_MAX_STEPS))
    _losses: list[float] = field(default_factory=list)
    _stride: int = 1
    _count: int = 0
    _last: float | None = None
    _rank: int = 0
    """How likely the series of losses is that of the training, as in `_loss`. A better one replaces it."""
    _series: str = ""
    """The name of the loss of this series."""
    _in_epoch: bool | None = None
    """Whether an epoch of Keras has begun and not ended: what follows is of an evaluation. None before the first one."""

    def add_lines(self, lines: Iterable[tuple[float, str]]) -> None:
        """Read further lines, with their times."""
        for at, text in lines:
            read = reading(text)
            step_and_goal = _STEP_AND_GOAL.search(plain(text))
            if step_and_goal:
                self.goal = float(step_and_goal[1].replace(",", "") or 0) or self.goal
            if read.step is not None:
                self._add_step(at, read.step)
            is_evaluation = self._in_epoch is False and read.done is not None and read.epoch is None
            if read.epoch is not None:
                self._in_epoch = True
            if read.done == 1 and self._in_epoch:
                self._in_epoch = False
            if not is_evaluation:
                self._choose_loss(read)

    def _choose_loss(self, read: Reading) -> None:
        """Add the line's value of the series. Another loss, such as that of an evaluation, never continues it."""
        rank, name = _loss(read)
        if rank > self._rank:
            self._rank, self._series = rank, name
            self._losses, self._stride, self._count, self._last = [], 1, 0, None
        if rank and (rank, name) == (self._rank, self._series):
            self._add_loss(read.values[name])

    def _add_step(self, at: float, step: float) -> None:
        if self._steps and step < self._steps[-1][1]:
            self._steps.clear()  # the training began again at an earlier step
        if self._steps and at == self._steps[-1][0]:
            self._steps.pop()  # lines that arrive at once were printed before, by a program that buffers its output
        self._steps.append((at, step))
        while len(self._steps) > 2 and self._steps[0][0] < at - _RATE_SECONDS:
            self._steps.popleft()

    def _add_loss(self, loss: float) -> None:
        self._last = loss
        self._count += 1
        if math.isfinite(loss) and self._count % self._stride == 0:
            self._losses.append(loss)
            if len(self._losses) > _MAX_LOSSES:
                self._losses, self._stride = self._losses[::2], self._stride * 2

    @property
    def progress(self) -> Progress:
        """The current progress."""
        step = self._steps[-1][1] if self._steps else None
        at = self._steps[-1][0] if self._steps else None
        return Progress(step, self.goal, self._last, self._rate(), tuple(self._losses), at)

    def _rate(self) -> float | None:
        if len(self._steps) < 2:
            return None
        (begin, first), (end, last) = self._steps[0], self._steps[-1]
        return (last - first) / (end - begin) if end > begin and last > first else None


def _loss(read: Reading) -> tuple[int, str]:
    """The loss of a line that is most likely the training's, with its rank: `loss` before others, those of evaluations last; and
    one at a step or epoch before one without. (0, "") if the line has none."""
    has_place = read.step is not None or read.epoch is not None or read.done is not None
    names = [name for name in read.values if name.endswith(_LOSSES)]
    ranks = [(2 * (1 + (not is_of_evaluation(name)) + (name == "loss")) + has_place, name) for name in names]
    return max(ranks, key=itemgetter(0), default=(0, ""))


def sparkline(values: Sequence[float]) -> str:
    """Values as at most 16 blocks in a row; each block is the mean of the values in its place."""
    numbers = [value for value in values if abs(value) <= _LARGEST]
    if not numbers:
        return ""
    count = min(_WIDTH, len(numbers))
    bounds = [round(place * len(numbers) / count) for place in range(count + 1)]
    means = [sum(numbers[begin:end]) / (end - begin) for begin, end in pairwise(bounds) if end > begin]
    low, span = min(means), max(means) - min(means)
    return "".join(_BLOCKS[round((mean - low) / span * (len(_BLOCKS) - 1)) if span else 0] for mean in means)


def progress_text(progress: Progress) -> str:
    """The progress of a running task, the most important first: `1200/2000  20s left  41.0 steps/s  loss 0.31 ▇▅▃▂▁`."""
    parts = (step_text(progress), left_text(progress), rate_text(progress), loss_text(progress))
    return "  ".join(filter(None, parts))


def step_text(progress: Progress) -> str:
    """`1200/2000`, or `step 1200` if the last one is not known; empty before the first step."""
    if progress.step is None:
        return ""
    step = text_of_number(min(progress.step, progress.goal or progress.step))
    return f"{step}/{text_of_number(progress.goal)}" if progress.goal else f"step {step}"


def rate_text(progress: Progress) -> str:
    """`41.0 steps/s`; empty if it is not known."""
    return "" if progress.rate is None else f"{progress.rate:.1f} steps/s"


def left_text(progress: Progress) -> str:
    """`20s left`; empty at the end, and if it is not known."""
    return f"{text_of_seconds(progress.left)} left" if progress.left else ""


def loss_text(progress: Progress) -> str:
    """The last loss and its curve: `loss 0.31 ▇▅▃▂▁`; empty if there is none."""
    if progress.loss is None:
        return ""
    return f"loss {progress.loss:.4g} {sparkline(progress.losses)}".rstrip()
