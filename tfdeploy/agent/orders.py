"""What a launcher reports becomes what the keeper remembers, and that becomes the launcher's next order. Pure.

An order is a level, not an edge: it says what should be true now, so a repeated or a lost one does no harm. A child is
known by run and attempt; a launcher whose child is of another attempt than the order's stops it first.
"""

from typing import Any, Dict, List, Optional

from .states import (
    FAILED,
    FINAL,
    INTERRUPTED,
    KILLED,
    OUT_OF_MEMORY,
    RESTARTING,
    RUNNING,
    SCHEDULED,
    STARTING,
    STOPPED,
    SUCCEEDED,
    WAITING,
    Job,
    Task,
    Verdict,
)
from .verdict import decide, how_it_ended

LONGEST_BACKOFF = 300.0
"""Back-off doubles with each restart, up to this many seconds."""

_MOST_DOUBLINGS = 60

ROLL_SECONDS = 2.0
"""In a rolling restart the next task waits until the one before has run this long."""

GATHER_SECONDS = 1.0
"""A rolling restart begins so long after the last request for it: requests come in parallel, and not in order."""

Report = Dict[str, Any]
Order = Dict[str, Any]


def absorb(job: Job, report: Report, now: float) -> List[str]:
    """Take in what a launcher says of itself and its child; return the events that this is."""
    task = job.tasks.get(report["hostname"]) or _welcome(job, report)
    if task is None:
        return []
    events = _meet(job, task, report, now) if report["instance"] != task.instance else []
    task.seen = now
    if report["run"] != job.run["id"]:
        return events + _unprepared(job, task, now)
    task.host, task.port, task.ready = report["host"], report["port"], report["ready"]
    if report["attempt"] != task.attempt or task.state in FINAL:
        return events
    task.started = report["started"] or task.started
    if report["phase"] == "running" and task.state != RUNNING:
        task.state, task.reason = RUNNING, ""
        task.exit_code, task.signal = None, ""
        return [*events, f"{task.hostname} started (attempt {task.attempt})"]
    if report["phase"] == "exited":
        return [*events, _ended(job, task, report["exit"], now)]
    return events


def take_away(job: Job, hostnames: List[str]) -> List[str]:
    """The user's word: these tasks go. What they have come to stays in the account of a job that is over."""
    found = [name for name in hostnames if name in job.tasks]
    for name in found:
        job.gone[name] = job.tasks[name].instance
        if job.verdict is None:
            del job.tasks[name]
    return [f"{name} is taken away" for name in found]


def _welcome(job: Job, report: Report) -> Optional[Task]:
    """A task that was taken away and stands again, while the run still has it."""
    hostname = report["hostname"]
    if report["instance"] != job.gone.get(hostname, report["instance"]):
        for item in job.run["tasks"]:
            if item["hostname"] == hostname:
                job.tasks[hostname] = Task(**item)
    return job.tasks.get(hostname)


def _meet(job: Job, task: Task, report: Report, now: float) -> List[str]:
    events = [f"launcher of {task.hostname} came"]
    if task.state == RUNNING:
        events.insert(0, f"launcher of {task.hostname} was lost with its child")
        if job.verdict:
            _stop(task, job.verdict, now)
        else:
            task.attempt += 1
    if task.state not in FINAL:
        task.state, task.reason = STARTING, ""
    if task.leaving:
        task.leaving, task.not_before = "", 0.0
    task.instance, task.ready = report["instance"], False
    task.container, task.machine = report["container"], report["machine"]
    task.created = report["created"]
    return events


def _unprepared(job: Job, task: Task, now: float) -> List[str]:
    """A launcher with another run in hand has not prepared this one, whatever this run's account says from before."""
    if not task.ready or task.state in FINAL:
        return []
    _gather(job, now)
    return [f"launcher of {task.hostname} comes from another run"]


