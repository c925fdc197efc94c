"""What a preview prints of the run before a new one, and of the new one's duration and cost. Pure."""

from collections.abc import Sequence

from ..agent.run_state import SUCCEEDED
from ..receipts import RunOutcome
from ..units import dollars, text_of_number
from .forecast import Forecast, duration, rounded, unit
from .receipt_text import cost_text
from .report import metric_value
from .run_history import StoredRun

_MOST_METRICS = 3
_MOST_CHANGES = 4


def forecast_line(last: StoredRun, changed: Sequence[str], expected: Forecast | None) -> str:
    """`last run: accuracy 0.956 after 14 min, $0.08; this change: code only; expected 13 to 16 min, $0.07 to 0.09`."""
    parts = [f"last run: {_last(last)}", _change(changed), f"expected {_expected(expected)}" if expected else ""]
    return "; ".join(part for part in parts if part)


def _last(run: StoredRun) -> str:
    outcome = run.outcome
    if outcome.ended is None:
        return "still running"
    cost = [cost_text(outcome)] if outcome.cost is not None else []
    took = duration(run)
    after = f" after {_text(took)}" if rounded(took)[0] else ""  # a clock that was set back shows no duration
    return ", ".join([f"{_result(outcome)}{after}", *cost])


def _result(outcome: RunOutcome) -> str:
    """The metrics of a run that has succeeded, or else its result."""
    values = {name: metric_value(text) for name, text in outcome.metrics.items()}
    numbers = [f"{name} {text_of_number(value)}" for name, value in values.items() if isinstance(value, float)]
    shown = ", ".join(numbers[:_MOST_METRICS])
    return shown if shown and outcome.result == SUCCEEDED else outcome.result


def _change(changed: Sequence[str]) -> str:
    if not changed:
        return ""
    more = [f"{len(changed) - _MOST_CHANGES} more"] if len(changed) > _MOST_CHANGES else []
    names = ", ".join([*changed[:_MOST_CHANGES], *more])
    return f"this change: {names}{' only' if len(changed) == 1 else ''}"


def _expected(expected: Forecast) -> str:
    size, name = unit(expected.low)
    time = f"{_number(expected.low / size)} to {_number(expected.high / size)} {name}"
    steps = "" if expected.goal is None else f" for {text_of_number(expected.goal)} steps"
    return f"{time}{steps}{_cost(expected.cost)}"


def _cost(cost: tuple[float, float] | None) -> str:
    """`, $0.07 to 0.09`, with two digits each; empty where it is not known."""
    if cost is None:
        return ""
    low, high = (dollars(float(f"{part:.2g}")) for part in cost)
    return f", {high}" if low == high else f", {low} to {high.removeprefix('$')}"


def _text(seconds: float) -> str:
    size, name = unit(seconds)
    return f"{_number(rounded(seconds)[0] / size)} {name}"


def _number(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"
