"""From the states of the tasks and the success rule to what the job has come to. Pure."""

from typing import List, Optional

from .states import DEAD, FAILED, KILLED, OUT_OF_MEMORY, SUCCEEDED, WORKERS, Job, Task, Verdict

CHIEF, WORKER_0, ALL_WORKERS = "chief", "worker 0", "all workers"
RULES = (CHIEF, WORKER_0, ALL_WORKERS)
"""Whose success is the job's success."""


def deciders(job: Job) -> List[Task]:
    """The tasks whose success decides; none where the tasks only serve."""
    if job.run["serve"]:
        return []
    rule = job.run["success"]
    if rule == WORKER_0:
        first = [task for name in WORKERS for task in job.tasks.values() if task.job == name and task.index == 0]
        return first[:1]
    jobs = ("chief",) if rule == CHIEF else ("chief", *WORKERS)
    return [task for task in job.tasks.values() if task.job in jobs]


def how_it_ended(task: Task) -> str:
    """A dead task's end in words: `exit 3`, `SIGKILL`, `out of memory`."""
    if task.state == OUT_OF_MEMORY:
        return "out of memory"
    return task.signal or f"exit {task.exit_code}"


def decide(job: Job, now: float) -> Optional[Verdict]:
    """The job's verdict, or None while it is open.

    A task of the crew that failed for good fails the job; the success of all that decide is the job's. Tasks that only serve
    succeed as a job only when every one of them has ended well.
    """
    dead = min((task for task in job.crew if task.state in DEAD), key=lambda task: task.ended, default=None)
    if dead is not None:
        word = {FAILED: "failed", KILLED: "was killed", OUT_OF_MEMORY: "ran"}[dead.state]
        end = how_it_ended(dead) if dead.state == OUT_OF_MEMORY else f"({how_it_ended(dead)})"
        return Verdict("failed", f"{dead.hostname} {word} {end}", now)
    decisive = deciders(job) or job.crew
    if decisive and all(task.state == SUCCEEDED for task in decisive):
        return Verdict("succeeded", f"{', '.join(task.hostname for task in decisive)} succeeded", now)
    return None
