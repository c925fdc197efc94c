"""Reconciliation: a launcher's report updates the run's state, and the state gives the launcher's next order. Pure.

An order is level-triggered: it describes what should be true now, so that a repeated or a lost one does no harm. A program is
identified by run and attempt; a launcher stops its program when the order names another attempt.
"""

from dataclasses import replace
from typing import List, Optional

from ..model import events, sync
from ..model.events import Event
from ..model.restart_delay import MAX_BACKOFF
from ..model.run_spec import RestartPolicy, RunSpec, TaskSpec
from ..model.run_state import (
    AT_BUDGET,
    FINAL,
    INTERRUPTED,
    MOVED,
    RESTARTING,
    RUNNING,
    STARTING,
    STOP_REQUESTED,
    STOPPED,
    SUCCEEDED,
    TENSORBOARD_PORT,
    TIME_LIMIT,
    Ended,
    FormerTask,
    LauncherReport,
    RunResult,
    RunState,
    TaskState,
)
from ..model.sync import Order
from ..model.task_command import TaskAddress
from . import artifact_uploads, elastic
from .controller_absence import adopt_attempts, is_hearing, listen_again
from .end_policy import (
    decide,
    may_finish,
    may_restart,
    note_removed_deciders,
    over_budget,
    spent,
)
from .restart_policy import apply_exit, apply_loss, apply_start, stop_task
from .start_barrier import advance_barrier, next_attempt, restart_barrier, starting_services, startup_timeout
from .until_metrics import until_result

ROLLING_RESTART_SECONDS = 2.0
"""A rolling restart continues with the next task when the present one has run this long."""

GATHER_SECONDS = 1.0
"""A rolling restart begins so long after the last request for it: requests arrive in parallel and in any order."""

LOST_SECONDS = 10.0
"""A rolling restart waits so long for the launcher of an optional worker."""

_MAX_FENCED = 32
"""How many earlier launchers of a task are remembered."""

MAX_UNOBSERVED_SECONDS = 3600.0
"""While no controller runs, so much time at most counts for the budget: the clock of a machine that has just booted may be wrong."""

RESTARTED, REPLACED = "restarted", "replaced"
"""What a user can request for one task."""


def apply_report(run: RunState, report: LauncherReport, now: float) -> List[Event]:
    """Update the run's state by a launcher's report."""
    happened = _apply_report(run, report, now)
    task, former = run.tasks.get(report.hostname), run.former.get(report.hostname)
    runs = report.phase == sync.RUNNING
    if task is not None and task.report.instance == report.instance:
        has_ended = task.state in FINAL or run.result is not None
        task.at_rest = not runs and has_ended and not may_finish(run, task, now)
        if former is not None:
            former.seen = 0.0
    elif former is not None and report.instance == former.instance:
        former.seen = now if runs else 0.0
    return happened


def _apply_report(run: RunState, report: LauncherReport, now: float) -> List[Event]:
    task = run.tasks.get(report.hostname) or _restore_removed_task(run, report)
    if task is None or _is_fenced(task, report):
        return []
    happened = adopt_attempts(run, task, report, now)
    happened += _register_launcher(run, task, report, now) if report.instance != task.report.instance else []
    happened += _note_problems(task, report)
    task.report, task.seen = report, now
    if report.run_id != run.spec.id:
        return happened + _discard_preparation(run, task, now)
    task.host, task.port, task.ready = report.host, report.port, report.ready
    if run.result is not None and may_restart(run, task, now):
        run.address_book[task.hostname] = task.address  # no other task connects to it
    if report.attempt != task.attempt or task.state in FINAL:
        return happened
    task.started = report.started or task.started
    if report.phase == sync.RUNNING and task.state != RUNNING:
        return [*happened, apply_start(task, now - report.running_seconds)]
    if report.phase == sync.EXITED and report.exit is not None:
        end = report.exit if run.spec.artifacts else replace(report.exit, unstored=[])
        return [*happened, apply_exit(run, task, end, now), *_lost_at_success(task, end)]
    return happened


def _lost_at_success(task: TaskState, end: Ended) -> List[Event]:
    """Events of what a program that has succeeded has lost."""
    killed = Event(events.PROCESSES_KILLED, task=task.hostname, commands=end.killed)
    unstored = Event(events.MODELS_NOT_STORED, task=task.hostname, artifacts=end.unstored)
    return [event for event in (killed, unstored) if event.commands or event.artifacts]


