"""The timeline as a picture: a lane for each task, and its phases in a table. Pure."""

from collections.abc import Iterator

from ..agent.states import (
    DEAD,
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
from ..report import moment
from ..timeline import GONE
from .axes import Axis, duration, time_axis
from .chart import bottom, percent
from .markup import Html, element, joined
from .phases import ENDED, Phase, Timeline

KINDS = {
    SCHEDULED: "idle",
    WAITING: "wait",
    STARTING: "start",
    RUNNING: "run",
    RESTARTING: "warn",
    INTERRUPTED: "warn",
    LOST: "bad",
    SUCCEEDED: "good",
    STOPPED: "over",
    GONE: "over",
    **dict.fromkeys(DEAD, "bad"),
}
"""State to the class that colours it."""

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
    height = _LANE * len(lanes)
    drawing = element(
        "svg",
        element("title", f"Phases of {len(lanes)} tasks from {moment(timeline.begin)} to {moment(timeline.end)}"),
        *_columns(across),
        *_verdict(timeline, across),
        *lanes,
        class_="plot",
        role="img",
        height=height,
    )
    return element(
        "figure",
        element("div", drawing, class_="frame lanes"),
        element("figcaption", f"Time since {moment(timeline.begin)}. ", _legend(timeline)),
        _table(timeline),
        class_="timeline",
    )


def _columns(across: Axis) -> Iterator[Html]:
    for tick, _ in across.ticks:
        at = percent(across.place(tick))
        yield element("line", x1=at, x2=at, y1="0", y2="100%", class_="grid")
    yield element("line", x1="0", x2="100%", y1="100%", y2="100%", class_="axis")
    yield from bottom(across)


def _verdict(timeline: Timeline, across: Axis) -> Iterator[Html]:
    if timeline.verdict:
        at, state = timeline.verdict
        place = percent(across.place(at - timeline.begin))
        title = element("title", f"job {state} after {duration(at - timeline.begin)}")
        yield element(
            "line", title, x1=place, x2=place, y1="0", y2="100%", class_=f"verdict {KINDS.get(state, 'over')}"
        )


def _lane(place: int, name: str, phases: list[Phase], timeline: Timeline, across: Axis) -> Html:
    top = place * _LANE
    bars = [_bar(name, phase, top + _BAR_TOP, timeline, across) for phase in phases]
    last = phases[-1].state
    state = element("tspan", f"  {last}", class_=f"word {KINDS.get(last, '')}")
    return joined(element("text", name, state, x="0", y=top + 15, class_="lane"), *bars)


def _bar(name: str, phase: Phase, top: int, timeline: Timeline, across: Axis) -> Html:
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
    words = (
        f"{phase.state} · {phase.note}"
        if phase.state == RUNNING and phase.note not in ("", "attempt 1")
        else phase.state
    )
    text = element("text", words, x="7", y=_BAR / 2, dy="0.35em") if _fits(words, end - begin, _NARROW) else Html("")
    if not text and _fits(words, end - begin, _WIDE):
        text = element("text", words, x="7", y=_BAR / 2, dy="0.35em", class_="roomy")
    bar = element("rect", title, width="100%", height="100%", rx="3")
    box = {"x": percent(begin), "y": top, "width": percent(max(end - begin, 0.003)), "height": _BAR}
    return element("svg", bar, text, **box, class_=f"phase {kind}")


def _fits(words: str, share: float, width: int) -> bool:
    return share * width >= len(words) * _LETTER + 10


def _legend(timeline: Timeline) -> Html:
    seen = {phase.state for phases in timeline.lanes.values() for phase in phases}
    return element(
        "span",
        *(
            element("span", element("i", class_=f"swatch {KINDS[state]}", aria_hidden="true"), state, class_="key")
            for state in KINDS
            if state in seen
        ),
        class_="keys",
    )


def _table(timeline: Timeline) -> Html:
    rows = [
        element(
            "tr",
            element("th", name, scope="row"),
            element("td", phase.state),
            element("td", moment(phase.begin)),
            element("td", duration(phase.end - phase.begin) if phase.state not in ENDED else ""),
            element("td", phase.note),
        )
        for name, phases in timeline.lanes.items()
        for phase in phases
    ]
    head = element("tr", *(element("th", word, scope="col") for word in ("task", "phase", "from", "lasted", "note")))
    caption = element("caption", "Phases of each task", class_="unseen")
    table = element("table", caption, element("thead", head), element("tbody", *rows))
    box = element("div", table, class_="box", tabindex="0", role="region", aria_label="phases of each task")
    return element("details", element("summary", "The same as a table"), box, id="phases")
