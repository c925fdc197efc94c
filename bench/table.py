"""A row for each measure, judged; rows as a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import median

COLUMNS = ("measure", "ours", "peer", "median (min to max)", "target")

INTERVAL_PAIRS = 30
"""With so many pairs the interval of the median is shown, and judged."""

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Row:
    """One measure, its values and its target."""

    measure: str
    ours: str
    peer: str
    values: Sequence[float]
    judged: float
    target: float | None
    """None where the number is only published."""
    at_least: bool = False
    unit: str = ""
    pairs: int = 0
    """How many pairs of measurements the values are from; 0 where there is no peer."""

    @property
    def met(self) -> bool:
        """Whether the target was reached."""
        return self._reaches(self.judged)

    @property
    def is_undecided(self) -> bool:
        """Whether the interval of the median reaches the target, and the median does not."""
        return self.interval is not None and self.met and not self._reaches(median(self.values))

    def _reaches(self, value: float) -> bool:
        if self.target is None:
            return True
        return value >= self.target if self.at_least else value <= self.target

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the median; None where there are too few pairs for one."""
        return interval(sorted(self.values)) if self.pairs >= INTERVAL_PAIRS else None

    def cells(self) -> tuple[str, ...]:
        """The row as the table shows it."""
        extent = f" ({number(min(self.values))} to {number(max(self.values))})" if len(self.values) > 1 else ""
        spread = f"{number(median(self.values))}{extent}{self.unit}"
        of = f"{self.pairs} pairs" if self.pairs > 1 else "1 pair" if self.pairs else str(len(self.values))
        range_of_median = f", 95 %: {' to '.join(map(number, self.interval))}" if self.interval else ""
        shown = (self.measure, self.ours, self.peer, f"{spread}, {of}{range_of_median}")
        if self.target is None:
            return *shown, "none"
        return (
            *shown,
            f"{self.target_text}, {'undecided' if self.is_undecided else 'met' if self.met else '**missed**'}",
        )

    @property
    def target_text(self) -> str:
        """The target with its direction and unit."""
        return "none" if self.target is None else f"{'≥' if self.at_least else '≤'} {self.target:g}{self.unit}"


def ratio(
    measure: str,
    ours: Sequence[float],
    peer: Sequence[float],
    target: float | None,
    unit: str = " s",
    at_least: bool = False,
) -> Row:
    """A row for pairs of measurements: the median of their ratios is judged; with 30 pairs, the end of its interval that is nearer to
    the target."""
    ratios = [mine / other for mine, other in zip(ours, peer, strict=True)]
    shown = [f"{number(median(values))}{unit}" for values in (ours, peer)]
    judged = median(ratios)
    if len(ratios) >= INTERVAL_PAIRS:
        low, high = interval(sorted(ratios))
        judged = high if at_least else low
    return Row(measure, shown[0], shown[1], ratios, judged, target, at_least, pairs=len(ratios))


def limit(measure: str, values: Sequence[float], target: float, unit: str) -> Row:
    """A row without a peer: the worst measurement is judged."""
    return Row(measure, f"{number(median(values))}{unit}", "none", values, max(values), target, unit=unit)


def interval(ordered: Sequence[float]) -> tuple[float, float]:
    """Two of the ordered values that the median lies between with at least the wanted probability, where there are enough."""
    count = len(ordered)
    outside, rank = 2 / 2**count, 0
    while outside + 2 * comb(count, rank + 1) / 2**count <= 1 - _CONFIDENCE:
        rank += 1
        outside += 2 * comb(count, rank) / 2**count
    return ordered[rank], ordered[count - 1 - rank]


def lines(rows: Sequence[Row]) -> list[str]:
    """The table as Markdown."""
    return markdown([COLUMNS, *(row.cells() for row in rows)])


def markdown(cells: Sequence[Sequence[str]]) -> list[str]:
    """A table as Markdown; its columns are the first of these rows."""
    widths = [max(len(line[place]) for line in cells) for place in range(len(cells[0]))]
    padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in cells]
    padded.insert(1, ["-" * width for width in widths])
    return [f"| {' | '.join(line)} |" for line in padded]


def number(value: float) -> str:
    """A number with three digits."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
