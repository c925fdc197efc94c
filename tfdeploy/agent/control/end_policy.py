"""The result of a run: from the states of its tasks, its success rule and its budget. Pure."""

import math
from typing import List, Optional

from ..model.deciding_tasks import deciding_names, deciding_tasks
from ..model.run_state import (
    BUDGET,
    DEAD,
    DECIDERS_REMOVED,
    ENDED_EARLY,
    EVALUATOR,
    FAILED,
    FINAL,
    LAUNCHERS_LOST,
    RUNNING,
    STARTING,
    STOPPED,
    SUCCEEDED,
    TASK_FAILED,
    TASKS_SUCCEEDED,
    UNTIL,
    WORKERS,
    RunResult,
    RunState,
    TaskState,
)
from .elastic import is_optional

MAX_LOSSES = 10
"""So many launchers of one task that are lost in a row end the run."""

_HOUR = 3600.0

ENDED_EARLY_SECONDS = 60.0
"""A parameter server that has ended fails the run when the deciding tasks still run so much later."""

REPLACE_SECONDS = 120.0
"""A task that was removed may be replaced: where it decides the result, the run waits so long for the next one."""


def _removed_deciders(run: RunState) -> List[str]:
    return [name for name in deciding_names(run.spec) if name not in run.tasks]


def note_removed_deciders(run: RunState, now: float) -> None:
    """Remember since when a task that decides the result is missing and no other program trains: one that is replaced is missing for
    some time."""
    removed = _removed_deciders(run)
    trains = any(is_worker(run, task) and task.state not in FINAL for task in run.training_tasks)
    seen = [run.as_former(name).seen for name in removed]
    run.undecided_since = max(run.undecided_since or now, *seen) if removed and not trains else 0.0


def decide(run: RunState, now: float) -> Optional[RunResult]:
    """The run's result; None while it is open.

    A training task that failed for good fails the run, unless the run has succeeded before that, or the task may fail. The run
    succeeds when all deciding tasks have, and fails when one of them was removed and nothing else trains; where all tasks serve, it
    succeeds when all of them have.
    """
    required = [task for task in run.training_tasks if not may_fail(run, task)]
    removed = _removed_deciders(run)
    tasks = deciding_tasks(run) or [task for task in run.training_tasks if not run.spec.is_service(task.job)]
    has_succeeded = bool(tasks) and not removed and all(task.state == SUCCEEDED for task in tasks)
    succeeded_at = max(task.since for task in tasks) if has_succeeded else math.inf
    failed = [task for task in required if task.state in DEAD and task.since < succeeded_at]
    if failed:
        first = min(failed, key=lambda task: task.ended)
        return RunResult(FAILED, TASK_FAILED, now, [first.hostname], first.end)
    lost = max(required, key=lambda task: task.losses, default=None)
    if lost is not None and lost.losses >= MAX_LOSSES:
        return RunResult(FAILED, LAUNCHERS_LOST, now, [lost.hostname], count=lost.losses)
    if run.undecided_since and now - run.undecided_since >= REPLACE_SECONDS:
        return RunResult(FAILED, DECIDERS_REMOVED, now, removed)
    if has_succeeded:
        return RunResult(SUCCEEDED, TASKS_SUCCEEDED, now, [task.hostname for task in tasks])
    early = [task.hostname for task in run.training_tasks if _ended_early(task, now)]
    if early and not run.spec.serve and any(task.state not in FINAL for task in tasks):
        return RunResult(FAILED, ENDED_EARLY, now, early)
    return None


def spent(run: RunState, now: float) -> float:
    """What the machines of the cluster have cost until `now`, in USD. If no controller runs, `now` is the time when it last did."""
    return run.cost_before + run.spec.cost_per_hour * max(0.0, now - run.cost_since) / _HOUR


def over_budget(run: RunState, now: float) -> Optional[RunResult]:
    """The end of a run as soon as its machines will have cost the budget when they have terminated themselves; None before that, and
    without a budget."""
    budget = run.spec.budget
    cost = spent(run, now)
    if not budget or cost + run.spec.cost_to_end < budget:
        return None
    return RunResult(STOPPED, BUDGET, now, spent=round(cost, 4), budget=budget)


