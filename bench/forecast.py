"""How often the forecasts of previews were right: over the runs in `data/forecast-runs.json`, which `forecast_runs` has recorded.

Each run is forecast from the earlier runs of its cluster alone, as its preview would have been. Nothing is run for it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from tfdeploy import receipts
from tfdeploy.agent.run_state import SUCCEEDED
from tfdeploy.receipts import Receipt
from tfdeploy.report.forecast import SCATTER, WIDEST, Forecast, duration, forecast, is_comparable
from tfdeploy.report.run_history import StoredRun

from .table import Row, markdown

DATA = Path(__file__).parent / "data" / "forecast-runs.json"

LEAST, MOST = 70.0, 95.0
"""The percentage of the runs that is to be in the range: with fewer it is too narrow, with more too wide."""

SCATTERS = (0.01, 0.02, 0.03, 0.04, 0.05, SCATTER, 0.07, 0.08, 0.1, 0.12)
"""The values of `SCATTER` that are tried in leaving one program out."""


@dataclass(frozen=True)
class Scored:
    """One run that has succeeded, and its forecast."""

    program: str
    conditions: str
    """Under which it was recorded, in words."""
    seconds: float
    forecast: Forecast | None
    comparable: int
    """How many earlier runs were comparable, with the same number of tasks."""

    @property
    def is_right(self) -> bool:
        """Whether the run took as long as its forecast has it."""
        return self.forecast is not None and self.forecast.low <= self.seconds <= self.forecast.high


@dataclass(frozen=True)
class Score:
    """How the forecasts of several runs went."""

    runs: Sequence[Scored]

    @property
    def made(self) -> list[Scored]:
        """Those that have a forecast."""
        return [run for run in self.runs if run.forecast is not None]

    @property
    def percentage(self) -> float:
        """How many of the forecasts were right."""
        return 100.0 * sum(run.is_right for run in self.made) / len(self.made) if self.made else 0.0

    @property
    def miss(self) -> float:
        """How far the percentage is from the middle of the target."""
        return abs(self.percentage - (LEAST + MOST) / 2)

    @property
    def widths(self) -> list[float]:
        """The width of each range, the smallest first."""
        return sorted(run.forecast.high / run.forecast.low for run in self.made if run.forecast is not None)

    @property
    def without_range(self) -> int:
        """How many runs have no forecast although two comparable runs were before them."""
        return sum(run.forecast is None and run.comparable > 1 for run in self.runs)

    def by(self, key: Callable[[Scored], str]) -> Mapping[str, "Score"]:
        """The score of the runs of each key, in the order of the runs."""
        keys = dict.fromkeys(map(key, self.runs))
        return {name: Score([run for run in self.runs if key(run) == name]) for name in keys}

    def by_program(self) -> Mapping[str, "Score"]:
        """The score of each program."""
        return self.by(lambda run: run.program)


def run() -> list[Row]:
    """The rows of the table."""
    total = score()
    by_program = [part.percentage for part in total.by_program().values() if part.made]
    share = f"{total.percentage:.0f} %"
    measure = f"runs in the range of their forecast, of {len(total.made)} runs of {len(by_program)} programs"
    widths = total.widths
    return [
        Row(f"{measure} (by program)", share, "none", by_program, total.percentage, LEAST, at_least=True, unit=" %"),
        Row("the same: not more, or ranges are too wide", share, "none", by_program, total.percentage, MOST, unit=" %"),
        Row("the width of these ranges (high / low)", f"{median(widths):.2f}", "none", widths, max(widths), WIDEST),
    ]


def score(scatter: float = SCATTER) -> Score:
    """The score of all recorded runs."""
    return Score([scored for cluster in _data() for scored in _scored(cluster, scatter)])


def left_out_score() -> Score:
    """The score of each program with the value of `SCATTER` that is best for the other programs, all programs together."""
    scores = {scatter: score(scatter) for scatter in SCATTERS}
    runs: list[Scored] = []
    for program in score().by_program():
        misses = {scatter: _without(part, program).miss for scatter, part in scores.items()}
        best = min(misses, key=misses.__getitem__)
        runs += scores[best].by_program()[program].runs
    return Score(runs)


def _without(total: Score, program: str) -> Score:
    return Score([run for run in total.runs if run.program != program])


@cache
def _data() -> Sequence[Mapping[str, Any]]:
    clusters: Sequence[Mapping[str, Any]] = json.loads(DATA.read_text())
    return clusters


def _scored(cluster: Mapping[str, Any], scatter: float) -> list[Scored]:
    earlier: list[StoredRun] = []
    scored = []
    for data in cluster["receipts"]:
        run = _stored_run(cluster["backend"], receipts.from_dict(data))
        if run.outcome.result == SUCCEEDED:
            comparable = sum(
                is_comparable(other, run) and other.outcome.tasks == run.outcome.tasks for other in earlier
            )
            expected = forecast(earlier, run, scatter)
            scored.append(Scored(cluster["program"], cluster["conditions"], duration(run), expected, comparable))
        earlier.append(run)
    return scored


def _stored_run(backend: str, receipt: Receipt) -> StoredRun:
    assert receipt.spec is not None
    assert receipt.outcome is not None
    return StoredRun((), "", "", backend, receipt.spec, receipt.outcome, receipt)


def section() -> str:
    """What the page has of it beside the rows of the table."""
    total = score()
    by_conditions = total.by(lambda run: run.conditions)
    rows = [_row(name, part) for name, part in [*total.by_program().items(), *by_conditions.items(), ("all", total)]]
    is_met = LEAST <= total.percentage <= MOST and total.widths[-1] <= WIDEST
    return _SECTION.format(
        runs=len(total.runs),
        programs=len(total.by_program()),
        table="\n".join(markdown([_COLUMNS, *rows])),
        least=LEAST,
        most=MOST,
        widest=WIDEST,
        result="met" if is_met else "**missed**",
    )


_COLUMNS = (
    *("program, or when it was recorded", "runs", "forecasts", "in the range", "median width", "largest width"),
    *("none: fewer than two comparable runs", "none: too wide"),
)

_SECTION = """\
## Forecasts of runs

A preview prints how long a new run will take, if receipts show it ([decision](decisions/forecasts.md)).
{runs} runs of {programs} programs on `local`, each by a real `pulumi up` with TensorFlow, are in
`bench/data/forecast-runs.json`. Each was forecast from the earlier runs of its cluster alone. Width is high / low.

{table}

Target: {least:.0f} to {most:.0f} % in the range, no range wider than {widest:g}: {result}.
"""


def _row(name: str, part: Score) -> tuple[str, ...]:
    widths = [f"{median(part.widths):.2f}", f"{part.widths[-1]:.2f}"] if part.made else ["", ""]
    share = f"{sum(run.is_right for run in part.made)} ({part.percentage:.0f} %)" if part.made else "0"
    silent = len(part.runs) - len(part.made)
    return (
        name,
        str(len(part.runs)),
        str(len(part.made)),
        share,
        *widths,
        str(silent - part.without_range),
        str(part.without_range),
    )