def _is_fenced(task: TaskState, report: LauncherReport) -> bool:
    """Whether the report is of a launcher that another has replaced, as on a machine that was unreachable for a while."""
    is_older = report.instance != task.report.instance and 0 < report.generation < task.generation
    return is_older or report.instance in task.fenced


def _is_early(run: RunState, report: LauncherReport) -> bool:
    """Whether the report is of the first launcher of a task that the run does not have yet: an update creates tasks, then submits
    the run."""
    has_served = report.generation > 0 or report.phase != sync.IDLE
    return not has_served and report.instance != run.as_former(report.hostname).instance


def _note_problems(task: TaskState, report: LauncherReport) -> List[Event]:
    """Events of what the launcher cannot do for now, and of output that it dropped, once that has ended."""
    happened = []
    if report.problem not in ("", task.report.problem):
        happened.append(Event(events.LAUNCHER_PROBLEM, task=task.hostname, reason=report.problem))
    count = report.dropped_bytes - task.dropped_reported
    if count > 0 and (report.exit is not None or report.dropped_bytes == task.report.dropped_bytes):
        happened.append(Event(events.OUTPUT_DROPPED, task=task.hostname, count=count))
        task.dropped_reported = report.dropped_bytes
    return happened


def announce_new_launcher(run: RunState, hostname: str, action: str) -> List[Event]:
    """The user restarts or replaces this task (`action`): its next launcher starts the program without a back-off."""
    if hostname not in run.tasks:
        return []
    run.tasks[hostname].user_action = action
    kind = events.RESTART_REQUESTED if action == RESTARTED else events.REPLACE_REQUESTED
    return [Event(kind, task=hostname)]


def remove_tasks(run: RunState, hostnames: List[str]) -> List[Event]:
    """Remove tasks from the run. In a run that has ended, training tasks stay as part of its account."""
    present = [name for name in hostnames if name in run.tasks]
    for name in present:
        run.former[name] = run.as_former(name)
        if run.result is None or run.tasks[name].is_auxiliary:
            del run.tasks[name]
    return [Event(events.TASK_REMOVED, task=name) for name in present]


def stop_run(
    run: RunState, now: float, auxiliary: bool = True, time_limit: float = 0.0, to_move: bool = False
) -> List[Event]:
    """Stop the run: by the user's request, because its time limit, in seconds, is over, or `to_move` it to another backend. With
    `auxiliary` its auxiliary tasks stop too, such as TensorBoard. A run that has a result keeps it, and its tasks that still run are
    stopped; one that was stopped before it moves continues then."""
    run.stop_requested = run.stop_requested or auxiliary
    run.stopped_at = run.stopped_at or now
    if run.result is not None:
        if to_move and run.result.state == STOPPED:
            run.result = replace(run.result, cause=MOVED)
        names = [task.hostname for task in run.tasks.values() if task.is_auxiliary]
        return [Event(events.STOP_REQUESTED, tasks=names)] if auxiliary and names else []
    cause = MOVED if to_move else TIME_LIMIT if time_limit else STOP_REQUESTED
    run.result = RunResult(STOPPED, cause, now, seconds=time_limit)
    return [Event(events.RUN_ENDED, result=run.result)]


def _is_over(run: RunState, task: TaskState) -> bool:
    """Whether the task must stop because the run has ended. An auxiliary task stops only when the user stops the run."""
    return run.result is not None and (run.stop_requested or not task.is_auxiliary)


def _restore_removed_task(run: RunState, report: LauncherReport) -> Optional[TaskState]:
    """Add a task again that was removed, when the run still has it and another launcher reports for it."""
    former = run.former.get(report.hostname)
    if former is not None and report.instance != former.instance:
        for task in run.spec.tasks:
            if task.hostname == report.hostname:
                run.tasks[task.hostname] = _added_task(run, task)
    return run.tasks.get(report.hostname)


def _added_task(run: RunState, task: TaskSpec) -> TaskState:
    """A task at its beginning; one that was removed before continues with the next attempt, and its former launcher is fenced."""
    former = run.as_former(task.hostname)
    added = TaskState(**vars(task), attempt=former.attempt + 1)
    _fence_former(added, former)
    return added


