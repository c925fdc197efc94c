"""Why a cluster is as it is, from what one look has seen: sentences, each with what would mend it. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .agent.states import (
    FAILED,
    INTERRUPTED,
    KILLED,
    LOST,
    OUT_OF_MEMORY,
    RESTARTING,
    RUNNING,
    TENSORBOARD,
    UNREACHABLE,
    WAITING,
)
from .backends.base import EngineTask, Sight
from .quantities import counted
from .remedies import IMAGES, after_end, of_engine
from .report import Report, moment

LINES = 20
"""How many last lines of each task a look must bring."""

_SHOWN = 5
_DEAD = (FAILED, KILLED, OUT_OF_MEMORY)
_CONNECTED = "connected"
_STDERR = 2
_AGAIN = (
    "Mend the cause and run `pulumi up`: a changed program or changed arguments begin a new run, else change `run_id`."
)


@dataclass(frozen=True)
class Finding:
    """One sentence or two about a task, a machine, or the whole."""

    about: str
    says: str
    remedy: str = ""
    lines: Sequence[str] = ()
    """The last that it printed."""
    wrong: bool = True


@dataclass(frozen=True)
class Facts:
    """What is known of a cluster."""

    title: str
    report: Report
    sight: Sight
    heal: str
    """What brings back what died."""
    serve: bool = False
    ended: float = 0.0
    """When it was destroyed."""


def explain(facts: Facts, hostname: str = "") -> list[Finding]:
    """Why the cluster, or one of its tasks, is as it is: causes first; never empty."""
    found = list(_whole(facts))
    if hostname:
        found = [one for one in found if one.about in ("", hostname) or hostname in one.says] or found[:1]
        found += _of_waiter(facts, hostname, found)
    return found


def _whole(facts: Facts) -> Iterator[Finding]:
    state, reason = facts.report.state, facts.report.reason
    if facts.ended:
        yield from _destroyed(facts)
    elif state == "succeeded":
        yield Finding("", f"The job succeeded: {reason}. Nothing is wrong.", wrong=False)
    elif state == "stopped":
        yield Finding("", f"The job was stopped {reason}.", "`pulumi up` gives it again.", wrong=False)
    elif state == FAILED:
        yield from _failed(facts)
    else:
        yield from _open(facts)


def _destroyed(facts: Facts) -> Iterator[Finding]:
    state = facts.report.state
    before = f" Its job had {state}: {facts.report.reason}." if facts.report.decided else " Its job was not over."
    remedy = "`pulumi up` makes it again; `tfdeploy logs` shows what its tasks printed."
    yield Finding(
        "", f"The cluster was destroyed at {moment(facts.ended)}.{before}", remedy, (), facts.report.state == FAILED
    )
    if state == FAILED:
        yield from _dead(facts)


def _failed(facts: Facts) -> Iterator[Finding]:
    yield Finding("", f"The job failed: {facts.report.reason}.", _AGAIN)
    dead = list(_dead(facts))
    yield from dead
    if not dead:
        yield from _engine_causes(facts, ())
    if " did not come within " in facts.report.reason:
        yield Finding(
            "",
            "All tasks must have come before any may start (`start_timeout`).",
            "Where coming takes long, as when a large image is pulled, raise `start_timeout`.",
        )


def _dead(facts: Facts) -> Iterator[Finding]:
    """Each task that ended badly, the one that failed the job first."""
    tasks = [task for task in _tasks(facts).values() if task["state"] in _DEAD]
    for task in sorted(tasks, key=lambda task: (_looks_on(task), float(task["ended"]))):
        lines = _last(facts, task["hostname"])
        says = f"{task['hostname']} {_how(task)}."
        yield Finding(task["hostname"], says, after_end(task, lines), lines)


def _how(task: Mapping[str, Any]) -> str:
    if task["state"] == OUT_OF_MEMORY:
        return "ran out of memory"
    if task["signal"]:
        return f"was killed by {task['signal']}"
    return f"failed with exit code {task['exit_code']}"


def _open(facts: Facts) -> Iterator[Finding]:
    """The job is not over, or there is none."""
    yield from _reach(facts)
    yield from _machines(facts)
    waiters = [row["hostname"] for row in facts.report.tasks if str(row["status"]).startswith(WAITING)]
    causes = [*_engine_causes(facts, waiters), *_task_causes(facts)]
    yield from causes
    coming = [row for row in facts.report.tasks if _is_coming(row, {one.about for one in causes})]
    silent = facts.sight.keeper_silent_since is not None
    if coming and not silent:
        yield from _coming(facts, coming, waiters, bool(causes))
    running = [row for row in facts.report.tasks if row["status"] == RUNNING]
    if running:
        word = "serve" if facts.serve else "run"
        every = "All" if len(running) == len(facts.report.tasks) else f"{len(running)} of"
        nothing = " Nothing is wrong." if len(running) == len(facts.report.tasks) and not causes and not silent else ""
        yield Finding("", f"{every} {counted(len(facts.report.tasks), 'task')} {word}.{nothing}", wrong=False)


def _reach(facts: Facts) -> Iterator[Finding]:
    sight = facts.sight
    problems = "; ".join(sight.problems)
    if sight.view["job"] is None and not sight.engine and not problems:
        remedy = "While `pulumi up` still runs, wait; else run it again: its first error says what it could not make."
        yield Finding("", "No run has been given, and no task stands.", remedy)
    elif sight.engine is None and problems:
        remedy = "Start that engine or mend the way to it (`docker_host`, `DOCKER_HOST`); `docker info` must answer. "
        yield Finding("", f"The engine does not answer: {problems}.", remedy + "Tasks that run go on meanwhile.")
    elif sight.engine is None:
        yield Finding("", "The cluster's supervisord is gone, and what it kept with it.", f"Run `{facts.heal}`.")
    elif sight.keeper_silent_since is not None:
        since = f" since {moment(sight.keeper_silent_since)}" if sight.keeper_silent_since else ""
        why = f": {problems}" if problems else ""
        remedy = of_engine(problems, "") or f"Tasks that run go on; `{facts.heal}` brings the keeper back."
        yield Finding("", f"The keeper does not answer{since}{why}.", remedy)
    elif problems:
        yield Finding("", f"{problems}.", of_engine(problems, "") or f"Run `{facts.heal}`.")


def _machines(facts: Facts) -> Iterator[Finding]:
    for machine, reason in facts.sight.failures.items():
        what, _, console = reason.partition("\n")
        remedy = (
            "`pulumi up` makes it anew; where it fails again, choose another `ami`, `instance_type` or `subnet_id`."
        )
        yield Finding(machine, f"{machine} could not boot: {what}.", remedy, console.splitlines()[-_SHOWN:])
    for row in facts.report.machines:
        status = str(row["status"])
        if status != _CONNECTED and row["machine"] not in facts.sight.failures and facts.sight.engine is not None:
            tasks = [task["hostname"] for task in facts.report.tasks if task["machine"] == row["machine"]]
            stood = f"; {', '.join(tasks)} stood there" if tasks else ""
            booting = status in ("booting", "connecting")
            remedy = "It is on its way." if booting else f"`{facts.heal}` brings back what was lost."
            yield Finding(row["machine"], f"The machine {row['machine']} is {status}{stood}.", remedy, (), not booting)


def _engine_causes(facts: Facts, waiters: Sequence[str]) -> Iterator[Finding]:
    """Tasks that the engine cannot bring, in its own words, and who waits for them."""
    for row in facts.report.tasks:
        engine: EngineTask | None = (facts.sight.engine or {}).get(row["hostname"])
        if engine is None or not engine.reason or row["status"] == RUNNING:
            continue
        others = [name for name in waiters if name != row["hostname"] and not _looks_on(row)]
        wait = f" {', '.join(others)} {'waits' if len(others) == 1 else 'wait'} for it." if others else ""
        remedy = of_engine(engine.reason, row["job"]) or f"Mend that; then `{facts.heal}`."
        yield Finding(
            row["hostname"], f"{row['hostname']} cannot start ({engine.word}): {engine.reason}.{wait}", remedy
        )


def _task_causes(facts: Facts) -> Iterator[Finding]:
    """Tasks that have ended or gone, and are to come back."""
    engine = facts.sight.engine or {}
    for row in facts.report.tasks:
        task = _tasks(facts).get(row["hostname"])
        status = str(row["status"])
        if task is None or (engine.get(row["hostname"]) and engine[row["hostname"]].reason):
            continue
        if task["state"] == RESTARTING:
            lines = _last(facts, row["hostname"])
            says = f"{row['hostname']} {_ended(task)}, and is restarted {task['reason'].partition(' after ')[0]}."
            yield Finding(row["hostname"], says, after_end(task, lines), lines)
        elif task["state"] in _DEAD:
            yield from (one for one in _dead(facts) if one.about == row["hostname"])
        elif status == LOST:
            says = f"{row['hostname']} is lost: its launcher on {row['machine']} is gone."
            yield Finding(row["hostname"], says, f"The engine starts it again; where it does not, `{facts.heal}` does.")
        elif status.startswith(INTERRUPTED):
            says = f"{row['hostname']} was interrupted: {task['reason']}."
            yield Finding(row["hostname"], says, f"It goes on from its last checkpoint; if not, `{facts.heal}`.")
        elif status.startswith(UNREACHABLE) and facts.sight.keeper_silent_since is None:
            says = f"{row['hostname']} has not been heard {status.removeprefix(UNREACHABLE).strip()}."
            yield Finding(
                row["hostname"], says, f"Look at its machine {row['machine']}; `{facts.heal}` brings it back."
            )


def _ended(task: Mapping[str, Any]) -> str:
    return f"ended ({task['reason'].partition(' after ')[2] or 'exit ' + str(task['exit_code'])})"


def _looks_on(task: Mapping[str, Any]) -> bool:
    """Whether nobody waits for this task."""
    return bool(task["job"] == TENSORBOARD)


def _is_coming(row: Mapping[str, Any], explained: set[str]) -> bool:
    status = str(row["status"])
    words = ("scheduled", "pulling", "starting")
    return status.startswith(words) and row["hostname"] not in explained


def _coming(
    facts: Facts, coming: Sequence[Mapping[str, Any]], waiters: Sequence[str], caused: bool
) -> Iterator[Finding]:
    job = facts.sight.view["job"]
    told = ", ".join(f"{row['hostname']} ({row['status']})" for row in coming)
    awaited = not all(map(_looks_on, coming))
    wait = f" {', '.join(waiters)} wait for that." if waiters and awaited else ""
    limit = ""
    if job is not None and not job["book"] and awaited:
        left = job["run"]["start_timeout"] - (facts.sight.view["at"] - job["waiting_since"])
        limit = f"The job fails when they have not come in {max(0, round(left))} s more (`start_timeout`)."
    pulling = any(str(row["status"]).startswith("pulling") for row in coming)
    verb = "is" if len(coming) == 1 else "are"
    remedy = " ".join(part for part in (limit, IMAGES if pulling else "") if part)
    yield Finding("", f"On the way {verb} {told}.{wait}", remedy, (), caused)


def _of_waiter(facts: Facts, hostname: str, found: Sequence[Finding]) -> list[Finding]:
    """How this one task is, where no finding says it."""
    row = next((row for row in facts.report.tasks if row["hostname"] == hostname), None)
    if row is None or any(one.about == hostname for one in found):
        return []
    wrong = any(one.wrong for one in found) and row["status"] != RUNNING
    return [Finding(hostname, f"{hostname} is {row['status']}.", wrong=wrong)]


def _tasks(facts: Facts) -> Mapping[str, Mapping[str, Any]]:
    job = facts.sight.view["job"]
    return job["tasks"] if job else {}


def _last(facts: Facts, hostname: str) -> list[str]:
    """The last lines on stderr, where the cause mostly stands; else the last of all."""
    lines = facts.sight.view["logs"].get(hostname, [])
    said = [text for _, pipe, text in lines if pipe == _STDERR] or [text for _, _, text in lines]
    return [text for text in said if text.strip()][-_SHOWN:]
