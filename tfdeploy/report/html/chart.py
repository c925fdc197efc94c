"""The curves of a quantity as SVG, and their values as text. Pure.

Positions are percentages and texts have fixed sizes, so that a picture fills the available width; only the lines are stretched, and
they keep their stroke width.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..log_curves import TIME, Curve, Points
from ..progress import leaders_first
from .markup import Html, box, element, joined, named_row

MOST_POINTS = 400
"""How many points of one series are drawn: a screen cannot show more."""

_STEEP = 50
"""The axis is logarithmic if the highest value is this many times the median."""

_CLOCK = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800)


@dataclass(frozen=True)
class Axis:
    """A range with its ticks."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """The position of a value: 0 at the low end, 1 at the high end."""
        low, high, at = self.low, self.high, value
        if self.logarithmic:
            low, high, at = (math.log10(number) if number > 0 else -300.0 for number in (low, high, at))
        return min(1.0, max(0.0, (at - low) / (high - low))) if high > low else 0.5


def values_axis(values: Iterable[float]) -> Axis:
    """The vertical axis. It ends at ticks, and is logarithmic for positive values that fall far."""
    finite = [value for value in values if math.isfinite(value) and abs(value) < 1e100]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if low > 0 and high > _STEEP * statistics.median(finite):
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
    """The horizontal axis of steps or epochs."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if 0 <= low < 0.25 * high:
        low = 0.0
    if low == high:
        low, high = low - 1, high + 1
    step = _nice((high - low) / 4)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return Axis(low, high, tuple((count * step, number(count * step, step)) for count in range(first, last + 1)))


def time_axis(seconds: float, most: int = 5) -> Axis:
    """The horizontal axis of time, from 0, with ticks at round times."""
    span = max(seconds, 1e-3)
    day = _CLOCK[-3]
    step = next((step for step in _CLOCK if span / step <= most), 0) or _nice(span / most / day) * day
    if span < 1:
        step = _nice(span / most)
    ticks = [count * step for count in range(math.floor(span / step + 1e-9) + 1)]
    return Axis(0.0, span, tuple((tick, duration(tick)) for tick in ticks))


def _nice(step: float) -> float:
    """The smallest of 1, 2, 2.5 and 5 times a power of ten that is not below `step`."""
    if step <= 0 or not math.isfinite(step):
        return 1.0
    power = 10.0 ** math.floor(math.log10(step))
    return next(part * power for part in (1, 2, 2.5, 5, 10) if part * power >= step * (1 - 1e-9))


def number(value: float, step: float | None = None) -> str:
    """A number as text: `2,000`, `0.0523`, `1.2e-07`. Ticks have as many digits as the step between them needs."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "∞" if value > 0 else "-∞"
    size = abs(value)
    if size and not 1e-4 <= size < 1e9:
        return f"{value:.3g}"
    if step is not None:
        return f"{value:,.{_digits(step)}f}" if value else "0"
    return f"{value:,.0f}" if value == round(value) or size >= 1e4 else f"{value:,.4g}"


def _digits(step: float) -> int:
    return next((digits for digits in range(9) if abs(round(step, digits) - step) < 1e-9 * max(1.0, step)), 9)


def duration(seconds: float) -> str:
    """A duration as text: `0 s`, `0.5 s`, `42 s`, `1 min 30 s`, `2 h 5 min`, `3 d`."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    parts = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s")]
    shown = [part for part in parts if part[0]]
    longest = [part for part in parts[parts.index(shown[0]) : parts.index(shown[0]) + 2] if part[0]]
    return " ".join(f"{count} {unit}" for count, unit in longest)