def _ended(job: Job, task: Task, end: Dict[str, Any], now: float) -> str:
    task.ended = end["at"]
    if end["cause"] == "interrupted":
        task.state = INTERRUPTED
        asked = f"{task.leaving} by request" if task.leaving else ""
        task.reason = end.get("notice") or asked or "its launcher was told to stop, not by the keeper"
        task.attempt += 1
        return f"{task.hostname} interrupted: {task.reason}"
    if end["cause"] == "stopped" and job.verdict:
        _stop(task, job.verdict, now)
        return f"{task.hostname} {STOPPED} ({task.reason})"
    task.exit_code, task.signal = end["code"], end["signal"]
    if end["code"] == 0:
        task.state = SUCCEEDED
        return f"{task.hostname} succeeded"
    task.state = OUT_OF_MEMORY if end["oom"] else KILLED if end["signal"] else FAILED
    how = how_it_ended(task)
    policy = job.run["jobs"][task.job]["restart"]
    if task.failures >= policy["maximum"] or not _covers(policy["on"], end):
        task.reason = end.get("detail", "")
        return f"{task.hostname} {task.state} ({how}); not restarted"
    task.failures += 1
    task.attempt += 1
    doubled = policy["backoff"] * 2.0 ** min(task.failures - 1, _MOST_DOUBLINGS)
    pause = min(doubled, max(LONGEST_BACKOFF, policy["backoff"]))
    task.not_before = now + pause
    task.state = RESTARTING
    task.reason = f"in {pause:g} s ({task.failures} of {policy['maximum']}) after {how}"
    return f"{task.hostname} ended ({how}); restarting {task.reason}"


def _covers(kinds: List[str], end: Dict[str, Any]) -> bool:
    def match(kind: str) -> bool:
        if kind in ("any", "oom", "signal"):
            is_oom = bool(end["oom"])
            return {"any": True, "oom": is_oom, "signal": bool(end["signal"]) and not is_oom}[kind]
        low, _, high = kind.partition("-")
        return int(low) <= int(end["code"]) <= int(high or low)

    return any(match(kind) for kind in kinds)


def _stop(task: Task, verdict: Verdict, now: float) -> None:
    words = {"succeeded": "job finished", "failed": "job failed"}
    task.state, task.reason, task.ended = STOPPED, words.get(verdict.state, verdict.reason), now


def _again(job: Job, task: Task) -> None:
    """A child that runs, or that an order may have started, is to be followed by one of the next attempt."""
    if task.state == RUNNING or (task.hostname in job.book and task.state not in FINAL):
        task.attempt += 1
    if task.state == RUNNING:
        task.state = STARTING


def _gather(job: Job, now: float) -> None:
    """Begin the start barrier anew: nobody has come until it says so."""
    for task in job.tasks.values():
        _again(job, task)
        task.ready = False
        if task.state == WAITING:
            task.state, task.reason = STARTING, ""
    job.book, job.waiting_since = {}, now


def missing(job: Job) -> List[str]:
    """The tasks that have not come yet, so that nobody may start."""
    return [hostname for hostname, task in job.tasks.items() if not task.ready and task.state not in FINAL]


def advance(job: Job, now: float) -> List[str]:
    """Let time and what is known have their effect: address book, deadline, verdict, rolling restart."""
    events: List[str] = []
    if job.verdict is None:
        events += _wire(job, now)
        events += _roll(job, now)
        verdict = _overdue(job, now) or decide(job, now)
        if verdict is not None:
            job.verdict = verdict
            events.append(f"job {verdict.state}: {verdict.reason}")
    if job.verdict is not None:
        for task in job.tasks.values():
            if task.state not in FINAL and task.state != RUNNING:
                _stop(task, job.verdict, now)
    return events


