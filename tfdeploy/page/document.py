"""One look at a cluster becomes one HTML document, which opens without a network. Pure."""

import base64
import datetime
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from urllib.parse import quote

from ..agent.states import DEAD
from ..quantities import counted
from ..report import Report, moment
from . import tables
from .axes import duration, number
from .chart import drawable, gallery, place_words
from .content import Content, Event
from .curves import Curve, curves
from .lanes import picture
from .markup import Html, element, joined
from .phases import timeline

LAST_LINES = 200
"""How many last lines of each task stand on the page."""

_MOST_EVENTS = 1000
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" fill="#1f5f8b"/>'
    '<path d="M3 4c2 7 4 8 10 8" fill="none" stroke="#fff" stroke-width="2" stroke-linecap="round"/></svg>'
)


def page(content: Content, live: bool = False) -> str:
    """The whole document. A live one asks where it came from for `fragment` every two seconds; any other one has no script."""
    head = [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy(live)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content="tfdeploy"),
        element("title", f"{content.name}: {content.report.state}"),
        element("link", rel="icon", href=f"data:image/svg+xml,{quote(_ICON)}"),
        element("style", Html(_kept("page.css"))),
    ]
    banner = element("p", id="silence", role="status", hidden=True)
    body = [*([banner] if live else []), element("main", fragment(content), id="page")]
    if live:
        body.append(element("script", Html(_kept("live.js"))))
    document = element("html", element("head", *head), element("body", *body), lang="en")
    return f"<!DOCTYPE html>\n{document}\n"


def policy(live: bool = False) -> str:
    """What a browser may load and run for this page: its own style, its own script, and nothing from elsewhere."""
    rules = ["default-src 'none'", f"style-src '{_digest('page.css')}'", "img-src data:"]
    if live:
        rules += [f"script-src '{_digest('live.js')}'", "connect-src 'self'"]
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


@cache
def _kept(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _digest(name: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(_kept(name).encode()).digest()).decode()}"


def fragment(content: Content) -> Html:
    """What stands within the page's `main`, and changes from look to look."""
    found = curves(content.lines)
    sections = [
        ("cluster", "Machines and tasks", _cluster(content.report)),
        ("results", "Results", _results(content, found)),
        ("curves", "Curves", gallery(found)),
        ("timeline", "Timeline", _timeline(content)),
        ("logs", "Last lines", _logs(content)),
        ("configuration", "Configuration", _configuration(content)),
    ]
    there = [section for section in sections if section[2]]
    links = [element("li", element("a", title, href=f"#{name}")) for name, title, _ in there]
    return joined(
        _header(content),
        element("nav", element("ul", *links), id="contents", aria_label="On this page"),
        *(element("section", element("h2", title), body, id=name) for name, title, body in there),
        element("footer", element("p", "Written by tfdeploy", _seen_words(content.report), "."), id="end"),
    )


def _seen_words(seen: Report) -> str:
    return f" from what was seen at {seen.observed_at}" if seen.observed_at else ""


def _header(content: Content) -> Html:
    seen = content.report
    facts = {
        "run": seen.run,
        "seen": seen.observed_at,
        "lasted": _lasted(content),
        "backend": content.backend,
        "project": content.project,
        "stack": content.stack,
    }
    listed = [
        element("div", element("dt", name), element("dd", value, class_=f"f-{name}"))
        for name, value in facts.items()
        if value
    ]
    state = element("span", seen.state, class_=f"state {tables.kind(seen.state)}")
    return element(
        "header",
        element("h1", content.name, " ", state),
        element("p", _sentence(seen.reason), class_="reason") if seen.reason else "",
        element("dl", *listed, class_="facts"),
        id="head",
        data_title=f"{content.name}: {seen.state}",
    )


def _sentence(reason: str) -> str:
    return reason if reason.endswith((".", "!", "?", "…")) else f"{reason}."


def _lasted(content: Content) -> str:
    drawn = timeline([], content.events, _seen_at(content.report))
    return duration(drawn.end - drawn.begin) if drawn else ""


def _seen_at(seen: Report) -> float:
    """When the look was, as `moment` wrote it."""
    try:
        parsed = datetime.datetime.strptime(seen.observed_at, "%Y-%m-%d %H:%M:%SZ")
    except ValueError:
        return 0.0
    return parsed.replace(tzinfo=datetime.UTC).timestamp()


