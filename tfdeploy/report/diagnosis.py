"""The diagnosis of a cluster: what is wrong, and what to do about it. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..agent.model import run_state as states
from ..agent.model.run_state import RunState
from ..agent.record.terminal_text import plain
from ..backends.base import GONE, EngineTask, ObservedState
from ..units import counted, moment
from .events import exit_text, restart_text
from .program_problems import SHOWN_LINES, Finding, failure_of
from .remedies import OWN_COPY, engine_remedy, relative_checkpoint
from .report import Report, missing_text

LINES = 20
"""How many last lines of each task the diagnosis needs."""

_CONNECTED = "connected"


@dataclass(frozen=True)
class Facts:
    """What a diagnosis is made of."""

    report: Report
    sight: ObservedState
    restore: str
    """The command that recreates what is missing."""
    serve: bool = False
    ended: float = 0.0
    """When the cluster was destroyed."""

    @property
    def run(self) -> RunState | None:
        """The current run."""
        return self.sight.view.run_state


def explain(facts: Facts, hostname: str = "") -> list[Finding]:
    """The diagnosis of a cluster, or of one task: causes first; never empty."""
    findings = list(_cluster(facts))
    if hostname:
        related = [finding for finding in findings if finding.about in ("", hostname) or hostname in finding.text]
        findings = related or findings[:1]
        findings += _task(facts, hostname, findings)
    return findings


def _cluster(facts: Facts) -> Iterator[Finding]:
    state, reason = facts.report.state, facts.report.reason
    if facts.ended:
        yield from _destroyed(facts)
    elif state == "succeeded":
        yield Finding("", f"The run succeeded: {reason}. {facts.report.time_left}".rstrip(), wrong=False)
        yield from facts.report.problems
        yield from _relative_checkpoints(facts)
    elif state == "stopped":
        cause = facts.run.result.cause if facts.run and facts.run.result else ""
        text = f"The run was stopped{':' if cause == states.BUDGET else ''} {reason}."
        yield Finding("", text, after_stop(facts.report.run, cause), wrong=False)
        yield from facts.report.problems
    elif state == states.FAILED:
        yield from _failed(facts)
    else:
        yield from _unfinished(facts)


def _destroyed(facts: Facts) -> Iterator[Finding]:
    state = facts.report.state
    result = f"Its run {state}: {facts.report.reason}." if facts.report.decided else "Its run had not finished."
    remedy = "`pulumi up` creates it again; `tfdeploy logs` shows the output of its tasks."
    text = f"The cluster was destroyed at {moment(facts.ended)}. {result}"
    yield Finding("", text, remedy, wrong=state == states.FAILED)
    yield from facts.report.failures


def after_stop(run_id: str, cause: str = "") -> str:
    """How to continue after a run was stopped."""
    resumed = f'`resume_from="{run_id}"` starts a run from its last checkpoint'
    higher = "To continue, raise `ec2.budget` first. " if cause == states.BUDGET else ""
    return f"It stays stopped. {higher}{resumed}; another `run_id` starts from the beginning."


STARTS_AGAIN = "changed code, command, `env`, `requirements` or image, or another `run_id`, starts a new run"
"""What starts another run after one that has failed."""


def way_on(run_id: str) -> str:
    """What to do after a run has failed."""
    return f"Fix the cause, and run `pulumi up`: {STARTS_AGAIN}. {from_checkpoint(run_id)}"


def from_checkpoint(run_id: str) -> str:
    """How a new run continues a failed one."""
    return f'`resume_from="{run_id}"` lets the new run continue from the last checkpoint of this one, if it has stored any.'


def _failed(facts: Facts) -> Iterator[Finding]:
    yield Finding("", f"The run failed: {facts.report.reason}.", way_on(facts.report.run))
    yield from facts.report.failures or _engine_problems(facts, ())
    yield from facts.report.problems
    if facts.run and facts.run.result and facts.run.result.cause == states.STARTUP_TIMEOUT:
        text = "No task starts before all tasks are ready."
        yield Finding("", text, "Raise `start_timeout`, or remove it, where starting takes long, as for a large image.")


def _unfinished(facts: Facts) -> Iterator[Finding]:
    """The findings while the run is open, or while there is none."""
    if facts.sight.installing:
        text = f"The update is {facts.sight.installing}. The tasks start after that."
        yield Finding("", text, wrong=False)
        return
    yield from _connection(facts)
    yield from _machines(facts)
    rows = facts.report.tasks
    waiting = [row["hostname"] for row in rows if row["status"].startswith(states.WAITING)]
    causes = [*_engine_problems(facts, waiting), *_task_problems(facts)]
    yield from causes
    explained = {finding.about for finding in causes}
    starting = [
        row for row in rows if row["status"].startswith(states.ENGINE_STARTING) and row["hostname"] not in explained
    ]
    is_silent = facts.sight.controller_silent_since is not None
    if starting and not is_silent:
        yield _starting(facts, starting, waiting, bool(causes))
    yield from facts.report.problems
    yield from _relative_checkpoints(facts)
    running = [row for row in rows if row["status"] == states.RUNNING]
    if running:
        number = "All" if len(running) == len(rows) else f"{len(running)} of"
        state = "serving" if facts.serve else "running"
        yield Finding("", f"{number} {counted(len(rows), 'task')} are {state}.", wrong=False)


def _connection(facts: Facts) -> Iterator[Finding]:
    """Problems with engine and controller."""
    sight = facts.sight
    if facts.run is None and not sight.engine and not sight.problems:
        remedy = "If `pulumi up` is still running, wait. Else run it again, and look at its first error."
        yield Finding("", "There is no run, and there are no tasks.", remedy)
        return
    text, remedy = trouble_of(sight, facts.restore)
    if text:
        yield Finding("", text, remedy)


def _machines(facts: Facts) -> Iterator[Finding]:
    for machine, failure in facts.sight.machines.failures.items():
        reason, _, console = failure.partition("\n")
        remedy = "`pulumi up` creates it again. If it fails again, choose another `ami`, `instance_type` or `subnet_id` in `ec2`."
        text = f"{machine} did not boot: {reason}."
        yield Finding(machine, text, remedy, console.splitlines()[-SHOWN_LINES:])
    for row in facts.report.machines:
        machine, status = row["machine"], row["status"]
        is_explained = machine in (
            *facts.sight.machines.failures,
            *(finding.about for finding in facts.report.problems),
        )
        if status == _CONNECTED or is_explained or facts.sight.engine is None:
            continue
        names = [task["hostname"] for task in facts.report.tasks if task["machine"] == machine]
        tasks = f" Its tasks: {', '.join(names)}." if names else ""
        is_booting = status in ("booting", "connecting")
        remedy = "Wait until it has booted." if is_booting else f"`{facts.restore}` creates it again."
        yield Finding(machine, f"The machine {machine} is {status}.{tasks}", remedy, wrong=not is_booting)


def _engine_problems(facts: Facts, waiting: Sequence[str]) -> Iterator[Finding]:
    """Tasks that the engine cannot start, and the tasks that wait for them."""
    for row in facts.report.tasks:
        hostname = row["hostname"]
        engine: EngineTask | None = (facts.sight.engine or {}).get(hostname)
        if engine is None or not engine.reason or row["status"] == states.RUNNING:
            continue
        others = [name for name in waiting if name != hostname and row["job"] != states.TENSORBOARD]
        wait = f" {', '.join(others)} {'waits' if len(others) == 1 else 'wait'} for it." if others else ""
        remedy = engine_remedy(engine.reason, row["job"]) or f"Fix that; then `{facts.restore}`."
        yield Finding(hostname, f"{hostname} cannot start ({engine.state}): {engine.reason.rstrip('.')}.{wait}", remedy)


def _task_problems(facts: Facts) -> Iterator[Finding]:
    """Tasks that have failed, were interrupted or are lost."""
    for row in facts.report.tasks:
        hostname, status = row["hostname"], row["status"]
        task = facts.run.tasks.get(hostname) if facts.run else None
        engine = (facts.sight.engine or {}).get(hostname)
        if task is None or (engine is not None and engine.reason):
            continue
        if task.state == states.RESTARTING:
            when = restart_text(task.restart_delay, task.failures, task.max_failures)
            text = f"{hostname} ended ({exit_text(task.end)}) and restarts {when}."
            yield failure_of(task, facts.sight)._replace(text=text)
        elif task.state in states.DEAD:
            yield failure_of(task, facts.sight)
        elif status == states.LOST:
            text = f"{hostname} is lost: its launcher on {row['machine']} is gone."
            yield Finding(hostname, text, f"The engine restarts it; if it does not, `{facts.restore}` does.")
        elif status.startswith(states.INTERRUPTED):
            remedy = f"It continues from its last checkpoint; if it does not, run `{facts.restore}`."
            yield Finding(hostname, f"{hostname} was interrupted: {task.reason}.", remedy)
        elif status.startswith(states.UNREACHABLE) and facts.sight.controller_silent_since is None:
            remedy = f"Check its machine {row['machine']}; `{facts.restore}` starts it again."
            is_explained = row["machine"] in facts.sight.machines.remedies
            yield Finding(hostname, f"{hostname} has been {status}.", "" if is_explained else remedy)


def _relative_checkpoints(facts: Facts) -> Iterator[Finding]:
    """Tasks that store checkpoints where no other task sees them."""
    for hostname, lines in facts.sight.view.logs.items():
        path = relative_checkpoint([plain(line.text) for line in lines])
        if path:
            text = f"{hostname} stores checkpoints in {path}, a relative path."
            remedy = f"{OWN_COPY[0].upper()}{OWN_COPY[1:]}".format()
            yield Finding(hostname, text, remedy, wrong=not facts.report.decided)


def _starting(facts: Facts, starting: Sequence[Mapping[str, Any]], waiting: Sequence[str], has_causes: bool) -> Finding:
    run = facts.run
    names = ", ".join(f"{row['hostname']} ({row['status']})" for row in starting)
    is_awaited = any(row["job"] != states.TENSORBOARD for row in starting)
    text = f"Starting: {names}."
    if waiting and is_awaited:
        text += f" Waiting for that: {', '.join(waiting)}."
    remedies = []
    if run is not None and not run.barrier_passed and is_awaited:
        remedies.append(f"The tasks have waited since {moment(run.waiting_since)}.")
        if run.spec.start_timeout and not run.has_started:
            left = run.spec.start_timeout - (facts.sight.view.at - run.waiting_since)
            remedies.append(f"The run fails if they are not ready in {max(0, round(left))} s (`start_timeout`).")
    if any(row["status"].startswith("pulling") for row in starting):
        remedies.append("A large image takes time; `docker pull` on the machine shows the progress.")
    return Finding("", text, " ".join(remedies), wrong=has_causes)


def _task(facts: Facts, hostname: str, findings: Sequence[Finding]) -> list[Finding]:
    """A task's status, where no other finding is about the task."""
    row = next((row for row in facts.report.tasks if row["hostname"] == hostname), None)
    if row is None or any(finding.about == hostname for finding in findings):
        return []
    is_problem = any(finding.wrong for finding in findings) and row["status"] != states.RUNNING
    return [Finding(hostname, f"{hostname} is {row['status']}.", wrong=is_problem)]