def _fence_former(task: TaskState, former: FormerTask) -> None:
    """Fence the launcher that the task had when it was removed: its machine may only be cut off."""
    task.generation, task.fenced = former.generation, list(filter(None, [former.instance]))


def _register_launcher(run: RunState, task: TaskState, report: LauncherReport, now: float) -> List[Event]:
    happened = [Event(events.LAUNCHER_REGISTERED, task=task.hostname)]
    is_same = (report.run_id, report.attempt) == (run.spec.id, task.attempt)
    is_running = is_same and report.phase == sync.RUNNING  # it is known to all but a restored record
    if task.state == RUNNING and not is_running and not (is_same and report.exit is not None):
        happened.insert(0, Event(events.LAUNCHER_LOST, task=task.hostname, attempt=task.attempt))
        if run.result and _is_over(run, task) and not may_restart(run, task, now):
            stop_task(task, run.result, now)
        else:
            apply_loss(task, now)
            task.attempt += 1
    is_started_again = task.is_auxiliary or (bool(task.user_action) and elastic.is_left_out(run, task))
    if is_started_again and task.state in FINAL and not run.stop_requested:
        task.state, task.attempt, task.failures = STARTING, task.attempt + 1, 0
    if task.state not in FINAL and not (task.state == RUNNING and is_running):
        task.state, task.reason = STARTING, ""
    if task.user_action:
        task.user_action, task.not_before, task.losses = "", 0.0, 0
    task.generation = max(task.generation + (report.generation == 0), report.generation)
    task.fenced = [*task.fenced, *filter(None, [task.report.instance])][-_MAX_FENCED:]
    task.ready, task.dropped_reported = False, 0
    return happened


def _discard_preparation(run: RunState, task: TaskState, now: float) -> List[Event]:
    """The launcher has prepared another run: it is not ready for this one, whatever the state of this run has recorded."""
    if not task.ready or task.state in FINAL:
        return []
    if task.is_auxiliary or elastic.joins_alone(run.spec, task):
        next_attempt(run, task)
        task.ready = False
    else:
        restart_barrier(run, now)
    return [Event(events.LAUNCHER_REUSED, task=task.hostname)]


def advance(run: RunState, now: float) -> List[Event]:
    """Update what follows from time and from the tasks' states: start barrier, timeout, rolling restart, result. A controller that was
    away hears its launchers first."""
    happened: List[Event] = []
    if is_hearing(run, now):
        return happened
    if run.result is None:
        happened += advance_barrier(run, now)
        happened += _advance_rolling_restart(run, now)
        note_removed_deciders(run, now)
        run.result = startup_timeout(run, now) or decide(run, now)
        if run.result is None:
            run.result = until_result(run, now) or over_budget(run, now)
            run.stopped_at = now if run.result else run.stopped_at
        if run.result is not None:
            happened.append(Event(events.RUN_ENDED, result=run.result))
    elif run.result.state == SUCCEEDED and not run.stopped_at and over_budget(run, now):
        happened += _stop_finishing(run, now)
    if run.result is not None:
        idle = [task for task in run.tasks.values() if task.state not in FINAL and task.state != RUNNING]
        for task in idle:
            if _is_over(run, task) and not may_finish(run, task, now):
                stop_task(task, run.result, now)
    artifact_uploads.request_uploads(run, now)
    return happened


def _stop_finishing(run: RunState, now: float) -> List[Event]:
    """The budget is used up after the success of the run: the tasks that still have time are stopped."""
    names = [task.hostname for task in run.training_tasks if may_finish(run, task, now)]
    run.stopped_at = now if names else 0.0
    return [Event(events.STOP_REQUESTED, tasks=names, reason=AT_BUDGET)] if names else []


def queue_restarts(run: RunState, hostnames: List[str], now: float) -> None:
    """Restart these tasks one at a time, in the order of job and index. The task that is being restarted is restarted again."""
    run.restart_queue = [name for name in run.tasks if name in {*run.restart_queue, *hostnames}]
    run.restart_from = now + GATHER_SECONDS
    if run.restarting_task in hostnames:
        run.restarting_task = ""


