"""How far a training is, from what a task prints and from its command. Pure."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from .page.curves import reading

_GOAL = re.compile(
    r"--?(?:(?:global|train|training|max|num|n|total|number_of)[_-])*(?:steps|iterations|iters|max[_-]step|num[_-]step)"
    r"[= ]['\"]?(\d[\d_]*)\b"
)
_TOLD = re.compile(r"\b(?:step|iteration|iter)\b\D{0,3}([\d,]+)\s*(?:/|of)\s*([\d,]+)", re.IGNORECASE)
_BLOCKS = "▁▂▃▄▅▆▇█"
_RATE_SECONDS = 30.0
"""Over how long a time the speed is measured."""

_WIDTH = 32
_KEPT = 4096
"""How many values of a loss are remembered; of more, every other one."""


@dataclass(frozen=True)
class Progress:
    """One task's training at a moment."""

    step: float | None = None
    goal: float | None = None
    """The last step, where command or log tells it."""
    loss: float | None = None
    rate: float | None = None
    """Steps per second."""
    losses: Sequence[float] = ()

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


def goal(command: str) -> float | None:
    """The last step that a command asks for: `--train_steps=2000`; None where it does not say."""
    found = _GOAL.search(command)
    return float(found[1].replace("_", "")) if found else None


@dataclass
class Training:
    """What is remembered of one task's lines, so that each is read once."""

    goal: float | None = None
    _steps: list[tuple[float, float]] = field(default_factory=list)
    _losses: list[float] = field(default_factory=list)
    _stride: int = 1
    _count: int = 0
    _last: float | None = None

    def take(self, lines: Iterable[tuple[float, str]]) -> None:
        """Read on: lines with the time at which each came."""
        for at, text in lines:
            read = reading(text)
            told = _TOLD.search(text)
            if told:
                self.goal = float(told[2].replace(",", "") or 0) or self.goal
            if read.step is not None:
                self._step(at, read.step)
            loss = _loss(read.values)
            if loss is not None:
                self._lose(loss)

    def _step(self, at: float, step: float) -> None:
        if self._steps and step < self._steps[-1][1]:
            self._steps.clear()  # it has begun anew
        self._steps.append((at, step))
        while len(self._steps) > 2 and self._steps[0][0] < at - _RATE_SECONDS:
            self._steps.pop(0)

    def _lose(self, loss: float) -> None:
        self._last = loss
        self._count += 1
        if math.isfinite(loss) and self._count % self._stride == 0:
            self._losses.append(loss)
            if len(self._losses) > _KEPT:
                self._losses, self._stride = self._losses[::2], self._stride * 2

    @property
    def progress(self) -> Progress:
        """How far it is."""
        step = self._steps[-1][1] if self._steps else None
        return Progress(step, self.goal, self._last, self._rate(), tuple(self._losses))

    def _rate(self) -> float | None:
        if len(self._steps) < 2:
            return None
        (begin, first), (end, last) = self._steps[0], self._steps[-1]
        return (last - first) / (end - begin) if end > begin and last > first else None


def _loss(values: Mapping[str, float]) -> float | None:
    """The loss that is trained on; else another one, such as that of the validation."""
    names = [name for name in values if name.endswith(("loss", "cost", "entropy"))]
    return values["loss"] if "loss" in values else values[names[0]] if names else None


def sparkline(values: Sequence[float], width: int = _WIDTH) -> str:
    """Values as a row of blocks, at most so many: each the mean of those that it stands for."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ""
    count = min(width, len(finite))
    bounds = [round(place * len(finite) / count) for place in range(count + 1)]
    means = [sum(finite[begin:end]) / (end - begin) for begin, end in pairwise(bounds) if end > begin]
    low, span = min(means), max(means) - min(means)
    return "".join(_BLOCKS[round((mean - low) / span * (len(_BLOCKS) - 1)) if span else 0] for mean in means)