_REFRESH = (
    "If something else was deleted too, run `pulumi up --refresh`, and then `pulumi up`, whatever the first reports."
)

_PATIENCE = 5.0
"""So many seconds a controller or an engine is silent at most where it is started again, or misses a call."""


def trouble_of(observed: ObservedState, restore: str) -> tuple[str, str]:
    """What is wrong, and what to do; both empty for nothing. `restore` is the command that recreates what is missing."""
    problems = "; ".join(observed.problems)
    if observed.is_gone and observed.engine is not None:
        return "Nothing of the cluster exists any more: no controller, and no task.", f"Run `{restore}`."
    if observed.engine is None and problems:
        machines, run = observed.machines, observed.view.run_state
        used = {task.report.machine for task in run.tasks.values() if task.report.machine} if run else set()
        if lost := sorted(name for name in used if machines.status(name) == GONE):
            remedy = f"`{restore}` creates it again, and restores the record. {_REFRESH}"
            return f"{', '.join(lost)} is gone: {problems}.", remedy
        remedy = engine_remedy(problems, "")
        if machines.problems and not remedy:  # they have their own
            return f"The machines cannot be observed: {problems.rstrip('.')}.", "Running tasks are not affected."
        remedy = remedy or observed.unreachable_remedy
        return f"The engine does not respond: {problems}.", f"{remedy} Running tasks are not affected.".lstrip()
    if observed.engine is None:
        return "The cluster's supervisord is gone, with all of its processes.", f"Run `{restore}`."
    missing, remedy = missing_text(observed)
    if missing:
        return f"{missing[0].upper()}{missing[1:]}{f'; {problems}' if problems else ''}.", f"{remedy}."
    if observed.controller_silent_since is not None:
        since = f" since {moment(observed.controller_silent_since)}" if observed.controller_silent_since else ""
        text = f"The controller does not respond{since}{f': {problems}' if problems else ''}."
        remedy = f"`{restore}` starts it again. Running tasks are not affected."
        if ways := observed.machines.remedies.items():  # it may be there, and no other one starts before
            remedy = " ".join(f"If it runs on {name}: {way.rstrip('.')}." for name, way in ways)
        return text, engine_remedy(problems, "") or remedy
    return (f"{problems}.", engine_remedy(problems, "") or f"Run `{restore}`.") if problems else ("", "")


@dataclass
class Trouble:
    """What is wrong for a while with a cluster that is observed again and again."""

    text: str = ""
    """In sentences; empty for nothing, and as long as it may be over in a moment."""
    is_final: bool = False
    """Whether nothing starts the cluster again by itself."""
    was_well: bool = False
    """Whether there was nothing wrong in one of the observations."""
    _since: float = -1.0

    def note(self, observed: ObservedState, restore: str, now: float) -> None:
        """Note an observation; `now` is a clock that does not step."""
        text, remedy = trouble_of(observed, restore)
        if not text:
            self._since, self.was_well = -1.0, True
        elif self._since < 0:
            self._since = now
        is_lasting = bool(text) and now - self._since >= _PATIENCE
        self.text = f"{text} {remedy}" if is_lasting else ""
        self.is_final = is_lasting and _is_final(observed)


def _is_final(observed: ObservedState) -> bool:
    """Without supervisord no process of a local cluster is left, and no engine makes a task again that was removed."""
    has_no_engine = observed.engine is None and observed.controller_silent_since is not None
    return observed.is_gone or bool(observed.missing) or (has_no_engine and not observed.problems)