def _advance_rolling_restart(run: RunState, now: float) -> List[Event]:
    if not run.restart_queue or (not run.restarting_task and now < run.restart_from):
        return []
    name = run.restarting_task or run.restart_queue[0]
    task = run.tasks.get(name)
    if task is not None and task.state not in FINAL and not run.restarting_task:
        run.restarting_task = name
        next_attempt(run, task)
        return [Event(events.SETTINGS_CHANGED, task=name)]
    is_done = task is None or task.state in FINAL or _is_lost_worker(run, task, now)
    if is_done or (task and task.state == RUNNING and now - task.since > ROLLING_RESTART_SECONDS):
        run.restart_queue = [other for other in run.restart_queue if other != name]
        run.restarting_task = ""
    return []


def _is_lost_worker(run: RunState, task: TaskState, now: float) -> bool:
    return elastic.joins_alone(run.spec, task) and task.state != RUNNING and now - task.seen > LOST_SECONDS


def make_order(run: RunState, report: LauncherReport, now: float) -> Order:
    """What the launcher that has reported should do now. One that another has replaced exits, whatever it did meanwhile."""
    task = run.tasks.get(report.hostname)
    if task is None and _is_early(run, report):
        return Order(sync.NOTHING, run.spec.grace)
    if task is None or _is_fenced(task, report):
        return Order(sync.END, run.spec.grace)
    order = replace(_current_order(run, task, report, now), generation=task.generation)
    if order.action not in (sync.RUN, sync.WAIT):
        return order
    # A launcher that waits for the end of a back-off has the failure before it.
    failures = task.failures - (task.state == RESTARTING)
    return replace(order, restart=_launchers_policy(run, task), failures=failures)


def note_order(run: RunState, report: LauncherReport, order: Order) -> None:
    """This order is the response to the report: the launcher may exit by it."""
    task = run.tasks.get(report.hostname)
    if task is not None and task.report.instance == report.instance:
        task.exits = order.action == sync.END and order.upload is None


def _launchers_policy(run: RunState, task: TaskState) -> Optional[RestartPolicy]:
    """The policy by which a launcher starts the program again while the controller is away. None where that needs a decision: the run
    is over, or its tasks have not all the same addresses."""
    is_current = run.address_book.get(task.hostname, task.address) == task.address
    has_addresses = task.ready and is_current and elastic.may_have_started(run, task)
    if _is_over(run, task) or not (has_addresses or task.is_auxiliary):
        return None
    return run.spec.jobs[task.job].restart


def _current_order(run: RunState, task: TaskState, report: LauncherReport, now: float) -> Order:
    """The order for a task's current launcher."""
    hostname, grace, run_id = task.hostname, run.spec.grace, run.spec.id
    if task.state == INTERRUPTED and artifact_uploads.is_asked(run, hostname):
        return Order(sync.STOP, grace, run_id, upload=artifact_uploads.request_to(run, hostname))
    if task.state in FINAL:
        if not artifact_uploads.is_asked(run, hostname):
            return Order(sync.END, grace)
        request = artifact_uploads.request_to(run, hostname)
        return Order(sync.END, grace, run_id, upload=request) if request else Order(sync.STOP, grace)
    if _is_over(run, task) and not may_finish(run, task, now):
        return Order(sync.STOP, grace)
    wait = Order(sync.WAIT, grace, run_id, task.attempt)
    if now < task.not_before:
        return wait
    if not task.ready:
        port = task.port or (TENSORBOARD_PORT if task.is_auxiliary else elastic.reserved_port(run, hostname))
        return Order(sync.PREPARE, grace, run_id, task.attempt, run.spec, port)
    if task.is_auxiliary:
        book = [TaskAddress(hostname, task.job, task.index, task.address)]
        return Order(sync.RUN, grace, run_id, task.attempt, address_book=book)
    if _has_to_wait(run, task, now):
        return wait
    if (report.phase, report.run_id, report.attempt) == (sync.RUNNING, run_id, task.attempt):
        # It has its address book, which is long for many tasks.
        upload = artifact_uploads.checkpoints_from(run, hostname)
        return Order(sync.RUN, grace, run_id, task.attempt, upload=upload)
    return Order(sync.RUN, grace, run_id, task.attempt, address_book=elastic.address_book(run, task))


def _has_to_wait(run: RunState, task: TaskState, now: float) -> bool:
    """Whether a task that is ready does not start yet: for the start barrier, or for services."""
    if not run.barrier_passed or run.address_book.get(task.hostname, task.address) != task.address:
        return True
    return task.state != RUNNING and not run.spec.is_service(task.job) and bool(starting_services(run, now))


