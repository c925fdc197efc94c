"""A page about two runs: their curves over each other, and what differs as tables. Pure."""

from collections.abc import Mapping, Sequence

from ...units import moment
from ..log_curves import Curve
from ..run_diff import RunDiff
from ..tables import Table
from .chart import drawable, gallery, leader
from .document import laid_out, table, whole_page
from .markup import Html, element, joined

Curves = Mapping[str, Curve]
"""Quantity to its curve in one run."""


def comparison_page(difference: RunDiff, older: Curves, newer: Curves, now: float) -> str:
    """The document: it needs no network, and has no script."""
    first, second = difference.older, difference.newer
    title = f"{second.cluster}: {first.spec.id} and {second.spec.id}"
    sections = [
        ("runs", "Both runs", _table("Both runs", difference.compared(now))),
        ("changes", "Changed", _changes(difference)),
        ("curves", "Curves", gallery(overlaid(older, newer))),
    ]
    header = element("header", element("h1", title), id="head")
    return whole_page(title, laid_out(header, sections, moment(now)))


def overlaid(older: Curves, newer: Curves) -> dict[str, Curve]:
    """The curves of both runs: in one picture where they have the same horizontal axis. Of each run, it is that of one task."""
    pictures: dict[str, Curve] = {}
    for quantity in dict.fromkeys([*older, *newer]):
        curves = {name: run[quantity] for name, run in (("older", older), ("newer", newer)) if quantity in run}
        drawn = {name: curve for name, curve in curves.items() if drawable(curve)}
        axes = {curve.by for curve in drawn.values()}
        for name, curve in drawn.items():
            hostname = leader(curve)
            title = quantity if len(axes) == 1 else f"{quantity}, {name} run"
            picture = pictures.setdefault(title, Curve(curve.by))
            picture.series[f"{name}: {hostname}"] = curve.series[hostname]
    return pictures


def _table(title: str, rows: Sequence[tuple[str, str, str]]) -> Html:
    columns = ("what", "older", "newer")
    return table(Table(title, columns, [dict(zip(columns, row, strict=True)) for row in rows]))


def _changes(difference: RunDiff) -> Html:
    names = Table("Changed", ("changed",), [{"changed": name} for name in difference.changed or ["nothing"]])
    tables = difference.value_tables().items()
    return joined(table(names), *(joined(element("h3", title), _table(title, rows)) for title, rows in tables if rows))
