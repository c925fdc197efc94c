"""Numbers become places on a chart, and the words beside its axes. Pure."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MOST_POINTS = 400
"""More points of one series than this say nothing more on a screen."""

_STEEP = 50
"""How far above the middle the highest value lies that makes the axis logarithmic."""

_CLOCK = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800)


@dataclass(frozen=True)
class Axis:
    """A range with its ticks; `place` goes from 0 at the low end to 1 at the high end."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Where a value stands."""
        low, high, at = (
            (_log(number) for number in (self.low, self.high, value))
            if self.logarithmic
            else (
                self.low,
                self.high,
                value,
            )
        )
        return min(1.0, max(0.0, (at - low) / (high - low))) if high > low else 0.5


def _log(value: float) -> float:
    return math.log10(value) if value > 0 else -300.0


def values_axis(values: Iterable[float]) -> Axis:
    """The vertical axis: it ends at ticks, and is logarithmic for what falls far and stays above zero."""
    known = [value for value in values if math.isfinite(value) and abs(value) < 1e100]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if low > 0 and high > _STEEP * statistics.median(known):
        return _decades(low, high)
    if low == high:
        low, high = low - (abs(low) * 0.5 or 1), high + (abs(high) * 0.5 or 1)
    if 0 < low < 0.4 * high:
        low = 0.0
    step = _nice((high - low) / 4)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [count * step for count in range(first, last + 1)]
    return Axis(ticks[0], ticks[-1], tuple((tick, number(tick, step)) for tick in ticks))


def _decades(low: float, high: float) -> Axis:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = max(1, math.ceil((last - first) / 5))
    ticks = [10.0**power for power in range(first, last + 1, every)]
    return Axis(
        10.0**first, max(10.0**last, ticks[-1]), tuple((tick, number(tick)) for tick in ticks), logarithmic=True
    )


def steps_axis(values: Sequence[float]) -> Axis:
    """The horizontal axis of steps or epochs: as far as there are values."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if 0 <= low < 0.25 * high:
        low = 0.0
    if low == high:
        low, high = low - 1, high + 1
    step = _nice((high - low) / 4)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return Axis(low, high, tuple((count * step, number(count * step, step)) for count in range(first, last + 1)))


def time_axis(seconds: float, most: int = 5) -> Axis:
    """From 0 to so many seconds, with ticks that clocks have."""
    span = max(seconds, 1e-3)
    day = _CLOCK[-3]
    step = next((step for step in _CLOCK if span / step <= most), 0) or _nice(span / most / day) * day
    if span < 1:
        step = _nice(span / most)
    ticks = [count * step for count in range(math.floor(span / step + 1e-9) + 1)]
    return Axis(0.0, span, tuple((tick, duration(tick)) for tick in ticks))


def _nice(step: float) -> float:
    """1, 2, 2.5 or 5 with as many zeros as it takes, not below `step`."""
    if step <= 0 or not math.isfinite(step):
        return 1.0
    power = 10.0 ** math.floor(math.log10(step))
    return next(part * power for part in (1, 2, 2.5, 5, 10) if part * power >= step * (1 - 1e-9))


def number(value: float, step: float | None = None) -> str:
    """A number for people: `2,000`, `0.0523`, `1.2e-07`; with a step between ticks, as many digits as tell them apart."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "∞" if value > 0 else "-∞"
    size = abs(value)
    if size and not 1e-4 <= size < 1e9:
        return f"{value:.3g}"
    if step is not None:
        return f"{value:,.{_digits(step)}f}".replace("-0", "-0") if value else "0"
    return f"{value:,.0f}" if value == round(value) or size >= 1e4 else f"{value:,.4g}"


def _digits(step: float) -> int:
    return next((digits for digits in range(9) if abs(round(step, digits) - step) < 1e-9 * max(1.0, step)), 9)


def duration(seconds: float) -> str:
    """A span of time: `0 s`, `0.5 s`, `42 s`, `1 min 30 s`, `2 h 5 min`, `3 d`."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    parts = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s")]
    shown = [part for part in parts if part[0]]
    kept = [part for part in parts[parts.index(shown[0]) : parts.index(shown[0]) + 2] if part[0]]
    return " ".join(f"{count} {unit}" for count, unit in kept)


def thinned(points: Sequence[tuple[float, float]], most: int = MOST_POINTS) -> list[tuple[float, float]]:
    """At most so many points that look the same: of each stretch the lowest and the highest, in their order, and both ends."""
    if len(points) <= most:
        return list(points)
    kept = {0, len(points) - 1}
    stretches = max(1, (most - 2) // 2)
    for stretch in range(stretches):
        begin, end = len(points) * stretch // stretches, len(points) * (stretch + 1) // stretches
        finite = [place for place in range(begin, end) if math.isfinite(points[place][1])] or [begin]
        kept |= {min(finite, key=lambda place: points[place][1]), max(finite, key=lambda place: points[place][1])}
    return [points[place] for place in sorted(kept)]
