"""A report: expected and observed state as the component's outputs, tables and metrics. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..agent.control.end_policy import end_of_time, finishing_evaluator, finishing_workers, is_worker
from ..agent.control.start_barrier import tasks_not_ready
from ..agent.model import run_state as states
from ..agent.model.run_state import RunState, TaskState
from ..agent.model.task_command import shown_command
from ..agent.record.metric_values import number_in
from ..agent.record.progress import Progress
from ..agent.record.stored_artifact import CHECKPOINT, FILES, StoredArtifact
from ..agent.record.terminal_text import shown_text
from ..backends.base import GONE, EngineTask, ObservedState
from ..outputs import ArtifactRow, CostSummary, MachineRow, TaskRow
from ..units import moment, named, text_of_number, text_of_seconds
from .events import exit_text, reason_text, restart_text, result_text
from .expected_state import ExpectedMachine, ExpectedState, ExpectedTask
from .program_problems import Finding, failures, program_problems, warnings
from .progress import with_goals
from .tables import status_text

SILENT_SECONDS = 15.0
"""A launcher that has not reported to the controller for this long is unreachable."""

END_SECONDS = 2 * SILENT_SECONDS
"""A task that is silent or lost when the run ends has this long to report its end. Most such launchers are restarted."""

_JUST_NOW_SECONDS = 3.0
"""An engine reports the start of a task a moment after its launcher does."""

_COPY_SECONDS = 60.0
"""An update waits so long for the artifacts of a run that has ended."""

_REJECTED = "rejected"
_INSTALLING = "installing packages"

_MAX_LATE, _MAX_MISSING = 3, 5
"""How many tasks that the others wait for are named."""


@dataclass(frozen=True)
class Report:
    """A cluster at one moment: the outputs of the component, and what the page needs beside them."""

    state: str
    reason: str
    tasks: list[TaskRow]
    machines: list[MachineRow]
    logs: dict[str, list[str]]
    metrics: dict[str, Any]
    endpoints: dict[str, str]
    observed_at: str
    status: str
    run: str
    decided: bool
    """Whether the run has a result. Some of its tasks may still be ending."""
    finished: bool
    """Whether the run has a result, and its training tasks have ended."""
    cost: CostSummary
    timed: dict[str, list[tuple[float, str]]]
    """The last lines of each task with their times, in seconds since 1970."""
    progress: dict[str, Progress] = field(default_factory=dict)
    """Hostname to the progress of the training; those that print most about it come first."""
    failures: list[Finding] = field(default_factory=list)
    """Of a failed run, the tasks that failed: training tasks first, in the order of time."""
    problems: list[Finding] = field(default_factory=list)
    """Tasks that wait for a machine, or for a peer, that does not respond, workers that never trained, metrics that no condition of
    `until` can be decided by, a record that is lost with its machine, and what a run has lost that has succeeded."""
    train_dir: str = ""
    """The folder of the run, as its tasks have it."""
    artifacts: list[ArtifactRow] = field(default_factory=list)
    is_uploading: bool = False
    """Whether artifacts of the run are about to arrive on this computer."""
    sentences: str = ""
    """The state of the run in words: its result, which workers still train, and why it failed."""
    took: str = ""
    """How long the run took, or takes until now; empty if there is none."""
    withheld: str = ""
    """Of an update: why what depends on the cluster is not created; empty where it is."""
    time_left: str = ""
    """After the success of the run, which workers are waited for, whether the evaluator is, and for how long at most."""


def report(expected: ExpectedState, observed: ObservedState) -> Report:
    """The report on a cluster."""
    run_state = observed.view.run_state
    tasks = [_task_row(expected, run_state, task, observed) for task in expected.tasks]
    chosen = [row["machine"] for task, row in zip(expected.tasks, tasks, strict=True) if not task.machine]
    placed = map(ExpectedMachine, dict.fromkeys(filter(None, chosen)))
    machines = [_machine_row(machine, observed) for machine in (*expected.machines, *placed)]
    state, reason = _state(run_state, observed)
    failed = failures(observed)
    warned = warnings(observed)
    left = _time_left(run_state, observed)
    sentences = f"Run {state}{f': {reason}' if reason else ''}.{f' {left}' if left else ''}{_cause_text(failed)}"
    sentences += "".join(f"\n{warning.sentences}" for warning in warned)
    timed = {
        task.hostname: [(line.at, shown_text(line.text)) for line in observed.view.logs.get(task.hostname, [])]
        for task in expected.tasks
    }
    return Report(
        state=state,
        reason=reason,
        tasks=tasks,
        machines=machines,
        logs={hostname: [text for _, text in lines[-expected.log_lines :]] for hostname, lines in timed.items()}
        if expected.log_lines
        else {},
        metrics={name: metric_value(observed.view.metrics.get(name)) for name in expected.metrics},
        endpoints={row["hostname"]: row["address"] for row in tasks if row["address"] and _may_listen(row, run_state)},
        observed_at=moment(observed.at),
        status=f"{status_text(machines, tasks)}\n\n{sentences}",
        run=run_state.spec.id if run_state else "",
        decided=run_state is not None and run_state.result is not None,
        finished=_is_finished(run_state, observed),
        cost=_cost(observed, expected),
        timed=timed,
        progress=with_goals(observed.view.progress, {row["hostname"]: row["command"] for row in tasks}),
        failures=failed,
        problems=[*program_problems(observed), *warned],
        train_dir=run_state.spec.train_dir if run_state else "",
        artifacts=_artifact_rows(observed),
        is_uploading=_is_uploading(observed),
        sentences=sentences,
        took=took(run_state, run_end(run_state) or observed.at) if run_state else "",
        time_left=left,
    )


def _may_listen(row: TaskRow, run_state: RunState | None) -> bool:
    """Whether something may listen at the address of a task: after the run nothing does at that of one that has ended."""
    task = run_state.tasks.get(row["hostname"]) if run_state else None
    return task is None or run_state is None or run_state.result is None or task.state not in states.FINAL


def run_end(run_state: RunState) -> float:
    """When the last training task of a run with a result ended; 0 without a result."""
    if run_state.result is None:
        return 0.0
    return max([run_state.result.at, *(task.ended for task in run_state.training_tasks)])


def took(run_state: RunState, end: float) -> str:
    """How long a run took until this end of it."""
    return text_of_seconds(max(0.0, end - run_state.submitted_at))


def _is_finished(run_state: RunState | None, observed: ObservedState) -> bool:
    """Whether the run has a result and no training task is still ending.

    A task that is not seen to run ends too, because its launcher is silent for a moment, or is about to be restarted. It is waited
    for until `END_SECONDS` after its grace, unless its machine is gone.
    """
    if run_state is None or run_state.result is None:
        return False
    begin, end = run_state.result.at - END_SECONDS, _end_of_time(run_state) + run_state.spec.grace + END_SECONDS
    open_tasks = [task for task in run_state.training_tasks if task.state not in states.FINAL]
    if begin < observed.view.at < end:
        return all(observed.machines.status(task.report.machine) == GONE for task in open_tasks)
    return not any(task_status(task, observed) == states.RUNNING for task in open_tasks)


def _end_of_time(run_state: RunState) -> float:
    """When the last training task of a run with a result has to end, its grace not included: at the result; after a success when the
    other workers and the evaluator have ended, or their time has passed; or when the user stops the run."""
    result = run_state.result
    assert result is not None
    if run_state.stopped_at or result.state != states.SUCCEEDED:
        return max(result.at, run_state.stopped_at)
    tasks = [task for task in run_state.training_tasks if is_worker(run_state, task) or task.job == states.EVALUATOR]
    ends = (task.since if task.state in states.FINAL else end_of_time(run_state, task) for task in tasks)
    return max([result.at, *ends])


def _time_left(run_state: RunState | None, observed: ObservedState) -> str:
    """Which workers still train after the success of the run, and whether the evaluator does not have the last checkpoint yet: how long
    they may; empty for none."""
    if run_state is None or run_state.result is None:
        return ""
    return " ".join(filter(None, [_workers_left(run_state, observed), _evaluator_left(run_state, observed)]))


def _workers_left(run_state: RunState, observed: ObservedState) -> str:
    workers = finishing_workers(run_state, observed.view.at)
    if not workers:
        return ""
    seconds = end_of_time(run_state, workers[0]) - observed.view.at
    names = named([task.hostname for task in workers], _MAX_LATE)
    have, itself = ("has", "itself") if len(workers) == 1 else ("have", "themselves")
    return f"{names} {have} {text_of_seconds(seconds)} left to end by {itself} (`worker_timeout`)."


def _evaluator_left(run_state: RunState, observed: ObservedState) -> str:
    evaluator = finishing_evaluator(run_state, observed.view.at)
    if evaluator is None:
        return ""
    end = moment(end_of_time(run_state, evaluator))
    return (
        f"Waiting for {evaluator.hostname} to evaluate the last checkpoint, at most until {end} (`evaluator_timeout`)."
    )


def metric_value(text: str | None) -> Any:
    """A metric's text as a float if it is a finite number: whole numbers too, so that the type of a metric does not change.

    Pulumi's outputs are JSON, which has no infinity and no NaN: those remain text.
    """
    if text is None:
        return None
    number = number_in(text)
    return shown_text(text) if number is None else number


def metric_text(value: object, missing: str = "") -> str:
    """The value of a metric as text."""
    return missing if value is None else text_of_number(value) if isinstance(value, float) else str(value)


def _state(run_state: RunState | None, observed: ObservedState) -> tuple[str, str]:
    """The state of the run, and the reason for it."""
    problems, missing = "; ".join(observed.problems), "; ".join(filter(None, missing_text(observed)))
    silent_since = observed.controller_silent_since
    if observed.installing and (run_state is None or run_state.result is not None):
        return "starting", observed.installing
    if run_state is None:
        if silent_since is None or observed.engine:
            return "starting", problems or "no run was submitted yet"
        return states.UNKNOWN, problems or "not deployed"
    if run_state.result is not None:
        return run_state.result.state, result_text(run_state.result)
    if silent_since is not None:
        silent = f"the controller is {_unreachable(silent_since)}"
        return states.UNKNOWN, "; ".join(filter(None, [silent, *observed.problems, missing]))
    if not run_state.tasks:
        return "starting", "it has no tasks, because all of them were removed"
    started = any(task.started for task in run_state.training_tasks)
    return ("running" if started else "starting"), missing or _late(run_state)


def missing_text(observed: ObservedState) -> tuple[str, str]:
    """What the cluster should have and does not, and what makes it again; both empty for nothing."""
    if not observed.missing:
        return "", ""
    is_one = len(observed.missing) == 1
    text = f"{named(observed.missing, _MAX_MISSING)} {'is' if is_one else 'are'} gone or cannot be used"
    return text, f"`pulumi up --refresh` creates {'it' if is_one else 'them'} again"


def _late(run_state: RunState) -> str:
    """Which tasks the others wait for, and since when; empty when none does."""
    late = tasks_not_ready(run_state)
    if run_state.barrier_passed or not any(task.state == states.WAITING for task in run_state.training_tasks):
        return ""
    return f"waiting for {named(late, _MAX_LATE)} since {moment(run_state.waiting_since)}"


def task_status(task: TaskState, observed: ObservedState) -> str:
    """The status of a task.

    If the controller has seen the end of a task, that is its status. Otherwise the engine knows whether its launcher runs, and the
    controller whether its program runs. If the one that knows does not respond, the task is unreachable.
    """
    if task.state in states.FINAL:
        return _final_status(task)
    engine = (observed.engine or {}).get(task.hostname)
    if observed.machines.status(task.report.machine) == GONE:
        engine = None  # a Swarm still lists it for a while
        if task.is_auxiliary:
            return f"{states.STOPPED} (with its machine)"
    if engine is not None and _engine_knows_more(engine, task, observed):
        return f"{engine.state} ({engine.reason})" if engine.reason else engine.state
    if observed.controller_silent_since is not None:
        begins = not observed.controller_silent_since and engine is not None
        return states.STARTING if begins else _unreachable(observed.controller_silent_since)
    if observed.engine is not None and task.report.instance and (engine is None or not engine.alive):
        return states.LOST if task.state != states.INTERRUPTED else states.INTERRUPTED
    run = observed.view.run_state
    if task.seen and run is not None and run.silent_seconds(task, observed.view.at) > SILENT_SECONDS:
        return _unreachable(task.seen)
    if task.state == states.WAITING:
        return f"waiting for {task.waiting_for}"
    if task.state == states.RESTARTING:
        return f"restarting {restart_text(task.restart_delay, task.failures, task.max_failures)}"
    return task.state


def _engine_knows_more(engine: EngineTask, task: TaskState, observed: ObservedState) -> bool:
    """Whether the engine is starting the task, or cannot: the controller does not see either."""
    machine = observed.machines.statuses.get(task.report.machine, "")
    if engine.state == states.SCHEDULED and machine.startswith(states.UNREACHABLE):
        return False
    if engine.state in states.ENGINE_STARTING:
        return task.state != states.RUNNING or observed.view.at - task.seen > _JUST_NOW_SECONDS
    return bool(engine.reason) and not engine.alive and (not task.report.instance or engine.state == _REJECTED)


def _unreachable(since: float) -> str:
    return f"{states.UNREACHABLE} since {moment(since)}" if since else states.UNREACHABLE


def _final_status(task: TaskState) -> str:
    ended = task.state in (states.FAILED, states.KILLED)
    detail = exit_text(task.end) if ended else task.reason if task.state == states.STOPPED else ""
    return f"{task.state} ({detail})" if detail else task.state


def _task_row(
    expected: ExpectedState, run_state: RunState | None, planned: ExpectedTask, observed: ObservedState
) -> TaskRow:
    hostname = planned.hostname
    task = (run_state.tasks.get(hostname) if run_state else None) or TaskState(hostname, planned.job, planned.index)
    engine = (observed.engine or {}).get(hostname)
    unknown = run_state is None and observed.controller_silent_since is not None and engine is None
    status = states.SCHEDULED if unknown else task_status(task, observed)
    return {
        "hostname": hostname,
        "job": planned.job,
        "index": planned.index,
        "machine": task.report.machine or planned.machine,
        "container": (engine.container if engine else "") or task.report.container,
        "command": _command(run_state, planned.job) or planned.command or expected.command,
        "status": _INSTALLING if observed.installing and status in states.ENGINE_STARTING else status,
        "exit_code": task.exit_code,
        "created": moment(task.report.created),
        "address": task.address if task.port else "",
        "public_ip": observed.machines.addresses.get(task.report.machine or planned.machine, ""),
    }


def _command(run_state: RunState | None, job: str) -> str:
    """The command of a job in this run; empty if there is no run."""
    if run_state is None:
        return ""
    spec = run_state.spec
    job_command = spec.jobs[job].command if job in spec.jobs else []
    return shown_command(job_command or spec.command)


def _machine_row(machine: ExpectedMachine, observed: ObservedState) -> MachineRow:
    return {
        "machine": machine.machine,
        "role": machine.role,
        "provider": machine.provider,
        "region": machine.region,
        "size": machine.size,
        "public_ip": observed.machines.addresses.get(machine.machine, machine.public_ip),
        "status": observed.machines.status(machine.machine),
    }


def _artifact_rows(observed: ObservedState) -> list[ArtifactRow]:
    """The output `artifacts`: what is stored, then what is not."""
    view = observed.view
    if view.run_state is None:
        return []
    run, uploads = view.run_state.spec, view.run_state.uploads.items()
    folder = f"{observed.record_folder}/runs/{run.id}/artifacts"
    rows = [_artifact_row(artifact, folder) for artifact in view.artifacts]
    rows += [_missing_artifact(item.name, item.size, f"{reason_text(item.reason)}.") for item in view.left_out]
    for machine, upload in uploads:
        if upload.state in (states.UPLOAD_LOST, states.UPLOAD_GIVEN_UP):
            silent = f"the launcher of {upload.task} on {machine} did not respond"
            text = f"{silent}, so that models and checkpoints there were not uploaded."
            rows.append(_missing_artifact(run.train_dir, 0, text))
    return rows


def _artifact_row(artifact: StoredArtifact, folder: str) -> ArtifactRow:
    path = artifact.name if artifact.kind == CHECKPOINT else artifact.path
    place = folder if artifact.kind == FILES or path == "." else f"{folder}/{path}"
    problem = "" if artifact.is_complete else "It is not on this computer yet: `pulumi up` copies it."
    return {
        "name": artifact.name,
        "kind": artifact.kind,
        "size": artifact.size,
        "path": place if artifact.is_complete else "",
        "problem": problem,
    }


def _missing_artifact(name: str, size: int, sentence: str) -> ArtifactRow:
    return {"name": name, "kind": "", "size": size, "path": "", "problem": sentence[0].upper() + sentence[1:]}


def _is_uploading(observed: ObservedState) -> bool:
    """Whether artifacts of a run that has ended are about to arrive on this computer, and that does not take too long."""
    run_state = observed.view.run_state
    if run_state is None or observed.controller_silent_since is not None or not run_state.uploads:
        return False
    since = max(upload.at for upload in run_state.uploads.values())
    is_open = any(upload.state in (states.UPLOADING, states.UPLOAD_WAITS) for upload in run_state.uploads.values())
    is_incomplete = any(not artifact.is_complete for artifact in observed.view.artifacts)
    return (is_open or is_incomplete) and observed.view.at - since < _COPY_SECONDS


def _cost(observed: ObservedState, expected: ExpectedState) -> CostSummary:
    """The output `cost`: what the plan knows, and what was observed; empty where nothing is billed."""
    return {**expected.cost, **observed.cost} if observed.cost is not None else {}


def _cause_text(failed: Sequence[Finding]) -> str:
    """What the first task that failed printed last, and what to do; each is a line. Empty for none."""
    if not failed:
        return ""
    first = failed[0]
    lines = [f"{first.about}: {first.lines[0]}"] if first.lines else []
    return "".join(f"\n{line}" for line in [*lines, first.remedy])
