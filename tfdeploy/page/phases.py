"""What happened becomes who was in which state from when to when. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..agent.states import (
    FINAL,
    INTERRUPTED,
    LOST,
    RESTARTING,
    RUNNING,
    SCHEDULED,
    STARTING,
    STOPPED,
    TENSORBOARD,
    WAITING,
)
from ..timeline import ALL_HERE, BY_REQUEST, CAME, DISMISSED, GONE, Told, told
from .content import Event

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


def timeline(hostnames: Sequence[str], events: Sequence[Event], now: float) -> Timeline | None:
    """The phases of these tasks, and of others that came and went, up to now or the job's end; None where nothing happened."""
    if not events:
        return None
    begin = min(event["at"] for event in events)
    last = max(event["at"] for event in events)
    texts = [(event["at"], told(event["text"])) for event in events]
    verdict = next(((at, one.state) for at, one in reversed(texts) if _is_verdict(one)), None)
    drawn = _Drawing([*hostnames, *_others(hostnames, [one for _, one in texts])], begin)
    for at, one in texts:
        drawn.take(one, at)
    return Timeline(
        begin, last if verdict else max(last, now), drawn.finish(last if verdict else max(last, now)), verdict
    )


def _others(hostnames: Sequence[str], texts: Iterable[Told]) -> list[str]:
    came = dict.fromkeys(one.task for one in texts if one.what == CAME)
    return [name for name in came if name not in hostnames]


def _is_verdict(one: Told) -> bool:
    return not one.task and one.state in FINAL


def _looks_on(hostname: str) -> bool:
    return hostname.rpartition("-")[0] == TENSORBOARD


class _Drawing:
    """Lanes on which phases are drawn, one event after another."""

    def __init__(self, hostnames: Sequence[str], begin: float) -> None:
        self._lanes: dict[str, list[Phase]] = {name: [Phase(SCHEDULED, begin, begin, "")] for name in hostnames}
        self._all_have_come = False

    def take(self, one: Told, at: float) -> None:
        """What one event changes; nothing where it tells of something else."""
        crew = [name for name in self._lanes if not _looks_on(name)]
        if one.task:
            if one.state and one.task in self._lanes:
                self._put(one.task, self._begins(one), one.note, at)
        elif one.what == ALL_HERE:
            self._all_have_come = True
            self._change(crew, (WAITING,), STARTING, at)
        elif one.state == STARTING:
            self._all_have_come = False
            self._change(crew, (WAITING, STARTING, RUNNING, RESTARTING), STARTING, at)
        elif _is_verdict(one) or one.what == DISMISSED:
            # By the user's word what looks on ends too.
            ending = self._lanes if one.what == DISMISSED or one.reason == BY_REQUEST else crew
            self._change(ending, (SCHEDULED, WAITING, STARTING, RESTARTING, INTERRUPTED, LOST), STOPPED, at)

    def finish(self, end: float) -> dict[str, list[Phase]]:
        """All lanes up to this moment, without phases that lasted for no time."""
        for lane in self._lanes.values():
            lane[-1] = _until(lane[-1], end)
        return {
            name: [phase for phase in lane if phase.end > phase.begin or phase is lane[-1]]
            for name, lane in self._lanes.items()
        }

    def _begins(self, one: Told) -> str:
        """The task's state from now on. That of one which has ended is no other because of its launcher, unless it looks on."""
        now = self._lanes[one.task][-1].state
        if one.state != WAITING:
            return one.state
        if now in FINAL and not _looks_on(one.task):
            return now
        return STARTING if self._all_have_come or _looks_on(one.task) else WAITING

    def _change(self, names: Iterable[str], states: Sequence[str], state: str, at: float) -> None:
        for name in names:
            if self._lanes[name][-1].state in states:
                self._put(name, state, "", at)

    def _put(self, hostname: str, state: str, note: str, at: float) -> None:
        lane = self._lanes[hostname]
        if lane[-1].state == state and not note:
            return
        lane[-1] = _until(lane[-1], at)
        lane.append(Phase(state, lane[-1].end, lane[-1].end, note))


def _until(phase: Phase, end: float) -> Phase:
    return Phase(phase.state, phase.begin, max(phase.begin, end), phase.note)
