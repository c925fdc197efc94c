"""What was seen becomes what people read: rows, tables, metrics, endpoints. Pure."""

import datetime
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .agent.states import (
    FAILED,
    FINAL,
    INTERRUPTED,
    KILLED,
    LOST,
    RESTARTING,
    RUNNING,
    SCHEDULED,
    STARTING,
    STOPPED,
    TENSORBOARD,
    UNKNOWN,
    UNREACHABLE,
    WAITING,
    Job,
    Task,
)
from .backends.base import GONE, EngineTask, Sight
from .outline import MachineOutline, Outline, TaskOutline
from .quantities import dollars

SILENT_SECONDS = 15.0
"""A launcher that the keeper has not heard for so long is unreachable."""

_SHOWN_COMMAND = 40
_JUST_NOW_SECONDS = 3.0
"""An engine tells of a task's start a moment after the launcher did."""

_REJECTED = "rejected"
_ON_THE_WAY = ("scheduled", "pulling", "starting")
"""The engine's words for a task that it brings (`EngineTask.word`)."""


@dataclass(frozen=True)
class Report:
    """One look at a cluster, in the words and shapes of the component's outputs."""

    state: str
    reason: str
    tasks: list[dict[str, Any]]
    machines: list[dict[str, Any]]
    logs: dict[str, list[str]]
    metrics: dict[str, Any]
    endpoints: dict[str, str]
    observed_at: str
    status: str
    run: str
    decided: bool
    cost: dict[str, Any]
    timed: dict[str, list[tuple[float, str]]]
    """The last lines with the time at which each came, in seconds since 1970."""


def report(outline: Outline, sight: Sight) -> Report:
    """The report of one look at the cluster of this shape."""
    data = sight.view["job"]
    job = Job.from_dict(data) if data else None
    tasks = [_task_row(outline, job, planned, sight) for planned in outline.tasks]
    machines = [_machine_row(machine, sight) for machine in outline.machines]
    state, reason = _state(job, sight)
    timed = {task.hostname: _lines(sight, task.hostname) for task in outline.tasks}
    return Report(
        state=state,
        reason=reason,
        tasks=tasks,
        machines=machines,
        logs={hostname: [text for _, text in lines[-outline.log_lines :]] for hostname, lines in timed.items()}
        if outline.log_lines
        else {},
        metrics={name: _typed(sight.view["metrics"].get(name)) for name in outline.metrics},
        endpoints={row["hostname"]: row["address"] for row in tasks if row["address"]},
        observed_at=moment(sight.at),
        status=tables(machines, tasks) + _closing(state, reason),
        run=job.run["id"] if job else "",
        decided=job is not None and job.verdict is not None,
        cost=_cost(sight, outline),
        timed=timed,
    )


def over(seen: Report) -> bool:
    """Whether the verdict stands, and none of the tasks runs any more; what looks on goes on, and is not waited for."""
    return seen.decided and not any(row["status"] == RUNNING for row in seen.tasks if row["job"] != TENSORBOARD)


def moment(at: float) -> str:
    """A moment as text, `2026-11-21 04:12:07Z`; empty for never."""
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%d %H:%M:%SZ") if at else ""


def _typed(text: str | None) -> Any:
    """A number where the text is one (whole numbers too become floats, so that the type stays), else the text.

    What is not finite stays text: Pulumi's outputs are JSON, which has no such numbers.
    """
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _lines(sight: Sight, hostname: str) -> list[tuple[float, str]]:
    return [(at, text) for at, _, text in sight.view["logs"].get(hostname, [])]


def _state(job: Job | None, sight: Sight) -> tuple[str, str]:
    problems = "; ".join(sight.problems)
    if job is None:
        if sight.keeper_silent_since is None or sight.engine:
            return "starting", problems or "no run has been given yet"
        return UNKNOWN, problems or "nothing stands"
    if job.verdict is not None:
        return job.verdict.state, job.verdict.reason
    if sight.keeper_silent_since is not None:
        return UNKNOWN, "; ".join([f"the keeper is {_unreachable(sight.keeper_silent_since)}", *sight.problems])
    started = any(task.started for task in job.crew)
    return ("running" if started else "starting"), ""


def task_status(task: Task, sight: Sight) -> str:
    """A task's state in words.

    What the keeper saw ended has ended. Of a task that had not, the engine knows whether its launcher lives, the keeper
    whether its child does; where the one that would know is silent, so is the status.
    """
    if task.state in FINAL:
        return _ended_words(task)
    engine = (sight.engine or {}).get(task.hostname)
    if sight.machines.get(task.machine, sight.others) == GONE:
        engine = None  # a Swarm goes on to speak of it for a while
        if task.looks_on:
            return f"{STOPPED} (with its machine)"
    if engine is not None and _tells_more(engine, task, sight):
        return f"{engine.word} ({engine.reason})" if engine.reason else engine.word
    if sight.keeper_silent_since is not None:
        return _unreachable(sight.keeper_silent_since) if sight.keeper_silent_since or engine is None else STARTING
    if sight.engine is not None and task.instance and (engine is None or not engine.alive):
        return LOST if task.state != INTERRUPTED else INTERRUPTED
    if task.seen and sight.view["at"] - task.seen > SILENT_SECONDS:
        return _unreachable(task.seen)
    if task.state == WAITING:
        return f"waiting for {task.reason}"
    if task.state == RESTARTING:
        return f"restarting {task.reason.partition(' after ')[0]}"
    return task.state


