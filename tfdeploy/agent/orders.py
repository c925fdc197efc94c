"""What a launcher reports becomes what the keeper remembers, and that becomes the launcher's next order. Pure.

An order is a level, not an edge: it says what should be true now, so a repeated or a lost one does no harm. A child is
known by run and attempt; a launcher whose child is of another attempt than the order's stops it first.
"""

from typing import Any, Dict, List, Optional

from .ends import ended, stop
from .states import (
    FINAL,
    RUNNING,
    SCHEDULED,
    STARTING,
    STOPPED,
    TENSORBOARD_PORT,
    WAITING,
    Job,
    Task,
    Verdict,
)
from .verdict import decide

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
        return [*events, ended(job, task, report["exit"], now)]
    return events


def leave(job: Job, hostname: str, word: str) -> List[str]:
    """The user's word: this task is about to get another launcher."""
    if hostname not in job.tasks:
        return []
    job.tasks[hostname].leaving = word
    return [f"{hostname} is {word} by request"]


def take_away(job: Job, hostnames: List[str]) -> List[str]:
    """The user's word: these tasks go. What they have come to stays in the account of a job that is over."""
    found = [name for name in hostnames if name in job.tasks]
    for name in found:
        job.gone[name] = job.tasks[name].instance
        if job.verdict is None or job.tasks[name].looks_on:
            del job.tasks[name]
    return [f"{name} is taken away" for name in found]


def dismiss(job: Job, now: float) -> List[str]:
    """The user's word: the whole job is to stop, and what looks on."""
    job.dismissed = True
    if job.verdict is not None:
        return ["dismissed"]
    job.verdict = Verdict(STOPPED, "by request", now)
    return ["job stopped by request"]


def _over(job: Job, task: Task) -> bool:
    """Whether the job's end is the task's."""
    return job.verdict is not None and (job.dismissed or not task.looks_on)


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
        if job.verdict and _over(job, task):
            stop(task, job.verdict, now)
        else:
            task.attempt += 1
    if task.looks_on and task.state in FINAL and not job.dismissed:
        task.state, task.attempt, task.failures = STARTING, task.attempt + 1, 0
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
    if task.looks_on:
        _again(job, task)
        task.ready = False
    else:
        _gather(job, now)
    return [f"launcher of {task.hostname} comes from another run"]


def _again(job: Job, task: Task) -> None:
    """A child that runs, or that an order may have started, is to be followed by one of the next attempt."""
    if task.state == RUNNING or ((task.looks_on or task.hostname in job.book) and task.state not in FINAL):
        task.attempt += 1
    if task.state == RUNNING:
        task.state = STARTING


def _gather(job: Job, now: float) -> None:
    """Begin the start barrier anew: nobody has come until it says so."""
    for task in job.crew:
        _again(job, task)
        task.ready = False
        if task.state == WAITING:
            task.state, task.reason = STARTING, ""
    job.book, job.waiting_since = {}, now


def missing(job: Job) -> List[str]:
    """The tasks that have not come yet, so that nobody may start."""
    return [task.hostname for task in job.crew if not task.ready and task.state not in FINAL]


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
            if task.state not in FINAL and task.state != RUNNING and _over(job, task):
                stop(task, job.verdict, now)
    return events


def _wire(job: Job, now: float) -> List[str]:
    absent = missing(job)
    live = [task for task in job.crew if task.state not in FINAL]
    for task in live:
        if task.state in (SCHEDULED, STARTING, WAITING):
            task.state = (WAITING if not job.wired and absent else STARTING) if task.ready else task.state
            task.reason = absent[0] if task.state == WAITING else ""
    addresses = {task.hostname: task.address for task in job.crew}
    if job.wired and not absent and addresses != job.book:
        _gather(job, now)
        return ["an address has changed: all tasks start again"]
    if not job.wired and not absent:
        job.book = addresses
        return [f"all {len(addresses)} tasks have come: {', '.join(addresses)}"]
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
    if _over(job, task) and not _may_finish(job, task, now):
        return {"do": "stop", "grace": grace}
    about = {"run": job.run["id"], "attempt": task.attempt, "grace": grace}
    if now < task.not_before:
        return {**about, "do": "wait"}
    if not task.ready:
        usual = TENSORBOARD_PORT if task.looks_on else 0
        return {**about, "do": "prepare", "spec": job.run, "port": task.port or usual}
    if task.looks_on:
        return {**about, "do": "run", "book": [[hostname, task.job, task.index, task.address]]}
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
    before = [task.hostname for task in job.crew]
    job.run, job.dismissed = run, False
    wanted = {item["hostname"]: item for item in run["tasks"]}
    job.tasks = {name: job.tasks.get(name) or Task(**item) for name, item in wanted.items()}
    crew = [task.hostname for task in job.crew]
    changed = crew != before and job.verdict is None
    if changed or not job.wired:
        _gather(job, now)
    return [f"the tasks are now {', '.join(crew)}: all start again"] if changed else []
