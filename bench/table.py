"""A row for each measure, judged; the table of all rows, as text and as a file."""

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

COLUMNS = ("measure", "ours", "peer", "median (min to max)", "target", "")

_PREAMBLE = """\
# Benchmarks

Each row is measured against a peer in the same run, by turns: ours, peer, ours, peer. The median of the pairs' ratios
is judged. Where there is no peer it is a plain limit, which the worst of all measurements must keep.

Made by `make bench`, on {date}: {machine}.
With {software}.

"""


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

    @property
    def met(self) -> bool:
        """Whether the target was reached."""
        if self.target is None:
            return True
        return self.judged >= self.target if self.at_least else self.judged <= self.target

    def cells(self) -> tuple[str, ...]:
        """The row as the table shows it."""
        spread = (
            f"{_number(median(self.values))} ({_number(min(self.values))} to {_number(max(self.values))}){self.unit}"
        )
        sign = "≥" if self.at_least else "≤"
        if self.target is None:
            return self.measure, self.ours, self.peer, spread, "none", ""
        judgement = "met" if self.met else "**missed**"
        return self.measure, self.ours, self.peer, spread, f"{sign} {self.target:g}{self.unit}", judgement


def ratio(
    measure: str,
    ours: Sequence[float],
    peer: Sequence[float],
    target: float | None,
    unit: str = " s",
    at_least: bool = False,
) -> Row:
    """A row for pairs of measurements: the median of their ratios is judged."""
    ratios = [mine / other for mine, other in zip(ours, peer, strict=True)]
    shown = [f"{_number(median(values))}{unit}" for values in (ours, peer)]
    return Row(measure, shown[0], shown[1], ratios, median(ratios), target, at_least)


def limit(measure: str, values: Sequence[float], target: float, unit: str) -> Row:
    """A row without a peer: the worst measurement is judged."""
    return Row(measure, f"{_number(median(values))}{unit}", "none", values, max(values), target, unit=unit)


def lines(rows: Sequence[Row]) -> list[str]:
    """The table as Markdown."""
    return markdown([COLUMNS, *(row.cells() for row in rows)])


def markdown(cells: Sequence[Sequence[str]]) -> list[str]:
    """A table as Markdown; its columns are the first of these rows."""
    widths = [max(len(line[place]) for line in cells) for place in range(len(cells[0]))]
    padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in cells]
    padded.insert(1, ["-" * width for width in widths])
    return [f"| {' | '.join(line)} |" for line in padded]


def write(rows: Sequence[Row], missing: Sequence[str], sections: Sequence[str], target: Path) -> None:
    """Write the page with the table, what is missing in it, and further sections."""
    preamble = _PREAMBLE.format(date=datetime.date.today().isoformat(), machine=machine(), software=software())
    target.parent.mkdir(exist_ok=True)
    table = "\n".join([*lines(rows), *(f"\n{line}" for line in missing)])
    target.write_text("\n".join([f"{preamble}{table}\n", *sections]))


def machine() -> str:
    """Cores, memory and operating system, in a few words."""
    memory = psutil.virtual_memory().total / 2**30
    try:
        system = platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        system = platform.system()
    return f"{len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB of memory, {system}"


def software() -> str:
    """The versions that matter."""
    versions = {
        name.lower(): version for name in ("pulumi", "tensorflow-cpu", "tensorflow") if (version := _version(name))
    }
    named = [f"{name} {version}" for name, version in versions.items()]
    return ", ".join([f"Python {platform.python_version()}", *named])


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
