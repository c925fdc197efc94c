"""Conditions of `until` that cannot be decided, because their metric is not a number or is not read any more. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..agent.events import UNTIL_DISABLED, UNTIL_NO_NUMBER
from ..agent.run_state import UNTIL
from ..backends.base import ObservedState
from .escapes import shown_text

_LONGEST = 40
"""So many characters of a value are shown."""


@dataclass(frozen=True)
class UntilProblem:
    """A metric that no condition can be decided by."""

    metric: str
    text: str
    remedy: str


def until_problems(observed: ObservedState) -> Sequence[UntilProblem]:
    """The metrics of `until` that the controller could not compare in this run, and still cannot."""
    run = observed.view.run_state
    if run is None or (run.result is not None and run.result.cause == UNTIL):
        return []
    problems = []
    for condition in run.spec.until:
        metric, value = condition.metric, observed.view.metrics.get(condition.metric)
        if f"{UNTIL_DISABLED} {metric}" in run.until_problems:
            text = f"`until` does not see new values of {metric}: its pattern takes too long in the output."
            problems.append(UntilProblem(metric, text, "Give `metrics` a pattern without nested repetitions."))
        elif f"{UNTIL_NO_NUMBER} {metric}" in run.until_problems and value is not None and not _is_number(value):
            text = f"`until` cannot compare {metric}: its last value {shown_text(value)[:_LONGEST]!r} is not a number."
            remedy = f"Let its pattern in `metrics` capture the number alone, as `{metric}: ([0-9.]+)` does."
            problems.append(UntilProblem(metric, text, remedy))
    return problems


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