def thinned(points: Sequence[tuple[float, float]], most: int = MOST_POINTS) -> list[tuple[float, float]]:
    """At most so many points with the same shape: the lowest and highest of each section, in their order, and both ends."""
    if len(points) <= most:
        return list(points)
    places = {0, len(points) - 1}
    sections = max(1, (most - 2) // 2)
    for section in range(sections):
        begin, end = len(points) * section // sections, len(points) * (section + 1) // sections
        finite = [place for place in range(begin, end) if math.isfinite(points[place][1])] or [begin]
        places |= {min(finite, key=lambda place: points[place][1]), max(finite, key=lambda place: points[place][1])}
    return [points[place] for place in sorted(places)]


COLOURS = 8
"""How many colours the style sheet has. Further series have the same colours, and are dashed."""

_STRETCHED = 1000


def figure(quantity: str, curve: Curve, colours: Mapping[str, int]) -> Html:
    """A figure: a title, a picture, and a table of values, which is the legend."""
    finite = {name: [point for point in points if math.isfinite(point[1])] for name, points in curve.series.items()}
    places = [x for points in curve.series.values() for x, _ in points]
    across = time_axis(max(places, default=0.0)) if curve.by == TIME else steps_axis(places)
    up = values_axis(y for points in finite.values() for _, y in points)
    scale = ", logarithmic" if up.logarithmic else ""
    title = element("h3", quantity[:1].upper() + quantity[1:], element("small", f" by {curve.by}{scale}"))
    picture = element(
        "svg",
        element("title", f"{quantity} by {curve.by}: {_summary(curve)}"),
        *_grid(across, up),
        _lines(curve, across, up, colours),
        *_marks(curve, across, up, colours),
        class_="plot",
        role="img",
    )
    return element(
        "figure",
        element("figcaption", title),
        element("div", picture, class_="frame"),
        _legend(quantity, curve, colours),
        class_="curve",
    )


def place_text(by: str, x: float) -> str:
    """A position on the horizontal axis as text: `step 1,200`, `epoch 3`, `1 min 30 s`."""
    return duration(x) if by == TIME else f"{by} {number(x)}"


def _summary(curve: Curve) -> str:
    ends = {name: (points[0], points[-1]) for name, points in curve.series.items()}
    return "; ".join(f"{name} from {_at(curve, *first)} to {_at(curve, *last)}" for name, (first, last) in ends.items())


def _at(curve: Curve, x: float, y: float) -> str:
    return f"{number(y)} at {place_text(curve.by, x)}"


def percent(share: float) -> str:
    """A share of the width or the height."""
    return f"{share * 100:.2f}%"


def _grid(across: Axis, up: Axis) -> Iterator[Html]:
    for tick, label in up.ticks:
        at = percent(1 - up.place(tick))
        yield element("line", x1="0", x2="100%", y1=at, y2=at, class_="grid")
        yield element("text", label, x="-8", y=at, dy="0.32em", class_="up")
    yield from bottom(across)
    yield element("line", x1="0", x2="100%", y1="100%", y2="100%", class_="axis")


def bottom(across: Axis) -> Iterator[Html]:
    """The ticks below a picture, and their labels."""
    for tick, label in across.ticks:
        at = percent(across.place(tick))
        edge = " first" if across.place(tick) < 0.02 else " last" if across.place(tick) > 0.95 else ""
        yield element("line", x1=at, x2=at, y1="100%", y2="100%", class_="tick")
        yield element("text", label, x=at, y="100%", dy="1.6em", class_="across" + edge)


def style(colour: int) -> str:
    """The class names of a series."""
    return f"s{colour % COLOURS}" + (" dashed" if colour >= COLOURS else "")


def _lines(curve: Curve, across: Axis, up: Axis, colours: Mapping[str, int]) -> Html:
    paths = [
        element(
            "path",
            element("title", name),
            d=" ".join(_strokes(thinned(points), across, up)),
            class_=f"line {style(colours[name])}",
        )
        for name, points in curve.series.items()
    ]
    return element(
        "svg",
        *paths,
        viewBox=f"0 0 {_STRETCHED} {_STRETCHED}",
        preserveAspectRatio="none",
        width="100%",
        height="100%",
        class_="stretched",
    )


def _strokes(points: Points, across: Axis, up: Axis) -> Iterator[str]:
    """The path of a series. It is interrupted if a task starts again, and at values that are not numbers."""
    before: float | None = None
    for x, y in points:
        if not math.isfinite(y):
            before = None
            continue
        pen = "M" if before is None or x < before else "L"
        yield f"{pen}{across.place(x) * _STRETCHED:.1f} {(1 - up.place(y)) * _STRETCHED:.1f}"
        before = x


def _marks(curve: Curve, across: Axis, up: Axis, colours: Mapping[str, int]) -> Iterator[Html]:
    """A dot at the last value of each task, and a cross at the first value that is not a number."""
    for name, points in curve.series.items():
        lost = next((x for x, y in points if not math.isfinite(y)), None)
        if lost is not None:
            title = element("title", f"{name}: not a number at {place_text(curve.by, lost)}")
            at = percent(across.place(lost))
            yield element("text", "\u00d7", title, x=at, y="0", dy="0.4em", class_=f"lost {style(colours[name])}")
        x, y = points[-1]
        if math.isfinite(y):
            title = element("title", f"{name}: {_at(curve, x, y)}")
            dot = {"cx": percent(across.place(x)), "cy": percent(1 - up.place(y)), "r": "3.5"}
            yield element("circle", title, **dot, class_=f"dot {style(colours[name])}")


def _legend(quantity: str, curve: Curve, colours: Mapping[str, int]) -> Html:
    best = "highest" if any(word in quantity for word in ("accuracy", "precision", "recall", "auc")) else "lowest"
    rows = [
        named_row(
            joined(element("i", class_=f"swatch {style(colours[name])}", aria_hidden="true"), name),
            *_cells(curve.by, points, best),
        )
        for name, points in curve.series.items()
    ]
    caption = f"{quantity}: last and {best} value of each task"
    return box(caption, ("task", "last", "at", best, "at"), rows, f"values of {quantity}", class_="legend box")


def _cells(by: str, points: Sequence[tuple[float, float]], best: str) -> list[str]:
    finite = [(y, x) for x, y in points if math.isfinite(y)]
    x, last = points[-1]
    shown = [number(last), _bare(by, x)]
    if not finite:
        return [*shown, "", ""]
    value, at = max(finite, key=lambda item: item[0]) if best == "highest" else min(finite)
    return [*shown, number(value), _bare(by, at)]


def _bare(by: str, x: float) -> str:
    return duration(x) if by == TIME else number(x)


def gallery(quantities: Mapping[str, Curve]) -> Html:
    """The figures of all quantities that have at least two values in a task."""
    names = dict.fromkeys(name for curve in quantities.values() for name in sorted(curve.series, key=_natural))
    colours = {name: place for place, name in enumerate(names)}
    shown = {quantity: curve.series for quantity, curve in quantities.items() if drawable(curve)}
    ordered = {
        quantity: {name: series[name] for name in sorted(series, key=_natural)} for quantity, series in shown.items()
    }
    return joined(*(figure(name, Curve(quantities[name].by, series), colours) for name, series in ordered.items()))


def drawable(curve: Curve) -> bool:
    """Whether there are enough points for a line."""
    return any(len({x for x, _ in points}) > 1 for points in curve.series.values())


def leader(curve: Curve) -> str:
    """The task whose values are those of the run: the first leader that has a line, else the task with the most points."""
    names = sorted(curve.series, key=lambda name: -len(curve.series[name]))
    return next(iter(leaders_first(name for name in names if len(curve.series[name]) > 1)), names[0])


def _natural(hostname: str) -> tuple[str, int]:
    job, _, index = hostname.rpartition("-")
    return (job, int(index)) if index.isdecimal() and len(index) < 10 else (hostname, 0)
