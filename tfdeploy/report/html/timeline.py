"""The timeline as a picture: a lane for each task, and its phases in a table. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...agent.model import events
from ...agent.model import run_state as states
from ...agent.model.events import Event
from ...units import moment
from ..events import exit_text
from ..tables import KINDS, REMOVED
from .chart import Axis, bottom, duration, percent, time_axis
from .markup import Html, box, element, joined, named_row

ENDED = states.FINAL | {REMOVED}


@dataclass(frozen=True)
class TaskPhase:
    """A task in one state; times in seconds since 1970."""

    state: str
    begin: float
    end: float
    note: str


@dataclass(frozen=True)
class Timeline:
    """Each task's phases, oldest first, and when and how the run ended."""

    begin: float
    end: float
    lanes: dict[str, list[TaskPhase]]
    result: tuple[float, str] | None


def timeline(hostnames: Sequence[str], happened: Sequence[Event], now: float) -> Timeline | None:
    """The phases of these tasks, and of tasks that were removed, until now or the run's end; None without events."""
    if not happened:
        return None
    ends = [(event.at, event.result.state) for event in happened if event.result is not None]
    times = [event.at for event in happened]
    begin, end = min(times), max(times if ends else [*times, now])
    registered = [event.task for event in happened if event.kind == events.LAUNCHER_REGISTERED]
    lanes = _Lanes([*dict.fromkeys([*hostnames, *registered])], begin)
    for event in happened:
        lanes.apply(event)
    return Timeline(begin, end, lanes.finish(end), ends[-1] if ends else None)


def _is_auxiliary(hostname: str) -> bool:
    return hostname.rpartition("-")[0] == states.TENSORBOARD


_NOT_RUNNING = (states.SCHEDULED, states.WAITING, states.STARTING, states.RESTARTING, states.INTERRUPTED, states.LOST)
_UNFINISHED = (states.WAITING, states.STARTING, states.RUNNING, states.RESTARTING)


class _Lanes:
    """The lanes of all tasks, built up event by event."""

    def __init__(self, hostnames: Sequence[str], begin: float) -> None:
        self._lanes: dict[str, list[TaskPhase]] = {
            name: [TaskPhase(states.SCHEDULED, begin, begin, "")] for name in hostnames
        }
        self._training = [name for name in self._lanes if not _is_auxiliary(name)]
        self._barrier_passed = False

    def apply(self, event: Event) -> None:
        """Begin the phases that an event begins."""
        if event.kind == events.BARRIER_PASSED:
            self._barrier_passed = True
            self._change(self._training, (states.WAITING,), states.STARTING, event.at)
        elif event.kind in (events.RUN_RESUMED, events.ADDRESS_CHANGED, events.TASKS_CHANGED):
            self._barrier_passed = False
            self._change(self._training, _UNFINISHED, states.STARTING, event.at)
        elif event.kind == events.STOP_REQUESTED or event.result is not None:
            # Auxiliary tasks end only at the user's request.
            requested = event.result is None or event.result.state == states.STOPPED
            self._change(self._lanes if requested else self._training, _NOT_RUNNING, states.STOPPED, event.at)
        elif event.task in self._lanes:
            state, note = self._phase(event)
            if state:
                self._begin(event.task, state, note, event.at)

    def finish(self, end: float) -> dict[str, list[TaskPhase]]:
        """All lanes up to this time, without phases of no length."""
        for lane in self._lanes.values():
            lane[-1] = replace(lane[-1], end=max(lane[-1].begin, end))
        return {
            name: [phase for phase in lane if phase.end > phase.begin or phase is lane[-1]]
            for name, lane in self._lanes.items()
        }

    def _phase(self, event: Event) -> tuple[str, str]:
        """The state and the note of the phase that begins; no state where none does."""
        failed = event.exit.state if event.exit is not None else ""
        phases = {
            events.LAUNCHER_REGISTERED: (self._registered(event.task), ""),
            events.LAUNCHER_REUSED: (self._registered(event.task), ""),
            events.LAUNCHER_LOST: (states.LOST, ""),
            events.TASK_STARTED: (states.RUNNING, f"attempt {event.attempt}"),
            events.TASK_RESTARTING: (states.RESTARTING, exit_text(event.exit)),
            events.TASK_FAILED: (failed, exit_text(event.exit)),
            events.SETTINGS_CHANGED: (states.RESTARTING, "its settings have changed"),
            events.TASK_INTERRUPTED: (states.INTERRUPTED, event.reason),
            events.TASK_SUCCEEDED: (states.SUCCEEDED, ""),
            events.TASK_STOPPED: (states.STOPPED, event.reason),
            events.TASK_REMOVED: (REMOVED, ""),
        }
        return phases.get(event.kind, ("", ""))

    def _registered(self, hostname: str) -> str:
        """The state of a task after its launcher has registered. A training task that has ended stays as it is."""
        state = self._lanes[hostname][-1].state
        if state in states.FINAL and not _is_auxiliary(hostname):
            return state
        return states.STARTING if self._barrier_passed or _is_auxiliary(hostname) else states.WAITING

    def _change(self, names: Iterable[str], before: Sequence[str], state: str, at: float) -> None:
        for name in names:
            if self._lanes[name][-1].state in before:
                self._begin(name, state, "", at)

    def _begin(self, hostname: str, state: str, note: str, at: float) -> None:
        lane = self._lanes[hostname]
        if lane[-1].state == state and not note:
            return
        at = max(lane[-1].begin, at)
        lane[-1] = replace(lane[-1], end=at)
        lane.append(TaskPhase(state, at, at, note))


