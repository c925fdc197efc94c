"""A row for each measure, judged."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, sqrt
from statistics import NormalDist, median

INTERVAL_PAIRS = 30
"""With so many pairs the interval of the median is shown, and judged."""


@dataclass(frozen=True)
class Row:
    """One measure, its values and its target."""

    measure: str
    ours: str
    peer: str
    values: Sequence[float]
    """Ratios of pairs, or measurements where there is no peer."""
    target: float | None
    """None where the number is only published."""
    at_least: bool = False
    unit: str = ""
    pairs: int = 0
    """How many pairs of measurements the values are from; 0 where there is no peer."""

    @property
    def judged(self) -> float:
        """The median of the ratios, or the end of its interval that is nearer to the target; the worst value without a peer."""
        if not self.pairs:
            return min(self.values) if self.at_least else max(self.values)
        return self.interval[self.at_least] if self.interval else median(self.values)

    @property
    def met(self) -> bool:
        """Whether the target was reached."""
        return self._reaches(self.judged)

    @property
    def is_undecided(self) -> bool:
        """Whether the interval of the median reaches the target, and the median does not."""
        return self.interval is not None and self.met and not self._reaches(median(self.values))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the median, by the ranks of the values; None where there are too few pairs."""
        if self.pairs < INTERVAL_PAIRS:
            return None
        ordered, count = sorted(self.values), len(self.values)
        half = NormalDist().inv_cdf(0.975) * sqrt(count) / 2
        rank = floor(count / 2 - half)
        return ordered[rank - 1], ordered[-rank]

    def _reaches(self, value: float) -> bool:
        if self.target is None:
            return True
        return value >= self.target if self.at_least else value <= self.target

    def cells(self) -> tuple[str, ...]:
        """Measure, ours, peer, median with its range, and target, as the page shows them."""
        extent = f" ({number(min(self.values))} to {number(max(self.values))})" if len(self.values) > 1 else ""
        count = f"{self.pairs} pairs" if self.pairs else str(len(self.values))
        interval = f", 95 %: {' to '.join(map(number, self.interval))}" if self.interval else ""
        spread = f"{number(median(self.values))}{extent}{self.unit}, {count}{interval}"
        return self.measure, self.ours, self.peer, spread, self._target()

    def _target(self) -> str:
        if self.target is None:
            return "none"
        result = "undecided" if self.is_undecided else "met" if self.met else "**missed**"
        return f"{'≥' if self.at_least else '≤'} {self.target:g}{self.unit}, {result}"


def ratio(
    measure: str,
    ours: Sequence[float],
    peer: Sequence[float],
    target: float | None,
    unit: str = " s",
    at_least: bool = False,
) -> Row:
    """A row for pairs of measurements."""
    ratios = [mine / other for mine, other in zip(ours, peer, strict=True)]
    shown, other = (f"{number(median(values))}{unit}" for values in (ours, peer))
    return Row(measure, shown, other, ratios, target, at_least, pairs=len(ratios))


def limit(measure: str, values: Sequence[float], target: float, unit: str) -> Row:
    """A row without a peer: the worst measurement is judged."""
    return Row(measure, f"{number(median(values))}{unit}", "none", values, target, unit=unit)


def number(value: float) -> str:
    """A number with three digits."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