def resume_run(run: RunState, now: float) -> None:
    """Make an earlier run the current one again. An unfinished one begins with a new start barrier."""
    if run.result is None:
        restart_barrier(run, now)


def update_spec(run: RunState, spec: RunSpec, now: float) -> List[Event]:
    """Apply other counts or policies to the same run. When training tasks were added or removed, all start again with new flags; in an
    elastic run the others continue, if these are optional workers."""
    before = [task.hostname for task in run.training_tasks]
    planned = {task.hostname for task in spec.tasks}
    run.former.update({name: run.as_former(name) for name in run.tasks if name not in planned})
    is_elastic, is_resized = elastic.tasks_continue(run.spec, spec), run.spec.max_workers != spec.max_workers
    if (run.spec.until, run.spec.metrics) != (spec.until, spec.metrics):
        run.reached, run.until_problems = [], []
    if run.spec.worker_port != spec.worker_port:
        run.reserved = {}
    inherit_cost(run, run, now)
    run.spec, run.stop_requested = spec, False
    run.tasks = {task.hostname: run.tasks.get(task.hostname) or _added_task(run, task) for task in spec.tasks}
    after = [task.hostname for task in run.training_tasks]
    changed = (after != before or is_resized) and run.result is None
    all_restart = changed and not is_elastic
    for task in run.training_tasks if all_restart else []:
        if task.state == SUCCEEDED:  # the others would get the address of a program that has ended
            task.state = STARTING
            task.end = None
    if all_restart or not run.barrier_passed:
        restart_barrier(run, now)
    kind = events.TASKS_CHANGED if all_restart else events.WORKERS_CHANGED
    return [Event(kind, tasks=after)] if changed else []


def inherit_fences(run: RunState, before: RunState) -> None:
    """Launchers that were fenced in the run before are fenced in this one: a launcher lives longer than a run. Its last report is known
    until it reports again."""
    for name in {*before.tasks, *before.former}:
        run.former[name] = replace(before.as_former(name), attempt=run.as_former(name).attempt)
    for name, task in run.tasks.items():
        earlier = before.tasks.get(name)
        if earlier is not None:
            task.fenced, task.generation = list(earlier.fenced), earlier.generation
        elif name in before.former:
            _fence_former(task, before.former[name])


def inherit_cost(run: RunState, before: RunState, now: float) -> None:
    """What the machines have cost until now, in the run before or with the specification before, counts on in this run."""
    run.cost_before, run.cost_since = spent(before, now), now


def shift_clock(run: RunState, seconds: float) -> None:
    """Correct all times that durations are measured from, after the wall clock was set by so many seconds."""
    run.waiting_since += seconds
    run.restart_from += seconds
    run.stopped_at += seconds if run.stopped_at else 0.0
    run.cost_since += seconds
    run.reached_at += seconds
    run.undecided_since += seconds if run.undecided_since else 0.0
    run.listening_since += seconds
    artifact_uploads.shift_clock(run, seconds)
    for task in run.tasks.values():
        task.not_before += seconds
        task.since += seconds
        task.seen += seconds if task.seen else 0.0
    for former in run.former.values():
        former.seen += seconds if former.seen else 0.0
    if run.result is not None:
        run.result = replace(run.result, at=run.result.at + seconds)


def recover_clock(run: RunState, now: float, last_alive: float) -> None:
    """No controller ran since `last_alive`. The clock may have been set meanwhile: nothing waits longer than it would have, and the
    budget is not used up by that. Metrics by which conditions of `until` held are read again."""
    listen_again(run, now, now - last_alive if last_alive else 0.0)
    run.restart_from = min(run.restart_from, now + GATHER_SECONDS)
    run.stopped_at = min(run.stopped_at, now)
    counted_until = max(run.cost_since, last_alive)
    unobserved = now - counted_until
    run.cost_since += unobserved - min(max(0.0, unobserved), MAX_UNOBSERVED_SECONDS)
    run.reached = []
    if run.result is not None:
        run.result = replace(run.result, at=min(run.result.at, now))
    for task in run.tasks.values():
        task.not_before = min(task.not_before, now + max(task.restart_delay, MAX_BACKOFF if task.losses > 1 else 0.0))
        task.since, task.seen = min(task.since, now), min(task.seen, now)
