"""The start barrier: no training task starts its program until all of them are ready, or, in an elastic run that has started before,
until all that are not optional are. Services start first. Pure."""

from typing import List, Optional

from ..model import events
from ..model.events import Event
from ..model.run_state import (
    FAILED,
    FINAL,
    RUNNING,
    SCHEDULED,
    STARTING,
    STARTUP_TIMEOUT,
    WAITING,
    RunResult,
    RunState,
    TaskState,
)
from . import elastic

LISTEN_SECONDS = 10.0
"""The other tasks wait so long for a service that runs to listen at its port: it may be one that listens nowhere."""


def next_attempt(run: RunState, task: TaskState) -> None:
    """A program that runs, or that an order may have started, is followed by one of the next attempt."""
    may_run = (task.is_auxiliary or elastic.may_have_started(run, task)) and task.state not in FINAL
    if task.state == RUNNING or may_run:
        task.attempt += 1
        task.decided = task.attempt
    if task.state == RUNNING:
        task.state = STARTING


def restart_barrier(run: RunState, now: float) -> None:
    """Begin the start barrier again: no training task is ready until its launcher reports so."""
    for task in run.training_tasks:
        next_attempt(run, task)
        task.ready, task.waiting_for = False, ""
        if task.state == WAITING:
            task.state = STARTING
    run.address_book, run.waiting_since = {}, now


def tasks_not_ready(run: RunState) -> List[str]:
    """The hostnames of the training tasks that the start barrier waits for."""
    return [task.hostname for task in elastic.awaited_tasks(run) if not task.ready and task.state not in FINAL]


def starting_services(run: RunState, now: float) -> List[str]:
    """The hostnames of the services that the other tasks wait for: those with listed addresses that neither listen nor have ended."""
    listed = (task for task in run.services if not run.spec.is_unlisted(task.job))
    open_ones = (task for task in listed if task.state not in FINAL)
    return [task.hostname for task in open_ones if task.state != RUNNING or not _listens(task, now)]


def _listens(task: TaskState, now: float) -> bool:
    return task.report.is_listening or now - task.since >= LISTEN_SECONDS


def advance_barrier(run: RunState, now: float) -> List[Event]:
    if not run.training_tasks:  # all were removed
        return []
    absent = tasks_not_ready(run)
    services = starting_services(run, now)
    for task in run.training_tasks:
        if task.state in (SCHEDULED, STARTING, WAITING):
            awaited = absent if not run.barrier_passed else [] if run.spec.is_service(task.job) else services
            if task.ready:
                task.state = WAITING if awaited else STARTING
            task.reason, task.waiting_for = "", awaited[0] if awaited and task.state == WAITING else ""
    elastic.remember_addresses(run)
    addresses = elastic.known_addresses(run)
    if run.barrier_passed and not absent and addresses != run.address_book:
        restart_barrier(run, now)
        return [Event(events.ADDRESS_CHANGED)]
    if not run.barrier_passed and not absent and not elastic.lacks_addresses(run):
        run.address_book, run.has_started = addresses, True
        present = [task.hostname for task in run.training_tasks if task.ready or task.state in FINAL]
        return [Event(events.BARRIER_PASSED, tasks=present)]
    return []


def startup_timeout(run: RunState, now: float) -> Optional[RunResult]:
    """The failure of a run that was not ready in time; only before its first start, and only where there is a timeout."""
    timeout = run.spec.start_timeout
    if not timeout or run.has_started or not run.training_tasks or now - run.waiting_since <= timeout:
        return None
    return RunResult(FAILED, STARTUP_TIMEOUT, now, tasks_not_ready(run), seconds=timeout)
