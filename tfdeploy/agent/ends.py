"""What the end of a task's child makes of the task: a restart with back-off, or an end for good. Pure."""

from typing import Any, Dict, List

from .states import FAILED, INTERRUPTED, KILLED, OUT_OF_MEMORY, RESTARTING, STOPPED, SUCCEEDED, Job, Task, Verdict
from .verdict import how_it_ended

LONGEST_BACKOFF = 300.0
"""Back-off doubles with each restart, up to this many seconds."""

_MOST_DOUBLINGS = 60


def ended(job: Job, task: Task, end: Dict[str, Any], now: float) -> str:
    """Take note of it; the event that this is."""
    task.ended = end["at"]
    if end["cause"] == "interrupted":
        task.state = INTERRUPTED
        asked = f"{task.leaving} by request" if task.leaving else ""
        task.reason = end.get("notice") or asked or "its launcher was told to stop, not by the keeper"
        task.attempt += 1
        return f"{task.hostname} interrupted: {task.reason}"
    if end["cause"] == "stopped" and job.verdict:
        stop(task, job.verdict, now)
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


def stop(task: Task, verdict: Verdict, now: float) -> None:
    """Have the task come to nothing more, because of the verdict."""
    words = {"succeeded": "job finished", "failed": "job failed"}
    task.state, task.reason, task.ended = STOPPED, words.get(verdict.state, verdict.reason), now
