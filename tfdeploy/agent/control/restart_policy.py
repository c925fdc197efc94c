"""What the end of a task's program means for the task: a restart with back-off, or its final state. Pure."""

from dataclasses import replace

from ..model import events, sync
from ..model.events import Event
from ..model.restart_delay import MAX_BACKOFF, restart_delay
from ..model.run_state import (
    AT_BUDGET,
    AT_TIME_LIMIT,
    BUDGET,
    BY_REQUEST,
    FAILED,
    INTERRUPTED,
    MOVED,
    RESTARTING,
    RUN_FAILED,
    RUN_FINISHED,
    RUNNING,
    STOPPED,
    SUCCEEDED,
    TIME_LIMIT,
    TO_MOVE,
    Ended,
    RunResult,
    RunState,
    TaskState,
)
from .end_policy import may_restart

EXTERNAL_SIGNAL = "its launcher was stopped by a signal, not by its controller"

STEADY_SECONDS = 300.0
"""A launcher that is lost after its program has run this long is the first in a row."""


def ended_at(report: Ended, now: float) -> float:
    """When a program ended, by the controller's clock."""
    return now - max(0.0, report.age)


def apply_start(task: TaskState, at: float) -> Event:
    """Update a task whose program runs since `at`."""
    task.state, task.reason, task.since, task.end = RUNNING, "", at, None
    return Event(events.TASK_STARTED, at, task.hostname, task.attempt)


def apply_exit(run: RunState, task: TaskState, report: Ended, now: float, has_restarted: bool = False) -> Event:
    """Update a task at the end of its program. `has_restarted`: its launcher has begun the next attempt itself."""
    task.ended, task.since = report.at, ended_at(report, now)
    return replace(_apply_exit(run, task, report, now, has_restarted), at=task.since)


def _apply_exit(run: RunState, task: TaskState, report: Ended, now: float, has_restarted: bool) -> Event:
    if report.cause == sync.INTERRUPTED:
        task.state = INTERRUPTED
        requested = f"{task.user_action} {BY_REQUEST}" if task.user_action else ""
        task.reason = report.notice or requested or EXTERNAL_SIGNAL
        task.attempt += 1
        task.machine_ends = bool(report.notice)
        return Event(events.TASK_INTERRUPTED, task=task.hostname, reason=task.reason)
    if report.cause == sync.STOPPED and run.result:
        stop_task(task, run.result, now)
        return Event(events.TASK_STOPPED, task=task.hostname, reason=task.reason)
    is_over = run.result is not None and not task.is_auxiliary and not may_restart(run, task, now)
    task.end, task.state = report, report.state
    if task.state == SUCCEEDED:
        return Event(events.TASK_SUCCEEDED, task=task.hostname)
    policy = run.spec.jobs[task.job].restart
    ended = Event(events.TASK_FAILED, task=task.hostname, attempt=task.attempt, exit=report)
    delay = restart_delay(policy, task.failures, report)
    if (is_over or delay is None) and not has_restarted:
        return ended
    task.failures += 1
    task.attempt += 1
    task.restart_delay = delay or 0.0
    task.not_before = task.since + task.restart_delay
    task.max_failures = policy.maximum
    task.state = RESTARTING
    return Event(
        events.TASK_RESTARTING,
        task=task.hostname,
        attempt=task.attempt,
        exit=report,
        delay=task.restart_delay,
        failures=task.failures,
        max_failures=policy.maximum,
    )


def apply_loss(task: TaskState, now: float) -> None:
    """Count a launcher that was lost with its running program. From the second in a row on, each waits twice as long."""
    task.losses = 1 if now - task.since >= STEADY_SECONDS else task.losses + 1
    if task.losses > 1:
        task.not_before = now + min(2.0 ** (task.losses - 2), MAX_BACKOFF)


def stop_task(task: TaskState, result: RunResult, now: float) -> None:
    """Put a task in its final state because of the run's result."""
    reasons = {SUCCEEDED: RUN_FINISHED, FAILED: RUN_FAILED}
    limits = {TIME_LIMIT: AT_TIME_LIMIT, BUDGET: AT_BUDGET, MOVED: TO_MOVE}
    stopped = limits.get(result.cause, BY_REQUEST)
    task.state, task.reason, task.ended = STOPPED, reasons.get(result.state, stopped), now
