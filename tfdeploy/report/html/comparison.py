"""A page about two runs: their curves over each other, and what differs as tables. Pure."""

from collections.abc import Mapping, Sequence
from itertools import islice

from ...units import counted, moment
from ..log_metrics import Curve
from ..run_diff import CODE_IS_MISSING, FileChange, RunDiff, compared, file_text
from ..tables import Table
from .chart import drawable, gallery, leader
from .document import laid_out, table, whole_page
from .markup import Html, element, joined

MAX_CODE_LINES = 5000
"""How many lines of the code's diff are on the page."""

Curves = Mapping[str, Curve]
"""Quantity to its curve in one run; none where its record is gone."""


def comparison_page(difference: RunDiff, older: Curves, newer: Curves, now: float) -> str:
    """The document: it needs no network, and has no script."""
    first, second = difference.older, difference.newer
    title = f"{second.cluster}: {first.spec.id} and {second.spec.id}"
    sections = [
        ("runs", "Both runs", _table("Both runs", compared(difference.older, difference.newer, now))),
        ("changes", "Changed", _changes(difference)),
        ("curves", "Curves", joined(gallery(overlaid(older, newer)), _missing(difference))),
        ("code", "Code", _code(difference.code)),
    ]
    header = element("header", element("h1", title), id="head", data_title=title)
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


def _missing(difference: RunDiff) -> Html:
    """Which runs have no curve because their record is gone."""
    names = [run.spec.id for run in (difference.older, difference.newer) if not run.folder]
    return joined(*(element("p", f"The record of {name} is gone, and its curves with it.") for name in names))


def _code(changes: Sequence[FileChange] | None) -> Html:
    if changes is None:
        return element("p", CODE_IS_MISSING)
    lines = [(change.path, line) for change in changes for line in file_text(change).split("\n")]
    texts: dict[str, list[str]] = {}
    for path, line in islice(lines, MAX_CODE_LINES):
        texts.setdefault(path, []).append(line)
    left = len(lines) - MAX_CODE_LINES
    rest = f"{counted(left, 'further line')} of the diff: `tfdeploy diff` prints them."
    return joined(*(_file(path, text) for path, text in texts.items()), element("p", rest) if left > 0 else "")


def _file(path: str, lines: Sequence[str]) -> Html:
    entries = [element("span", element("span", line, class_="text"), class_="entry") for line in lines]
    shown = element("pre", *entries, tabindex="0", role="region", aria_label=path)
    return element("details", element("summary", element("b", path)), shown, class_="log", open=True)
