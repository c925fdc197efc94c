"""What the keeper wrote of a run becomes who did what, when, and why. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

GIVEN, CAME, WAITED, STARTED, RESTARTED = "given", "came", "waited", "started", "restarted"
ENDED, BACKING_OFF, LOST, JOB = "ended", "restarting", "lost", "job"


class Happening(NamedTuple):
    """One thing that happened."""

    at: float
    task: str
    """The hostname; empty where it is about the job."""
    what: str
    reason: str


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    what: str


_RULES = tuple(
    _Rule(re.compile(pattern, re.DOTALL), what)
    for pattern, what in (
        (r"run given", "scheduled"),
        (r"this run is the present one again", "resumed"),
        (r"launcher of (?P<task>\S+) was lost with its child", LOST),
        (r"launcher of (?P<task>\S+) came", CAME),
        (r"launcher of (?P<task>\S+) comes (?P<reason>from another run)", CAME),
        (r"(?P<task>\S+) started \(attempt 1\)", STARTED),
        (r"(?P<task>\S+) started \((?P<reason>attempt \d+)\)", RESTARTED),
        (r"(?P<task>\S+) ended \((?P<what>.*?)\); restarting (?P<reason>.*?)(?: after .*)?", ""),
        (r"(?P<task>\S+) is restarted: (?P<reason>.*)", BACKING_OFF),
        (r"(?P<task>\S+) (?:failed|killed|out of memory) \((?P<what>.*)\); (?P<reason>not restarted)", ""),
        (r"(?P<task>\S+) interrupted: (?P<reason>.*)", "interrupted"),
        (r"(?P<task>\S+) (?P<what>succeeded)", ""),
        (r"(?P<task>\S+) (?P<what>stopped) \((?P<reason>.*)\)", ""),
        (r"(?P<task>\S+) is (?P<what>taken away)", ""),
        (r"job (?P<what>stopped) (?P<reason>by request)", ""),
        (r"job (?P<what>succeeded|failed|stopped): (?P<reason>.*)", ""),
        (r"(?P<what>an address has changed|the tasks are now .*): (?P<reason>all (?:tasks )?start again)", ""),
    )
)
_ALL_CAME = re.compile(r"all \d+ tasks have come: (.*)", re.DOTALL)
_WORDS = {LOST: "its launcher came again: the container, the process or its machine was gone"}
_JOB_WORDS = {"succeeded": "job finished", "failed": "job failed", "stopped": "job stopped"}


def happenings(events: Iterable[Mapping[str, Any]]) -> list[Happening]:
    """The timeline of a run's events (`at` and `text`), oldest first; a text that is not known stands as it is."""
    found: list[Happening] = []
    came: dict[str, float] = {}
    for event in events:
        at, text = float(event["at"]), str(event["text"])
        if all_came := _ALL_CAME.fullmatch(text):
            found += _waited(came, all_came[1].split(", "), at)
            came = {}
            continue
        one = _happening(at, text)
        found.append(one)
        if one.what == CAME:
            came[one.task] = at
        if one.reason.endswith("start again"):
            came = {}
    return found


def _waited(came: Mapping[str, float], tasks: Sequence[str], at: float) -> list[Happening]:
    """Who was there before the last one came: those have waited for it."""
    if not came:
        return [Happening(at, "", "all here", ", ".join(tasks))]
    last = max(came, key=lambda name: came[name])
    waited = [(name, at - since) for name, since in came.items() if name != last]
    return [
        *(Happening(at, name, f"waited for {last}", f"{seconds:.1f} s") for name, seconds in waited),
        Happening(at, "", "all here", ", ".join(tasks)),
    ]


def _happening(at: float, text: str) -> Happening:
    for pattern, what in _RULES:
        if match := pattern.fullmatch(text):
            parts = {key: value or "" for key, value in match.groupdict().items()}
            said = what or parts["what"]
            if text.startswith("job "):
                said = _JOB_WORDS[said]
            reason = parts.get("reason", "") or _WORDS.get(said, "")
            return Happening(at, parts.get("task", ""), said, _again(what, text, reason))
    return Happening(at, "", text, "")


def _again(what: str, text: str, reason: str) -> str:
    return f"restarting {reason}" if not what and "); restarting " in text else reason
