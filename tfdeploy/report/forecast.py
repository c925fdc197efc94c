"""How long a new run will take and what it will cost, from earlier runs of its cluster. Pure."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, mean, pvariance

from ..agent.run_spec import RunSpec
from ..agent.run_state import SUCCEEDED, TENSORBOARD
from ..agent.task_command import shown_command
from ..receipts import RunOutcome
from ..units import dollars, text_of_number
from .progress import goals, without_goals
from .report import metric_value
from .run_history import StoredRun, cost_text, flat_options

WIDEST = 1.5
"""A range with a larger quotient of its ends is not shown."""

LATEST = 5
"""So many comparable runs are used, the latest ones."""

SCATTER = 0.06
"""The relative standard deviation of durations that is expected before any was observed."""

_SCATTER_WEIGHT = 3
"""It counts as much as so many observed deviations."""

_DEVIATIONS = 1.5
"""The range is so many standard deviations wide on each side: about 85 % of all durations are in it."""

_SCALING_ERROR = 0.1
"""The relative standard deviation of a speed, by which durations are scaled to other steps."""

_SAME_WORK = re.compile(
    r"(?<![\w-])(--?(?:lr|learning[_-]rate|momentum|weight[_-]decay|dropout(?:[_-]rate)?|(?:random[_-])?seed)[= ])(?!--)\S+"
)
"""An option of which another value changes what a training learns, and not how long a step takes."""

_UNITS = ((3600.0, "h"), (60.0, "min"), (1.0, "s"))

_LIMIT = re.compile(r"jobs\.\w+\.(?:cpus|memory|gpus)")


@dataclass(frozen=True)
class Forecast:
    """A range of durations as it is shown, in seconds, and of costs."""

    low: float
    high: float
    goal: float | None = None
    """The last step that durations of other last steps were scaled to; None where none was."""
    cost: tuple[float, float] | None = None
    """In USD; None where the cost of the latest comparable run is not known."""


@dataclass(frozen=True)
class _Estimate:
    """How long a planned run will take, by one earlier run."""

    seconds: float
    scaled: float
    """The part of it that was added or subtracted for other steps than the earlier run had."""
    run: StoredRun


def forecast(earlier: Sequence[StoredRun], planned: StoredRun, scatter: float = SCATTER) -> Forecast | None:
    """The range that the duration of the planned run is expected in; None where the earlier runs do not show it."""
    groups = _estimates(earlier, planned)
    own = groups.get(_counts(planned), [])
    # Runs with other counts show how much durations differ, but not how long the planned run takes.
    logarithms = [[math.log(estimate.seconds) for estimate in group] for group in groups.values()]
    freedom = sum(map(len, logarithms)) - len(groups)
    if not own or freedom < 1:
        return None
    observed = sum(pvariance(group) * len(group) for group in logarithms)
    variance = (_SCATTER_WEIGHT * scatter**2 + observed) / (_SCATTER_WEIGHT + freedom)
    scaling = _SCALING_ERROR * mean(estimate.scaled for estimate in own)
    spread = _DEVIATIONS * math.sqrt(variance * (1 + 1 / len(own)) + scaling**2)
    if spread > math.log(WIDEST):
        return None
    factor = math.exp(spread)
    center = geometric_mean(estimate.seconds for estimate in own)
    low, high = rounded(center / factor, center * factor)
    if low <= 0 or high / low > WIDEST:
        return None
    goal = goals(_settings(planned.spec))[0] if scaling else None
    return Forecast(low, high, goal, _cost(own[-1].run, low, high))


def _estimates(earlier: Sequence[StoredRun], planned: StoredRun) -> Mapping[str, Sequence[_Estimate]]:
    """The estimates by the latest comparable runs, for each of the counts that they had."""
    groups: dict[str, list[_Estimate]] = {}
    for run in sorted(earlier, key=lambda run: run.outcome.submitted):
        if is_comparable(run, planned) and (estimate := _estimate(run, planned)) is not None:
            groups.setdefault(_counts(run), []).append(estimate)
    return {counts: group[-LATEST:] for counts, group in groups.items()}


def rounded(*seconds: float) -> tuple[float, ...]:
    """Durations in seconds, rounded as they are shown: to two digits or to whole numbers of the unit of the first one."""
    size, _ = unit(seconds[0])
    numbers = tuple(round(number / size, 1 if number < 10 * size else 0) * size for number in seconds)
    return numbers if unit(numbers[0])[0] == size else rounded(*numbers)


def unit(seconds: float) -> tuple[float, str]:
    """The unit that a duration is shown in: its seconds, and its name."""
    return next((size, name) for size, name in _UNITS if seconds >= 2 * size or size == 1)


def is_comparable(run: StoredRun, planned: StoredRun) -> bool:
    """Whether the duration of a run shows that of the planned one, apart from their last steps and counts."""
    return (
        run.outcome.result == SUCCEEDED
        and run.outcome.is_final
        and not (run.spec.resume_from or planned.spec.resume_from)
        and not (run.spec.max_workers or planned.spec.max_workers)
        and not run.outcome.stays
        and _conditions(run) == _conditions(planned)
    )


def _conditions(run: StoredRun) -> Sequence[object]:
    """What else determines how long a run takes. Code and image are not among it: most changes of them are small."""
    spec, receipt = run.spec, run.receipt
    options = flat_options(receipt.options if receipt else {})
    return (
        run.backend,
        sorted(receipt.machines) if receipt else None,
        _SAME_WORK.sub(r"\1", without_goals(_settings(spec))),
        {name: text for name, text in options.items() if name == "container.network" or _LIMIT.fullmatch(name)},
        (spec.context, spec.data_dir, sorted(spec.requirements), sorted(spec.secret_env), spec.until),
        (spec.success, spec.worker_timeout, spec.evaluator_timeout, spec.flags, spec.master, spec.serve),
    )


def _settings(spec: RunSpec) -> str:
    """The commands, and the environment in the form of options: `STEPS` is the last step as `--steps` is."""
    jobs = sorted((name, job) for name, job in spec.jobs.items() if name != TENSORBOARD)
    own = [f"{name}: {shown_command(job.command)}" for name, job in jobs if job.command]
    variables = [("", spec.env), *((f"{name}: ", job.env) for name, job in jobs)]
    env = [f"{job}--{name.lower()}={value}" for job, values in variables for name, value in sorted(values.items())]
    return "\n".join([shown_command(spec.command), *own, *env])


def _counts(run: StoredRun) -> str:
    """How many tasks and machines a run has, as text."""
    tasks = {job: count for job, count in run.outcome.tasks.items() if job != TENSORBOARD and count}
    return json.dumps([tasks, dict(run.receipt.machines) if run.receipt else {}], sort_keys=True)


def _estimate(run: StoredRun, planned: StoredRun) -> _Estimate | None:
    """How long the planned run takes by this one; None where its last step is another one, and the speed does not show the rest."""
    outcome, took = run.outcome, duration(run)
    before, after = goals(_settings(run.spec)), goals(_settings(planned.spec))
    if before == after:
        return _Estimate(took, 0.0, run) if took else None
    rate = outcome.steps_per_second
    if len(before) != 1 or len(after) != 1 or rate is None or rate <= 0 or run.spec.until or took < before[0] / rate:
        return None
    further = (after[0] - before[0]) / rate
    seconds = took + further
    return _Estimate(seconds, abs(further) / seconds, run) if 0 < seconds < math.inf else None


def duration(run: StoredRun) -> float:
    """The seconds from the submission of a run to the end of its last task; 0 where its end was not observed."""
    outcome = run.outcome
    return 0.0 if outcome.ended is None else max(0.0, outcome.ended - outcome.submitted)


def _cost(latest: StoredRun, low: float, high: float) -> tuple[float, float] | None:
    """By the price of the machines in the latest comparable run, which had as many."""
    cost, took = latest.outcome.cost, duration(latest)
    if cost is None or not took:
        return None
    return low * cost / took, high * cost / took


_MOST_METRICS = 3
_MOST_CHANGES = 4


def forecast_line(last: StoredRun, changed: Sequence[str], expected: Forecast | None) -> str:
    """`last run: accuracy 0.956 after 14 min, $0.08; this change: code only; expected 13 to 16 min, $0.07 to 0.09`."""
    more = [f"{len(changed) - _MOST_CHANGES} more"] if len(changed) > _MOST_CHANGES else []
    names = f"{', '.join([*changed[:_MOST_CHANGES], *more])}{' only' if len(changed) == 1 else ''}"
    parts = {"last run: ": _last(last), "this change: ": names, "expected ": _expected(expected) if expected else ""}
    return "; ".join(f"{title}{text}" for title, text in parts.items() if text)


def _last(run: StoredRun) -> str:
    outcome = run.outcome
    if outcome.ended is None:
        return "still running"
    took, (size, name) = duration(run), unit(duration(run))
    seconds = rounded(took)[0]
    after = f" after {_number(seconds / size)} {name}" if seconds else ""  # a clock that was set back shows no duration
    return f"{_result(outcome)}{after}{f', {cost_text(outcome)}' if outcome.cost is not None else ''}"


def _result(outcome: RunOutcome) -> str:
    """The metrics of a run that has succeeded, or else its result."""
    values = {name: metric_value(text) for name, text in outcome.metrics.items()}
    numbers = [f"{name} {text_of_number(value)}" for name, value in values.items() if isinstance(value, float)]
    shown = ", ".join(numbers[:_MOST_METRICS])
    return shown if shown and outcome.result == SUCCEEDED else outcome.result


def _expected(expected: Forecast) -> str:
    size, name = unit(expected.low)
    time = f"{_number(expected.low / size)} to {_number(expected.high / size)} {name}"
    steps = "" if expected.goal is None else f" for {text_of_number(expected.goal)} steps"
    return f"{time}{steps}{_cost_range(expected.cost)}"


def _cost_range(cost: tuple[float, float] | None) -> str:
    """`, $0.07 to 0.09`, with two digits each; empty where it is not known."""
    if cost is None:
        return ""
    low, high = (dollars(float(f"{part:.2g}")) for part in cost)
    return f", {high}" if low == high else f", {low} to {high.removeprefix('$')}"


def _number(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"
