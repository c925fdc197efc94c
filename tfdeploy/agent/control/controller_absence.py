"""A controller that was away: it hears its launchers before it decides, and takes over what they did without it. Pure."""

from typing import List

from ..model.events import Event
from ..model.run_state import FINAL, RUNNING, STARTING, LauncherReport, RunState, TaskState
from . import artifact_uploads
from .restart_policy import apply_exit, apply_start, ended_at

HEAR_SECONDS = 15.0
"""A controller that begins, or continues after a pause, decides nothing about the run until its launchers have reported, but not longer
than this. A launcher calls an absent controller every few seconds (`launcher`)."""


def listen_again(run: RunState, now: float, away_seconds: float) -> None:
    """The controller was away for so long. That is not the launchers' silence, and not time of the start barrier or of uploads."""
    run.listening_since, run.undecided_since = now, 0.0
    if not run.barrier_passed:
        run.waiting_since = now
    artifact_uploads.shift_clock(run, away_seconds)


def is_hearing(run: RunState, now: float) -> bool:
    """Whether the controller has not heard all launchers yet since it listens."""
    return now < run.listening_since + HEAR_SECONDS and any(
        task.report.instance and task.state not in FINAL and task.seen < run.listening_since
        for task in run.training_tasks
    )


def adopt_attempts(run: RunState, task: TaskState, report: LauncherReport, now: float) -> List[Event]:
    """Take over an attempt that the record does not know, as it is an older copy, and those that a launcher has begun itself, each
    once. These are out of date, and followed by another attempt, if it was decided meanwhile that the task begins again, as with
    other addresses."""
    if report.run_id != run.spec.id or task.state in FINAL:
        return []
    first = report.restarted[0].attempt if report.restarted else report.attempt
    if first > task.attempt:
        task.state, task.attempt, task.decided = STARTING, first, first
    if not report.restarted:
        return []
    if report.restarted[0].attempt < task.decided:
        if report.attempt >= task.attempt:
            task.attempt = task.decided = report.attempt + 1
        return []
    happened: List[Event] = []
    for ended in report.restarted:
        if ended.attempt == task.attempt and task.state not in FINAL:
            if task.state != RUNNING:
                happened.append(apply_start(task, ended_at(ended, now) - ended.ran_seconds))
            happened.append(apply_exit(run, task, ended, now, has_restarted=True))
    if report.attempt == task.attempt and task.state not in (RUNNING, *FINAL):
        happened.append(apply_start(task, _began(report, now)))
    return happened


def _began(report: LauncherReport, now: float) -> float:
    """When the attempt began that is the present one, or the last: its launcher may have been killed since then."""
    if report.exit is not None:
        return ended_at(report.exit, now) - report.exit.ran_seconds
    return now - report.running_seconds if report.running_seconds else ended_at(report.restarted[-1], now)