_LANE = 46
_BAR_TOP, _BAR = 21, 16
_NARROW, _WIDE, _LETTER = 290, 640, 7.0
"""How wide the picture is at least on a phone and elsewhere, and a letter about."""


def picture(timeline: Timeline) -> Html:
    """A figure: lanes over an axis of time, a legend, and all phases in a table for those who want numbers."""
    across = time_axis(timeline.end - timeline.begin)
    lanes = [
        _lane(place, name, phases, timeline, across) for place, (name, phases) in enumerate(timeline.lanes.items())
    ]
    ticks = [percent(across.place(tick)) for tick, _ in across.ticks]
    drawing = element(
        "svg",
        element("title", f"Phases of {len(lanes)} tasks from {moment(timeline.begin)} to {moment(timeline.end)}"),
        *(element("line", x1=at, x2=at, y1="0", y2="100%", class_="grid") for at in ticks),
        element("line", x1="0", x2="100%", y1="100%", y2="100%", class_="axis"),
        *bottom(across),
        *_result(timeline, across),
        *lanes,
        class_="plot",
        role="img",
        height=_LANE * len(lanes),
    )
    return element(
        "figure",
        element("div", drawing, class_="frame lanes"),
        element("figcaption", f"Time since {moment(timeline.begin)}. ", _legend(timeline)),
        _table(timeline),
        class_="timeline",
    )


def _result(timeline: Timeline, across: Axis) -> Iterator[Html]:
    if timeline.result:
        at, state = timeline.result
        place = percent(across.place(at - timeline.begin))
        title = element("title", f"run {state} after {duration(at - timeline.begin)}")
        yield element("line", title, x1=place, x2=place, y1="0", y2="100%", class_=f"result {KINDS.get(state, 'over')}")


def _lane(place: int, name: str, phases: list[TaskPhase], timeline: Timeline, across: Axis) -> Html:
    top = place * _LANE
    bars = [_bar(name, phase, top + _BAR_TOP, timeline, across) for phase in phases]
    last = phases[-1].state
    state = element("tspan", f"  {last}", class_=f"word {KINDS.get(last, '')}")
    return joined(element("text", name, state, x="0", y=top + 15, class_="lane"), *bars)


def _bar(name: str, phase: TaskPhase, top: int, timeline: Timeline, across: Axis) -> Html:
    begin, end = (across.place(at - timeline.begin) for at in (phase.begin, phase.end))
    note = f" ({phase.note})" if phase.note else ""
    title = element("title", f"{name}: {phase.state}{note}, {duration(phase.end - phase.begin)}")
    kind = KINDS[phase.state]
    if phase.state in ENDED:
        middle = top + _BAR / 2
        dot = element("circle", title, cx=percent(begin), cy=middle, r="5", class_=f"phase {kind}")
        return joined(
            element("line", x1=percent(begin), x2=percent(end), y1=middle, y2=middle, class_=f"after {kind}"), dot
        )
    is_again = phase.state == states.RUNNING and phase.note not in ("", "attempt 1")
    words = f"{phase.state} · {phase.note}" if is_again else phase.state
    width = len(words) * _LETTER + 10
    text = Html("")
    if (end - begin) * _WIDE >= width:
        roomy = "roomy" if (end - begin) * _NARROW < width else None
        text = element("text", words, x="7", y=_BAR / 2, dy="0.35em", class_=roomy)
    bar = element("rect", title, width="100%", height="100%", rx="3")
    box = {"x": percent(begin), "y": top, "width": percent(max(end - begin, 0.003)), "height": _BAR}
    return element("svg", bar, text, **box, class_=f"phase {kind}")


def _legend(timeline: Timeline) -> Html:
    seen = {phase.state for phases in timeline.lanes.values() for phase in phases}
    swatches = {
        state: element("i", class_=f"swatch {KINDS[state]}", aria_hidden="true") for state in KINDS if state in seen
    }
    return element(
        "span", *(element("span", swatch, state, class_="key") for state, swatch in swatches.items()), class_="keys"
    )


def _table(timeline: Timeline) -> Html:
    rows = [
        named_row(
            name,
            phase.state,
            moment(phase.begin),
            duration(phase.end - phase.begin) if phase.state not in ENDED else "",
            phase.note,
        )
        for name, phases in timeline.lanes.items()
        for phase in phases
    ]
    columns = ("task", "phase", "from", "lasted", "note")
    table = box("Phases of each task", columns, rows, "phases of each task")
    return element("details", element("summary", "The same as a table"), table, id="phases")