def may_fail(run: RunState, task: TaskState) -> bool:
    """Whether the run continues when this task has failed: an optional worker of an elastic run, or a task of a job that is not
    required."""
    job = run.spec.jobs.get(task.job)
    return is_optional(run.spec, task) or (job is not None and not job.required)


def _ended_early(task: TaskState, now: float) -> bool:
    """Whether it is a parameter server that ended by itself some time ago. Workers block without it."""
    return task.job == "ps" and task.state == SUCCEEDED and now - task.since > ENDED_EARLY_SECONDS


def may_finish(run: RunState, task: TaskState, now: float) -> bool:
    """Whether a task may still run after the end of the run.

    After the success of the program, the evaluator has `evaluator_timeout` seconds to evaluate the last checkpoint, and the other
    workers have `worker_timeout` seconds to end by themselves. Meanwhile the parameter servers serve these
    workers; so they do when `until` or the budget stops workers, which have `grace` seconds to save the variables. When the user stops
    the run, or at its time limit, no task has time left. A service runs for as long as any other task.
    """
    result = run.result
    if result is not None and run.spec.is_service(task.job):
        others = (other for other in run.training_tasks if other.job != "ps" and not run.spec.is_service(other.job))
        return _has_started(run, task) and any(_ends_by_itself(run, other, now) for other in others)
    if result is not None and result.cause in (UNTIL, BUDGET):
        is_needed = task.job == "ps" and any(_trains(run, other) for other in run.training_tasks)
        return is_needed and _has_started(run, task) and now < result.at + run.spec.grace
    if result is None or result.state != SUCCEEDED or run.stopped_at or now >= end_of_time(run, task):
        return False
    if task.job == EVALUATOR:
        return run.barrier_passed and task.state not in FINAL
    workers = [task] if task.job != "ps" else run.training_tasks
    return _has_started(run, task) and any(_trains(run, worker) for worker in workers)


def _ends_by_itself(run: RunState, task: TaskState, now: float) -> bool:
    """Whether this task is given time after the end of the run, and its program still runs."""
    return task.state not in FINAL and may_finish(run, task, now)


def end_of_time(run: RunState, task: TaskState) -> float:
    """Until when this task may still run after the end of the run."""
    if run.result is None:
        return math.inf
    if run.result.cause in (UNTIL, BUDGET):
        return run.result.at + run.spec.grace
    return run.result.at + (run.spec.evaluator_timeout if task.job == EVALUATOR else run.spec.worker_timeout)


def may_restart(run: RunState, task: TaskState, now: float) -> bool:
    """Whether the program of this task may start again after the end of the run: that of an evaluator with time left."""
    return task.job == EVALUATOR and may_finish(run, task, now)


def finishing_workers(run: RunState, now: float) -> List[TaskState]:
    """After the success of the run: the workers that have time left to end by themselves."""
    return [task for task in run.training_tasks if is_worker(run, task) and may_finish(run, task, now)]


def finishing_evaluator(run: RunState, now: float) -> Optional[TaskState]:
    """After the success of the run: the evaluator that has time left to evaluate the last checkpoint."""
    evaluators = (task for task in run.training_tasks if task.job == EVALUATOR and may_finish(run, task, now))
    return next(evaluators, None)


def is_worker(run: RunState, task: TaskState) -> bool:
    """Whether it is a worker or the chief, and runs the program: not only a server of TensorFlow."""
    return task.job in ("chief", *WORKERS) and not run.spec.jobs[task.job].command


def _trains(run: RunState, task: TaskState) -> bool:
    return is_worker(run, task) and _has_started(run, task)


def _has_started(run: RunState, task: TaskState) -> bool:
    """Whether its program runs, or was ordered to start and has not been reported yet."""
    return task.state == RUNNING or (task.state == STARTING and task.ready and run.barrier_passed)
