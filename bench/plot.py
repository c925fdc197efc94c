"""The curves of a run as an SVG: values by number of tasks, both axes logarithmic, so that linear growth is a diagonal. Pure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from .table import Curve, Row

_WIDTH, _HEIGHT = 300.0, 240.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 116.0, 36.0, 48.0
"""The space around a panel: labels of values, names of curves, title, labels of numbers of tasks."""

_LINE = 15.0
_DASHES = ("", "6 3", "2 3", "8 3 2 3")
_COLOURS = (("#0b5fc0", "#6cb0ff"), ("#b04a00", "#ffa657"), ("#1a7f37", "#56d364"), ("#8250df", "#d2a8ff"))
"""Of each curve, on a light page and on a dark one."""

_STYLE = """\
text{font:12px system-ui,sans-serif;fill:#1f2328}
.paper{fill:#fff}
.grid{stroke:#d0d7de}
.linear{stroke:#afb8c1;stroke-dasharray:1 3}
.curve{fill:none;stroke-width:2}
"""
_DARK_STYLE = "text{fill:#e6edf3} .paper{fill:#0d1117} .grid{stroke:#30363d} .linear{stroke:#6e7681}"


@dataclass(frozen=True)
class _Panel:
    """The area of the curves of one quantity. Positions are in pixels, limits are powers of ten."""

    left: float
    x: tuple[int, int]
    y: tuple[int, int]

    def place(self, x: float, y: float) -> tuple[float, float]:
        """The position of a value."""
        across = (math.log10(x) - self.x[0]) / (self.x[1] - self.x[0])
        up = (math.log10(y) - self.y[0]) / (self.y[1] - self.y[0])
        return self.left + across * _WIDTH, _TOP + (1 - up) * _HEIGHT


def picture(rows: Sequence[Row]) -> str:
    """A panel for each quantity; the same rows give the same text."""
    curves = [row.curve for row in rows if row.curve]
    names = list(dict.fromkeys(curve.name for curve in curves))
    groups: dict[str, list[Curve]] = {}
    for curve in curves:
        groups.setdefault(f"{curve.quantity} ({curve.unit})", []).append(curve)
    panels, left = [], _LEFT
    for title, members in groups.items():
        panels += list(_panel(title, members, names, left))
        left += _WIDTH + _RIGHT + _LEFT
    width, height = left - _LEFT, _TOP + _HEIGHT + _BOTTOM
    colours = "".join(f".c{place}{{stroke:{light}}}\n" for place, (light, _) in enumerate(_COLOURS))
    dark = " ".join(f".c{place}{{stroke:{dark}}}" for place, (_, dark) in enumerate(_COLOURS))
    style = f"{_STYLE}{colours}@media (prefers-color-scheme: dark){{{_DARK_STYLE} {dark}}}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">'
    summary = "; ".join(map(_summary, curves))
    paper = '<rect class="paper" width="100%" height="100%"/>'
    return "\n".join(
        [head, f"<title>{escape(summary)}</title>", f"<style>\n{style}\n</style>", paper, *panels, "</svg>\n"]
    )


def _summary(curve: Curve) -> str:
    (few, low), (many, high) = curve.points[0], curve.points[-1]
    return (
        f"{curve.quantity}: {curve.name}: {low:.3g} {curve.unit} with {few:g} tasks, "
        f"{high:.3g} {curve.unit} with {many:g}"
    )


def _panel(title: str, curves: Sequence[Curve], names: Sequence[str], left: float) -> Iterator[str]:
    """The curves of one quantity."""
    xs, ys = ([value[axis] for curve in curves for value in curve.points] for axis in (0, 1))
    panel = _Panel(left, _decades(xs), _decades(ys))
    yield _text(left, _TOP - 14, title, "start")
    yield from _grid(panel)
    ends = []
    for curve in curves:
        place = names.index(curve.name)
        points = [panel.place(x, y) for x, y in curve.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashes = f' stroke-dasharray="{_DASHES[place % len(_DASHES)]}"' if place % len(_DASHES) else ""
        yield f'<polyline class="curve c{place % len(_COLOURS)}"{dashes} points="{path}"/>'
        ends.append((points[-1][1], curve.name))
    yield from _names(left + _WIDTH + 8, sorted(ends))


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around some values."""
    low, high = math.floor(math.log10(min(values)) + 1e-9), math.ceil(math.log10(max(values)) - 1e-9)
    return low, max(high, low + 1)


def _grid(panel: _Panel) -> Iterator[str]:
    """Lines and labels at powers of ten, and the diagonals of linear growth."""
    (x_low, x_high), (y_low, y_high) = panel.x, panel.y
    for power in range(x_low, x_high + 1):
        x, y = panel.place(10.0**power, 10.0**y_low)
        yield _line("grid", x, y, x, _TOP)
        yield _text(x, y + 18, f"{10**power:,}" if power >= 0 else f"{10.0**power:g}", "middle")
    for power in range(y_low, y_high + 1):
        x, y = panel.place(10.0**x_low, 10.0**power)
        yield _line("grid", x, y, x + _WIDTH, y)
        yield _text(x - 8, y + 4, f"{10.0**power:,g}", "end")
    for offset in range(y_low - x_high + 1, y_high - x_low):
        low, high = max(x_low, y_low - offset), min(x_high, y_high - offset)
        yield _line(
            "linear", *panel.place(10.0**low, 10.0 ** (low + offset)), *panel.place(10.0**high, 10.0 ** (high + offset))
        )
    yield _text(panel.left + _WIDTH / 2, _TOP + _HEIGHT + 38, "tasks", "middle")


def _names(x: float, ends: Sequence[tuple[float, str]]) -> Iterator[str]:
    """The name of each curve at its end; those that would overlap are moved down."""
    lowest = -math.inf
    for y, name in ends:
        lowest = max(y + 4, lowest + _LINE)
        yield _text(x, lowest, name, "start")


def _line(kind: str, x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<line class="{kind}" x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