def _tells_more(engine: EngineTask, task: Task, sight: Sight) -> bool:
    """Whether the engine knows better than the keeper where a task is: it brings it, or cannot."""
    if engine.word == SCHEDULED and sight.machines.get(task.machine, "").startswith(UNREACHABLE):
        return False
    if engine.word in _ON_THE_WAY:
        return task.state != RUNNING or sight.view["at"] - task.seen > _JUST_NOW_SECONDS
    return bool(engine.reason) and not engine.alive and (not task.instance or engine.word == _REJECTED)


def _unreachable(since: float) -> str:
    return f"{UNREACHABLE} since {moment(since)}" if since else UNREACHABLE


def _ended_words(task: Task) -> str:
    detail = {FAILED: f"exit {task.exit_code}", KILLED: task.signal, STOPPED: task.reason}.get(task.state, "")
    return f"{task.state} ({detail})" if detail else task.state


def _task_row(outline: Outline, job: Job | None, planned: TaskOutline, sight: Sight) -> dict[str, Any]:
    hostname = planned.hostname
    task = (job.tasks.get(hostname) if job else None) or Task(hostname, planned.job, planned.index)
    engine = (sight.engine or {}).get(hostname)
    unknown = job is None and sight.keeper_silent_since is not None and engine is None
    own = job.run["jobs"].get(planned.job, {}).get("command") or job.run["command"] if job else []
    return {
        "hostname": hostname,
        "job": planned.job,
        "index": planned.index,
        "machine": task.machine or planned.machine,
        "container": (engine.container if engine else "") or task.container,
        "command": shlex.join(own) if job else planned.command or outline.command,
        "status": SCHEDULED if unknown else task_status(task, sight),
        "exit_code": task.exit_code,
        "created": moment(task.created),
        "address": task.address if task.port else "",
        "public_ip": sight.addresses.get(task.machine or planned.machine, ""),
    }


def _machine_row(machine: MachineOutline, sight: Sight) -> dict[str, Any]:
    return {
        **asdict(machine),
        "public_ip": sight.addresses.get(machine.machine, machine.public_ip),
        "status": sight.machines.get(machine.machine, sight.others),
        **sight.cost.get("machines", {}).get(machine.machine, {}),
    }


def _cost(sight: Sight, outline: Outline) -> dict[str, Any]:
    """What the machines cost, and when they end themselves."""
    if not sight.cost:
        return {}
    plain = {key: value for key, value in sight.cost.items() if key != "machines"}
    return {**plain, "idle": outline.idle, "lifetime": outline.lifetime}


def _closing(state: str, reason: str) -> str:
    return f"\n\nJob {state}" + (f": {reason}" if reason else "") + "."


def tables(machines: Sequence[Mapping[str, Any]], tasks: Sequence[Mapping[str, Any]]) -> str:
    """Both tables as text, with Kelda's columns; and what has been spent, where machines are paid for."""
    columns = ["machine", "role", "provider", "region", "size", "public_ip", "status"]
    if any("spent" in machine for machine in machines):
        columns.append("spent")
        machines = [{**machine, "spent": spent(machine)} for machine in machines]
    shown = [{**task, "command": _short(task["command"])} for task in tasks]
    return "\n\n".join(
        [
            table(machines, columns),
            table(shown, ("container", "machine", "command", "hostname", "status", "created", "public_ip")),
        ]
    )


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], gap: int = 3) -> str:
    """Rows under the columns' names in capitals, each column as wide as it must be, with so many spaces between them."""
    cells = [[column.replace("_", " ").upper() for column in columns]]
    cells += [[str(row[column] or "") for column in columns] for row in rows]
    widths = [max(len(line[place]) for line in cells) for place in range(len(columns))]
    return "\n".join((" " * gap).join(map(str.ljust, line, widths)).rstrip() for line in cells)


def spent(machine: Mapping[str, Any]) -> str:
    """What a machine has cost so far, in words."""
    usd = machine.get("spent", 0.0)
    return "unknown" if usd is None else dollars(usd)


def _short(command: str) -> str:
    line = command.replace("\n", " ")
    return line if len(line) <= _SHOWN_COMMAND else line[: _SHOWN_COMMAND - 1] + "…"
