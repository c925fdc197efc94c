"""What the keeper wrote of a run becomes who did what, when, and why. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .agent.states import (
    FAILED,
    INTERRUPTED,
    KILLED,
    LOST,
    OUT_OF_MEMORY,
    RESTARTING,
    RUNNING,
    STARTING,
    STOPPED,
    SUCCEEDED,
    WAITING,
)

GONE = "taken away"
CAME, STARTED, RESTARTED, ALL_HERE, DISMISSED = "came", "started", "restarted", "all here", "dismissed"
BY_REQUEST = "by request"

_LAUNCHER_LOST = "its launcher came again: the container, the process or its machine was gone"


class Happening(NamedTuple):
    """One thing that happened."""

    at: float
    task: str
    """The hostname; empty where it is about the job."""
    what: str
    reason: str


class Told(NamedTuple):
    """What one text of the keeper's says."""

    task: str
    """The hostname; empty where it is about the job."""
    what: str
    reason: str
    state: str
    """The state that begins with it: the task's, the job's, or in `STARTING` that of all tasks; empty where none does."""
    note: str
    """What there is to say of that state."""


class _Rule(NamedTuple):
    pattern: str
    what: str
    reason: str = ""
    state: str = ""
    note: str = ""


_TASK = r"(?P<task>\S+)"
_RULES = tuple(
    (re.compile(rule.pattern, re.DOTALL), rule)
    for rule in (
        _Rule(r"run given", "scheduled"),
        _Rule(r"this run is the present one again", "resumed", "", STARTING),
        _Rule(rf"launcher of {_TASK} was lost with its child", "lost", _LAUNCHER_LOST, LOST),
        _Rule(rf"launcher of {_TASK} came", CAME, "", WAITING),
        _Rule(rf"launcher of {_TASK} comes from another run", CAME, "from another run", WAITING),
        _Rule(rf"{_TASK} started \(attempt 1\)", STARTED, "", RUNNING, "attempt 1"),
        _Rule(rf"{_TASK} started \((?P<which>attempt \d+)\)", RESTARTED, "{which}", RUNNING, "{which}"),
        _Rule(
            rf"{_TASK} ended \((?P<how>.*?)\); restarting (?P<when>.*?)(?: after .*)?",
            "{how}",
            "restarting {when}",
            RESTARTING,
            "{how}",
        ),
        _Rule(rf"{_TASK} is restarted: (?P<why>.*)", "restarting", "{why}", RESTARTING, "{why}"),
        # Only said: what comes of it has texts of its own.
        _Rule(rf"{_TASK} is restarted by request", "restarting", BY_REQUEST),
        _Rule(rf"{_TASK} is replaced by request", "replacing", BY_REQUEST),
        _Rule(
            rf"{_TASK} (?P<state>{FAILED}|{KILLED}|{OUT_OF_MEMORY}) \((?P<how>.*)\); not restarted",
            "{how}",
            "not restarted",
            "{state}",
            "{how}",
        ),
        _Rule(rf"{_TASK} interrupted: (?P<why>.*)", "interrupted", "{why}", INTERRUPTED, "{why}"),
        _Rule(rf"{_TASK} succeeded", "succeeded", "", SUCCEEDED),
        _Rule(rf"{_TASK} stopped \((?P<why>.*)\)", "stopped", "{why}", STOPPED, "{why}"),
        _Rule(rf"{_TASK} is taken away", GONE, "", GONE),
        _Rule(r"job stopped by request", "job stopped", BY_REQUEST, STOPPED),
        _Rule(r"job succeeded: (?P<why>.*)", "job finished", "{why}", SUCCEEDED),
        _Rule(r"job (?P<state>failed|stopped): (?P<why>.*)", "job {state}", "{why}", "{state}"),
        _Rule(r"dismissed", DISMISSED, "nothing is to go on"),
        _Rule(r"all \d+ tasks have come: (?P<names>.*)", ALL_HERE, "{names}"),
        _Rule(
            r"(?P<what>an address has changed|the tasks are now .*): (?P<how>all (?:tasks )?start again)",
            "{what}",
            "{how}",
            STARTING,
        ),
    )
)


def told(text: str) -> Told:
    """What a text says; one that is not known stands as it is."""
    for pattern, rule in _RULES:
        if found := pattern.fullmatch(text):
            parts = found.groupdict()
            return Told(parts.get("task", ""), *(part.format_map(parts) for part in rule[1:]))
    return Told("", text, "", "", "")


def happenings(events: Iterable[Mapping[str, Any]]) -> list[Happening]:
    """The timeline of a run's events (`at` and `text`), oldest first."""
    found: list[Happening] = []
    came: dict[str, float] = {}
    for event in events:
        at, one = float(event["at"]), told(str(event["text"]))
        if one.what == ALL_HERE:
            found += _waited({name: came[name] for name in one.reason.split(", ") if name in came}, at)
        found.append(Happening(at, one.task, one.what, one.reason))
        if one.what == CAME:
            came[one.task] = at
        if one.what == ALL_HERE or (one.state == STARTING and one.reason):
            came = {}
    return found


def _waited(came: Mapping[str, float], at: float) -> Sequence[Happening]:
    """Who was there before the last one came: those have waited for it."""
    last = max(came, key=lambda name: came[name], default="")
    return [
        Happening(at, name, f"waited for {last}", f"{at - since:.1f} s") for name, since in came.items() if name != last
    ]
