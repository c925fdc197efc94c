"""The argument `until`: which values of metrics end a run. Pure."""

from dataclasses import replace
from typing import Dict, List, Optional

from ..model.events import UNTIL_DISABLED, UNTIL_NO_NUMBER, Event
from ..model.run_spec import Condition
from ..model.run_state import FINAL, SUCCEEDED, UNTIL, ReachedMetric, RunResult, RunState
from ..record.metric_values import LoggedValue, number_in

COMPARISONS = (">=", "<=", ">", "<")
"""A comparison that begins with another one comes before it."""


_MAX_TEXT = 40
"""So many characters of a value that is not a number are in its event."""


def apply_values(run: RunState, values: Dict[str, LoggedValue], now: float) -> None:
    """Note the metrics by which all conditions hold, if these values satisfy them."""
    if run.result is None and not run.reached:
        run.reached, run.reached_at = _reached_metrics(run, values), now


def note_problems(run: RunState, values: Dict[str, LoggedValue], disabled: List[Event]) -> List[Event]:
    """Events of what prevents a condition from being decided: its pattern is switched off (`disabled`, with the metric as `state`), or
    its value is not a number. There is one for each pattern and kind."""
    seen = [replace(event, kind=UNTIL_DISABLED, at=0.0) for event in disabled]
    for condition in run.spec.until:
        logged = values.get(condition.metric)
        if logged is not None and number_in(logged.text) is None:
            text = logged.text[:_MAX_TEXT]
            seen.append(Event(UNTIL_NO_NUMBER, task=logged.task, state=condition.metric, reason=text))
    happened = []
    for event in seen:
        problem = f"{event.kind} {event.state}"
        if problem not in run.until_problems:
            run.until_problems.append(problem)
            happened.append(event)
    return happened


def until_result(run: RunState, now: float) -> Optional[RunResult]:
    """The success of a run with conditions that held; None for another one.

    A task that has just logged a metric may have ended by itself, and its end decides. So its launcher reports first.
    """
    tasks = [run.tasks.get(metric.task) for metric in run.reached]
    if any(task is None or task.attempt != metric.attempt for task, metric in zip(tasks, run.reached)):
        run.reached = []
    has_reported = all(task and (task.state in FINAL or task.seen >= run.reached_at) for task in tasks)
    if not run.reached or not has_reported:
        return None
    hostnames = sorted({metric.task for metric in run.reached})
    return RunResult(SUCCEEDED, UNTIL, now, hostnames, reached=run.reached)


def _reached_metrics(run: RunState, values: Dict[str, LoggedValue]) -> List[ReachedMetric]:
    """The metrics by which all conditions of the run hold; empty where one of them does not. A value of an earlier attempt of its task
    does not count: the program has begun again since then."""
    metrics = [_reached(run, condition, values.get(condition.metric)) for condition in run.spec.until]
    held = [metric for metric in metrics if metric is not None]
    return held if len(held) == len(metrics) else []


def _reached(run: RunState, condition: Condition, logged: Optional[LoggedValue]) -> Optional[ReachedMetric]:
    task = run.tasks.get(logged.task) if logged else None
    if logged is None or task is None or task.is_auxiliary or task.attempt != logged.attempt:
        return None
    value = number_in(logged.text)
    if value is None or not _holds(condition, value):
        return None
    return ReachedMetric(
        condition.metric, value, condition.comparison, condition.threshold, logged.task, task.attempt, logged.step
    )


def _holds(condition: Condition, value: float) -> bool:
    """Whether the comparison holds. One of a newer version never does."""
    return {
        ">=": value >= condition.threshold,
        "<=": value <= condition.threshold,
        ">": value > condition.threshold,
        "<": value < condition.threshold,
    }.get(condition.comparison, False)
