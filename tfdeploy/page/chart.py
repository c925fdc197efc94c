"""A quantity's curves as a picture and in words. Pure.

Places are percentages and texts have their own size, so that a picture is as wide as there is room; only the lines are
stretched, and keep their strength.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from .axes import Axis, duration, number, steps_axis, thinned, time_axis, values_axis
from .curves import TIME, Curve, Points
from .markup import Html, element, joined

COLOURS = 8
"""How many colours the style has; series beyond them are dashed in the same ones."""

_STRETCHED = 1000


def drawn(quantity: str, curve: Curve, colours: Mapping[str, int]) -> Html:
    """A figure: a title, a picture, and the values in a table, which is the legend."""
    known = {name: [point for point in points if math.isfinite(point[1])] for name, points in curve.series.items()}
    across = _across(curve)
    up = values_axis(y for points in known.values() for _, y in points)
    scale = ", logarithmic" if up.logarithmic else ""
    title = element("h3", quantity[:1].upper() + quantity[1:], element("small", f" by {curve.by}{scale}"))
    picture = element(
        "svg",
        element("title", f"{quantity} by {curve.by}: {_in_words(curve)}"),
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


def _across(curve: Curve) -> Axis:
    places = [x for points in curve.series.values() for x, _ in points]
    return time_axis(max(places, default=0.0)) if curve.by == TIME else steps_axis(places)


def place_words(by: str, x: float) -> str:
    """A place on the horizontal axis in words: `step 1,200`, `epoch 3`, `1 min 30 s`."""
    return duration(x) if by == TIME else f"{by} {number(x)}"


def _in_words(curve: Curve) -> str:
    told = []
    for name, points in curve.series.items():
        (x, first), (last_x, last) = points[0], points[-1]
        told.append(
            f"{name} from {number(first)} at {place_words(curve.by, x)} to {number(last)} at {place_words(curve.by, last_x)}"
        )
    return "; ".join(told)


def percent(share: float) -> str:
    """A share of the width or the height."""
    return f"{share * 100:.2f}%"


def _grid(across: Axis, up: Axis) -> Iterator[Html]:
    for tick, words in up.ticks:
        at = percent(1 - up.place(tick))
        yield element("line", x1="0", x2="100%", y1=at, y2=at, class_="grid")
        yield element("text", words, x="-8", y=at, dy="0.32em", class_="up")
    yield from bottom(across)
    yield element("line", x1="0", x2="100%", y1="100%", y2="100%", class_="axis")


def bottom(across: Axis) -> Iterator[Html]:
    """The words below a picture, with a tick above each."""
    for tick, words in across.ticks:
        at = percent(across.place(tick))
        edge = " first" if across.place(tick) < 0.02 else " last" if across.place(tick) > 0.95 else ""
        yield element("line", x1=at, x2=at, y1="100%", y2="100%", class_="tick")
        yield element("text", words, x=at, y="100%", dy="1.6em", class_="across" + edge)


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
    """The pen goes up where a task begins anew and where a value is not a number."""
    before: float | None = None
    for x, y in points:
        if not math.isfinite(y):
            before = None
            continue
        pen = "M" if before is None or x < before else "L"
        yield f"{pen}{across.place(x) * _STRETCHED:.1f} {(1 - up.place(y)) * _STRETCHED:.1f}"
        before = x


def _marks(curve: Curve, across: Axis, up: Axis, colours: Mapping[str, int]) -> Iterator[Html]:
    """A dot at the last value of each task, and a cross where the first one is that is not a number."""
    for name, points in curve.series.items():
        lost = next((x for x, y in points if not math.isfinite(y)), None)
        if lost is not None:
            title = element("title", f"{name}: not a number at {place_words(curve.by, lost)}")
            at = percent(across.place(lost))
            yield element("text", "\u00d7", title, x=at, y="0", dy="0.4em", class_=f"lost {style(colours[name])}")
        x, y = points[-1]
        if math.isfinite(y):
            title = element("title", f"{name}: {number(y)} at {place_words(curve.by, x)}")
            dot = {"cx": percent(across.place(x)), "cy": percent(1 - up.place(y)), "r": "3.5"}
            yield element("circle", title, **dot, class_=f"dot {style(colours[name])}")


def _legend(quantity: str, curve: Curve, colours: Mapping[str, int]) -> Html:
    best = "highest" if any(word in quantity for word in ("accuracy", "precision", "recall", "auc")) else "lowest"
    rows = [
        element(
            "tr",
            element("th", element("i", class_=f"swatch {style(colours[name])}", aria_hidden="true"), name, scope="row"),
            *(element("td", cell) for cell in _cells(curve.by, points, best)),
        )
        for name, points in curve.series.items()
    ]
    head = element("tr", *(element("th", word, scope="col") for word in ("task", "last", "at", best, "at")))
    caption = element("caption", f"{quantity}: last and {best} value of each task", class_="unseen")
    table = element("table", caption, element("thead", head), element("tbody", *rows))
    return element("div", table, class_="legend box", tabindex="0", role="region", aria_label=f"values of {quantity}")


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


def gallery(found: Mapping[str, Curve]) -> Html:
    """All that can be drawn: quantities of which a task has told at least two values."""
    names = dict.fromkeys(name for curve in found.values() for name in sorted(curve.series, key=_natural))
    colours = {name: place for place, name in enumerate(names)}
    shown = {quantity: _sorted(curve) for quantity, curve in found.items() if drawable(curve)}
    return joined(*(drawn(quantity, curve, colours) for quantity, curve in shown.items()))


def drawable(curve: Curve) -> bool:
    """Whether there is a line to draw."""
    return any(len({x for x, _ in points}) > 1 for points in curve.series.values())


def _sorted(curve: Curve) -> Curve:
    return Curve(curve.by, {name: curve.series[name] for name in sorted(curve.series, key=_natural)})


def _natural(hostname: str) -> tuple[str, int]:
    job, _, index = hostname.rpartition("-")
    return (job, int(index)) if index.isdecimal() and len(index) < 10 else (hostname, 0)
