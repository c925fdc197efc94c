"""Curves from the output of training programs: which quantity, at which step. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ..agent.record.reading import reading

STEP, EPOCH, TIME = "step", "epoch", "time"
"""The x axes that a curve may have."""

Points = list[tuple[float, float]]

_reading = lru_cache(maxsize=1 << 17)(reading)
"""A live page reads the same lines repeatedly."""


@dataclass(frozen=True)
class Curve:
    """One quantity of all tasks. If a task began again, its points go back to an earlier step."""

    by: str
    series: dict[str, Points] = field(default_factory=dict)


def curves(lines: Mapping[str, Sequence[tuple[float, str]]]) -> dict[str, Curve]:
    """Each quantity's curve, from lines with their times.

    The x axis of a quantity is that of most of its points: step, epoch or time (in seconds since the first line). The other points
    are left out, such as a final loss that is printed without a step.
    """
    begin = min((line[0] for printed in lines.values() for line in printed[:1]), default=0.0)
    points = [(hostname, *point) for hostname, printed in lines.items() for point in _points(printed, begin)]
    count = Counter((quantity, by) for _, quantity, by, _, _ in points)
    axes: dict[str, str] = {}
    for (quantity, by), number in sorted(count.items(), key=lambda item: (STEP, EPOCH, TIME).index(item[0][1])):
        if quantity not in axes or number > count[quantity, axes[quantity]]:
            axes[quantity] = by
    result = {quantity: Curve(by) for quantity, by in axes.items()}
    for hostname, quantity, by, x, y in points:
        if by == axes[quantity]:
            result[quantity].series.setdefault(hostname, []).append((x, y))
    return dict(sorted(result.items(), key=lambda item: _order(item[0])))


def _order(quantity: str) -> tuple[int, str]:
    """Loss first, then accuracy, then the rest."""
    rank = next((place for place, word in enumerate(("loss", "accuracy")) if quantity.endswith(word)), 2)
    return rank, quantity


def _points(printed: Sequence[tuple[float, str]], begin: float) -> Iterator[tuple[str, str, float, float]]:
    """Quantity, x axis, and the two values."""
    epoch: float | None = None
    for at, text in printed:
        read = _reading(text)
        if read.epoch is not None:
            epoch = read.epoch
        if read.step is not None:
            by, x = STEP, read.step
        elif read.epoch is not None:
            by, x = EPOCH, read.epoch
        elif read.done is not None and epoch is not None:
            by, x = EPOCH, epoch - 1 + read.done
        else:
            by, x = TIME, at - begin
        for quantity, value in read.values.items():
            yield quantity, by, x, value
