"""What happened becomes who was in which state from when to when. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..agent.states import (
    FINAL,
    INTERRUPTED,
    LOST,
    RESTARTING,
    RUNNING,
    SCHEDULED,
    STARTING,
    STOPPED,
    SUCCEEDED,
    WAITING,
)
from .content import Event

GONE = "taken away"
ENDED = FINAL | {GONE}


@dataclass(frozen=True)
class Phase:
    """A task in one state; times in seconds since 1970."""

    state: str
    begin: float
    end: float
    note: str


@dataclass(frozen=True)
class Timeline:
    """Each task's phases, oldest first, and the moment of the job's verdict."""

    begin: float
    end: float
    lanes: dict[str, list[Phase]]
    verdict: tuple[float, str] | None


class _Change(NamedTuple):
    hostname: str
    state: str
    note: str


_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.DOTALL), state)
    for pattern, state in (
        (r"launcher of (?P<who>\S+) was lost\b.*", LOST),
        (r"launcher of (?P<who>\S+) (?:came|comes from another run)", WAITING),
        (r"(?P<who>\S+) started \((?P<note>attempt \d+)\)", RUNNING),
        (r"(?P<who>\S+) ended \((?P<note>.*?)\); restarting.*", RESTARTING),
        (r"(?P<who>\S+) is restarted: (?P<note>.*)", RESTARTING),
        (r"(?P<who>\S+) (?P<state>failed|killed|out of memory) \((?P<note>.*)\); not restarted", ""),
        (r"(?P<who>\S+) succeeded", SUCCEEDED),
        (r"(?P<who>\S+) stopped \((?P<note>.*)\)", STOPPED),
        (r"(?P<who>\S+) interrupted: (?P<note>.*)", INTERRUPTED),
        (r"(?P<who>\S+) is taken away", GONE),
    )
)
"""The keeper's words (`agent.orders`) that change one task."""

_ALL_HAVE_COME = re.compile(r"all \d+ tasks have come: .*")
_ALL_AGAIN = re.compile(r"(?:.*: all (?:tasks )?start again|this run is the present one again)")
_VERDICT = re.compile(r"job (succeeded|failed|stopped)\b.*", re.DOTALL)


def timeline(hostnames: Sequence[str], events: Sequence[Event], now: float) -> Timeline | None:
    """The phases of these tasks, and of others that came and went, up to now or the job's end; None where nothing happened."""
    if not events:
        return None
    begin = min(event["at"] for event in events)
    last = max(event["at"] for event in events)
    verdict = next(
        ((event["at"], found[1]) for event in reversed(events) if (found := _VERDICT.fullmatch(event["text"]))), None
    )
    drawn = _Drawing([*hostnames, *_others(hostnames, events)], begin)
    for event in events:
        drawn.take(event["text"], event["at"])
    return Timeline(
        begin, last if verdict else max(last, now), drawn.finish(last if verdict else max(last, now)), verdict
    )


def _others(hostnames: Sequence[str], events: Iterable[Event]) -> list[str]:
    came = (re.fullmatch(r"launcher of (\S+) came", event["text"]) for event in events)
    return [name for name in dict.fromkeys(found[1] for found in came if found) if name not in hostnames]


class _Drawing:
    """Lanes on which phases are drawn, one event after another."""

    def __init__(self, hostnames: Sequence[str], begin: float) -> None:
        self._lanes: dict[str, list[Phase]] = {name: [Phase(SCHEDULED, begin, begin, "")] for name in hostnames}
        self._all_have_come = False

    def take(self, text: str, at: float) -> None:
        """What one event changes; nothing where it tells of something else."""
        if _ALL_HAVE_COME.fullmatch(text):
            self._all_have_come = True
            self._change_all((WAITING,), STARTING, at)
        elif _ALL_AGAIN.fullmatch(text):
            self._all_have_come = False
            self._change_all((WAITING, STARTING, RUNNING, RESTARTING), STARTING, at)
        elif _VERDICT.fullmatch(text):
            self._change_all((SCHEDULED, WAITING, STARTING, RESTARTING, INTERRUPTED, LOST), STOPPED, at)
        else:
            change = _change(text)
            if change is not None and change.hostname in self._lanes:
                state = STARTING if change.state == WAITING and self._all_have_come else change.state
                self._put(change.hostname, state, change.note, at)

    def finish(self, end: float) -> dict[str, list[Phase]]:
        """All lanes up to this moment, without phases that lasted for no time."""
        for lane in self._lanes.values():
            lane[-1] = _until(lane[-1], end)
        return {
            name: [phase for phase in lane if phase.end > phase.begin or phase is lane[-1]]
            for name, lane in self._lanes.items()
        }

    def _change_all(self, states: Sequence[str], state: str, at: float) -> None:
        for name, lane in self._lanes.items():
            if lane[-1].state in states:
                self._put(name, state, "", at)

    def _put(self, hostname: str, state: str, note: str, at: float) -> None:
        lane = self._lanes[hostname]
        if lane[-1].state == state and not note:
            return
        lane[-1] = _until(lane[-1], at)
        lane.append(Phase(state, lane[-1].end, lane[-1].end, note))


def _until(phase: Phase, end: float) -> Phase:
    return Phase(phase.state, phase.begin, max(phase.begin, end), phase.note)


def _change(text: str) -> _Change | None:
    for pattern, state in _RULES:
        if found := pattern.fullmatch(text):
            parts = found.groupdict()
            return _Change(parts["who"], state or parts["state"], parts.get("note") or "")
    return None
