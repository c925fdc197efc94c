"""The progress of a training, from what one task prints. Pure."""

import math
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import List, Optional, Tuple

from ..model.json_data import JsonData
from .reading import Reading, is_of_evaluation

_RATE_SECONDS, _SPACING = 30.0, 0.5
"""The period over which the speed is measured, and the least distance of the steps that are stored for it."""

_LOSSES = ("loss", "cost", "entropy")
_MAX_LOSSES = 64
"""How many values of a loss are stored; every other one is dropped when there are more."""

_LEAST_TIMES, _MOST_TIMES = 5, 20
"""The usual interval is known after so many lines with steps; it is that of the last ones."""


@dataclass
class Progress(JsonData):
    """The progress of one task's training at one moment."""

    step: Optional[float] = None
    goal: Optional[float] = None
    """The last step, if the command or the log has it."""
    loss: Optional[float] = None
    rate: Optional[float] = None
    """Steps per second, in the present attempt."""
    losses: List[float] = field(default_factory=list)
    stepped_at: Optional[float] = None
    """When the last step was printed, in seconds since 1970."""
    first: Optional[float] = None
    """The first step of the present attempt."""
    before: Optional[float] = None
    """The last step of the attempts before."""
    lines: int = 0
    """How many lines have reported a step or an epoch."""
    usual: Optional[float] = None
    """The usual seconds between two of these lines; None where it is not known."""

    @property
    def part(self) -> Optional[float]:
        """The part that is done, from 0 to 1."""
        if self.step is None or not self.goal:
            return None
        return min(1.0, max(0.0, self.step / self.goal))

    @property
    def left(self) -> Optional[float]:
        """Seconds to the goal at this speed."""
        if self.step is None or not self.goal or not self.rate:
            return None
        return max(0.0, (self.goal - self.step) / self.rate)


@dataclass
class Training(JsonData):
    """What the lines of one task say so far. Each line is read once."""

    found: Progress = field(default_factory=Progress)
    """Without what is computed of the other fields."""
    attempt: int = 0
    steps: List[List[float]] = field(default_factory=list)
    """Times and steps of the present attempt, those by which the speed is measured."""
    times: List[float] = field(default_factory=list)
    """When steps or epochs were logged, by the launcher's clock. Lines that were printed at once count once."""
    stride: int = 1
    count: int = 0
    rank: int = 0
    """How likely the series of losses is that of the training, as in `_loss`. A better one replaces it."""
    series: str = ""
    """The name of the loss of this series."""
    in_epoch: Optional[bool] = None
    """Whether an epoch of Keras has begun and not ended: what follows is of an evaluation. None before the first one."""

    def add(self, attempt: int, at: float, read: Reading) -> None:
        """Add what one line reports, with its time."""
        if attempt != self.attempt:
            self.attempt, self.found.before, self.found.first = attempt, self.found.step, None
            self.steps, self.times, self.in_epoch = [], [], None
        self.found.goal = read.goal or self.found.goal
        if read.is_progress:
            self.found.lines += 1
            if self.times[-1:] != [at]:
                self.times = [*self.times, at][-_MOST_TIMES:]
        if read.step is not None:
            self._add_step(at, read.step)
        is_evaluation = self.in_epoch is False and read.done is not None and read.epoch is None
        if read.epoch is not None:
            self.in_epoch = True
        if read.done == 1 and self.in_epoch:
            self.in_epoch = False
        if not is_evaluation:
            self._choose_loss(read)

    def _choose_loss(self, read: Reading) -> None:
        """Add the line's value of the series. Another loss, such as that of an evaluation, never continues it."""
        rank, name = _loss(read)
        if rank > self.rank:
            self.rank, self.series = rank, name
            self.found.losses, self.found.loss, self.stride, self.count = [], None, 1, 0
        if rank and (rank, name) == (self.rank, self.series):
            self._add_loss(read.values[name])

    def _add_step(self, at: float, step: float) -> None:
        self.found.step, self.found.stepped_at = step, at
        self.found.first = step if self.found.first is None else self.found.first
        steps = self.steps
        if steps and step < steps[-1][1]:
            steps.clear()  # the training began again at an earlier step
        # Lines that arrive at once were printed before, by a program that buffers its output.
        if steps and (at == steps[-1][0] or (len(steps) > 1 and at < steps[-2][0] + _SPACING)):
            steps.pop()
        steps.append([at, step])
        while len(steps) > 2 and steps[0][0] < at - _RATE_SECONDS:
            del steps[0]

    def _add_loss(self, loss: float) -> None:
        self.found.loss = loss
        self.count += 1
        if math.isfinite(loss) and self.count % self.stride == 0:
            self.found.losses.append(loss)
            if len(self.found.losses) > _MAX_LOSSES:
                self.found.losses, self.stride = self.found.losses[::2], self.stride * 2

    @property
    def progress(self) -> Progress:
        """The current progress."""
        return replace(self.found, losses=list(self.found.losses), rate=self._rate(), usual=self._usual())

    def _rate(self) -> Optional[float]:
        if len(self.steps) < 2:
            return None
        (begin, first), (end, last) = self.steps[0], self.steps[-1]
        return (last - first) / (end - begin) if end > begin and last > first else None

    def _usual(self) -> Optional[float]:
        times = self.times
        seconds = sorted(b - a for a, b in zip(times, times[1:]))
        return seconds[len(seconds) // 2] if len(times) >= _LEAST_TIMES else None


def _loss(read: Reading) -> Tuple[int, str]:
    """The loss of a line that is most likely the training's, with its rank: `loss` before others, those of evaluations last; and
    one at a step or epoch before one without. (0, "") if the line has none."""
    has_place = read.step is not None or read.epoch is not None or read.done is not None
    names = [name for name in read.values if name.endswith(_LOSSES)]
    ranks = [(2 * (1 + (not is_of_evaluation(name)) + (name == "loss")) + has_place, name) for name in names]
    return max(ranks, key=itemgetter(0), default=(0, ""))