def _cluster(seen: Report) -> Html:
    told = tables.cost(seen.cost)
    return joined(
        element("h3", "Machines"),
        tables.machines(seen.machines),
        element("p", " ".join(told), class_="cost") if told else "",
        element("h3", "Tasks"),
        tables.tasks(seen.tasks),
    )


def _results(content: Content, found: dict[str, Curve]) -> Html:
    """Metrics, values that were told only once, endpoints."""
    seen = content.report
    tiles = [_tile(name, *_told(value)) for name, value in seen.metrics.items()]
    once = [
        (quantity, curve) for quantity, curve in found.items() if quantity not in seen.metrics and not drawable(curve)
    ]
    tiles += [tile for quantity, curve in once for tile in _told_once(quantity, curve)]
    parts = [element("div", *tiles, class_="tiles")] if tiles else []
    if seen.endpoints:
        parts += [element("h3", "Endpoints"), tables.pairs("Endpoints", seen.endpoints, "task", "address")]
    return joined(*parts)


def _told_once(quantity: str, curve: Curve) -> Iterator[Html]:
    for hostname, points in curve.series.items():
        x, y = points[-1]
        yield _tile(quantity, number(y), f"{hostname}, {place_words(curve.by, x)}")


def _tile(name: str, value: str, source: str) -> Html:
    return element(
        "div", element("span", name, class_="name"), element("b", value), element("small", source), class_="tile"
    )


def _told(value: object) -> tuple[str, str]:
    """A metric's value, and what there is to say of it."""
    if value is None:
        return "\u2013", "metric, not told yet"
    return number(value) if isinstance(value, (int, float)) else str(value), "metric"


def _timeline(content: Content) -> Html:
    hostnames = [str(row["hostname"]) for row in content.report.tasks]
    drawn = timeline(hostnames, content.events, _seen_at(content.report))
    if drawn is None:
        return Html("")
    events = content.events[-_MOST_EVENTS:]
    heading = element("h3", "Events", element("small", f" {len(events)}, times in UTC"))
    return joined(picture(drawn), heading, _events(events, drawn.begin))


def _events(events: Sequence[Event], begin: float) -> Html:
    rows = [
        element(
            "tr",
            element("td", tables.clock(event["at"]), title=_moment(event["at"]), class_="clock"),
            element("td", f"+{duration(max(0.0, round(event['at'] - begin, 1)))}", class_="since"),
            element("td", event["text"], class_="text"),
        )
        for event in events
    ]
    head = element("tr", *(element("th", word, scope="col") for word in ("time", "since", "what happened")))
    caption = element("caption", "Events, oldest first", class_="unseen")
    made = element("table", caption, element("thead", head), element("tbody", *rows))
    return element("div", made, class_="box events", tabindex="0", role="region", aria_label="events", id="events")


def _moment(at: float) -> str | None:
    return moment(at) if tables.clock(at) else None


def _logs(content: Content) -> Html:
    """The last lines of each task: open are those of tasks that ended badly, or of the only one."""
    rows = [row for row in content.report.tasks if content.lines.get(str(row["hostname"]))]
    return joined(*(_log(content, str(row["hostname"]), str(row["status"]), len(rows) == 1) for row in rows))


def _log(content: Content, hostname: str, status: str, alone: bool) -> Html:
    printed = content.lines[hostname]
    last = printed[-LAST_LINES:]
    lines = [
        element(
            "span",
            element("span", tables.clock(at), class_="clock"),
            element("span", text, class_="text"),
            class_="entry",
        )
        for at, text in last
    ]
    count = (
        counted(len(printed), "line") if len(last) == len(printed) else f"the last {len(last)} of {len(printed)} lines"
    )
    summary = element(
        "summary",
        element("b", hostname),
        " ",
        element("span", status, class_=f"word {tables.kind(status)}"),
        " ",
        element("small", count),
    )
    return element(
        "details",
        summary,
        element(
            "pre", *lines, tabindex="0", role="region", aria_label=f"last lines of {hostname}", id=f"lines-{hostname}"
        ),
        id=f"log-{hostname}",
        class_="log",
        open=alone or any(status.startswith(word) for word in DEAD),
    )


def _configuration(content: Content) -> Html:
    parts = []
    if content.options:
        parts += [element("h3", "Options"), tables.pairs("Options", content.options, "name", "value")]
    if content.versions:
        parts += [element("h3", "Versions"), tables.pairs("Versions", content.versions, "what", "version")]
    return joined(*parts)