def _wire(job: Job, now: float) -> List[str]:
    absent = missing(job)
    live = [task for task in job.tasks.values() if task.state not in FINAL]
    for task in live:
        if task.state in (SCHEDULED, STARTING, WAITING):
            task.state = (WAITING if not job.wired and absent else STARTING) if task.ready else task.state
            task.reason = absent[0] if task.state == WAITING else ""
    addresses = {task.hostname: task.address for task in job.tasks.values()}
    if job.wired and not absent and addresses != job.book:
        _gather(job, now)
        return ["an address has changed: all tasks start again"]
    if not job.wired and not absent:
        job.book = addresses
        return [f"all {len(addresses)} tasks have come: {', '.join(job.tasks)}"]
    return []


def _overdue(job: Job, now: float) -> Optional[Verdict]:
    timeout = job.run["start_timeout"]
    if job.wired or now - job.waiting_since <= timeout:
        return None
    return Verdict("failed", f"{', '.join(missing(job))} did not come within {timeout:g} s", now)


def roll(job: Job, hostnames: List[str], now: float) -> None:
    """Have these tasks restarted one at a time, in the order of job and index; one whose turn it is has another one."""
    job.roll = [name for name in job.tasks if name in {*job.roll, *hostnames}]
    job.roll_from = now + GATHER_SECONDS
    if job.rolling in hostnames:
        job.rolling = ""


def _roll(job: Job, now: float) -> List[str]:
    if not job.roll or (not job.rolling and now < job.roll_from):
        return []
    name = job.rolling or job.roll[0]
    task = job.tasks.get(name)
    if task is not None and task.state not in FINAL and not job.rolling:
        job.rolling = name
        _again(job, task)
        return [f"{name} is restarted: its settings have changed"]
    if task is None or task.state in FINAL or (task.state == RUNNING and now - task.started > ROLL_SECONDS):
        job.roll = [other for other in job.roll if other != name]
        job.rolling = ""
    return []


def order(job: Job, hostname: str, now: float) -> Order:
    """What this task's launcher is to do now.

    `prepare` (fetch the code, find a port), `wait` (have no child), `run` (have the child of this attempt), `stop` (end
    the child), `end` (there is nothing more to do).
    """
    task = job.tasks.get(hostname)
    grace = job.run["grace"]
    if task is None or task.state in FINAL:
        return {"do": "end", "grace": grace}
    if job.verdict is not None and not _may_finish(job, task, now):
        return {"do": "stop", "grace": grace}
    about = {"run": job.run["id"], "attempt": task.attempt, "grace": grace}
    if now < task.not_before:
        return {**about, "do": "wait"}
    if not task.ready:
        return {**about, "do": "prepare", "spec": job.run, "port": task.port}
    if not job.wired or job.book.get(hostname, task.address) != task.address:
        return {**about, "do": "wait"}
    book = [
        [other.hostname, other.job, other.index, job.book[other.hostname]]
        for other in job.tasks.values()
        if other.hostname in job.book
    ]
    return {**about, "do": "run", "book": book}


def _may_finish(job: Job, task: Task, now: float) -> bool:
    """An evaluator is left `grace` seconds to finish by itself after a success."""
    verdict = job.verdict
    return (
        verdict is not None
        and verdict.state == "succeeded"
        and task.job == "evaluator"
        and now < verdict.at + float(job.run["grace"])
    )


def come_back(job: Job, now: float) -> None:
    """An earlier run is the present one again; where it was cut short, its tasks come together anew."""
    if job.verdict is None:
        _gather(job, now)


def hand_over(job: Job, run: Dict[str, Any], now: float) -> List[str]:
    """The same run with other counts or policies: new tasks join, removed ones go, all start again with new flags."""
    before = list(job.tasks)
    job.run = run
    wanted = {item["hostname"]: item for item in run["tasks"]}
    job.tasks = {name: job.tasks.get(name) or Task(**item) for name, item in wanted.items()}
    changed = list(job.tasks) != before and job.verdict is None
    if changed or not job.wired:
        _gather(job, now)
    return [f"the tasks are now {', '.join(job.tasks)}: all start again"] if changed else []
