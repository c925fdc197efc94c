"""A page about a cluster: one HTML document that needs no network. Pure."""

import base64
import datetime
import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from ...agent.model.events import Event
from ...agent.model.run_state import DEAD
from ...units import counted, dollars, from_moment, moment, text_of_seconds
from ..events import sentence, with_waits
from ..log_curves import Curve, curves
from ..program_problems import Finding
from ..report import Report, metric_text
from ..tables import Table, kind, machine_table, task_table, without_empty_columns
from .chart import drawable, duration, gallery, leader, number, place_text
from .markup import Html, box, element, joined, named_row
from .timeline import picture, timeline


@dataclass(frozen=True)
class Content:
    """A cluster at one moment: its report, events, log lines and options."""

    name: str
    backend: str
    project: str
    stack: str
    report: Report
    events: Sequence[Event] = ()
    """Oldest first."""
    lines: Mapping[str, Sequence[tuple[float, str]]] = field(default_factory=dict)
    """Hostname to the log lines of the task with their times, oldest first."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The arguments of the component, without secrets."""
    versions: Mapping[str, str] = field(default_factory=dict)
    run: Mapping[str, str] = field(default_factory=dict)
    """What was submitted, and which checkpoint is stored, by name; empty where nothing was."""


_FIRST_COLUMNS = ("hostname", "status")
_LAST_COLUMNS = ("machine", "command", "container")
"""The columns of tasks with which the page begins and ends: a narrow screen shows the first, and scrolls to the last."""


def task_columns(tasks: Table, elsewhere: Collection[str] = ()) -> Table:
    """The tasks in the order of the page, without the columns that are `elsewhere` on it and the same in each row."""
    others = [name for name in tasks.columns if name not in (*_FIRST_COLUMNS, *_LAST_COLUMNS)]
    columns = [name for name in (*_FIRST_COLUMNS, *others, *_LAST_COLUMNS) if name in tasks.columns]
    repeated = {name for name in elsewhere if len({row.get(name) for row in tasks.rows}) == 1}
    return tasks._replace(columns=[name for name in columns if name not in repeated])


def table(content: Table) -> Html:
    """A table in a box that scrolls."""
    rows = [element("tr", *(_cell(column, row[column]) for column in content.columns)) for row in content.rows]
    return box(content.title, [column.replace("_", " ") for column in content.columns], rows)


def _cell(column: str, text: str) -> Html:
    if column == "status" and text:
        return element("td", element("span", text, class_=f"word {_class(text)}"), class_="c-status")
    if column in ("command", "container") and text:
        return element("td", element("code", text, class_="long", title=text), class_=f"c-{column}")
    return element("td", text, class_=f"c-{column}")


def _class(status: str) -> str:
    return kind(status) or "over"


def pairs(title: str, items: Mapping[str, str], first: str, second: str) -> Html:
    """A table of names and values."""
    rows = [named_row(element("code", name), element("code", value)) for name, value in items.items()]
    return box(title, (first, second), rows, class_="box pairs")


def cost_sentences(cost: Mapping[str, Any]) -> list[str]:
    """What the machines cost, and when they terminate themselves."""
    sentences = [f"{cost['summary']}." if cost.get("summary") else ""]
    if cost.get("maximum") is not None:
        sentences.append(f"The planned machines cost at most {dollars(cost['maximum'])}.")
    if cost.get("idle_timeout"):
        sentences.append(f"A machine terminates itself after {text_of_seconds(cost['idle_timeout'])} without tasks.")
    if cost.get("max_lifetime"):
        sentences.append(
            f"A machine terminates itself at the latest {text_of_seconds(cost['max_lifetime'])} after its start."
        )
    if cost.get("billed_after"):
        sentences.append(f"Still billed after the machines are terminated: {', '.join(cost['billed_after'])}.")
    if cost.get("prices_date"):
        sentences.append(f"Prices are in US dollars as of {cost['prices_date']}.")
    return [sentence for sentence in sentences if sentence]


def clock(at: float) -> str:
    """The time of day in UTC; empty if the calendar has no such time."""
    try:
        return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return ""


LAST_LINES = 200
"""How many lines of each task are on the page."""

_MOST_EVENTS = 1000
_MOST_FAILURES = 3
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" fill="#1f5f8b"/>'
    '<path d="M3 4c2 7 4 8 10 8" fill="none" stroke="#fff" stroke-width="2" stroke-linecap="round"/></svg>'
)


_RELOAD = """
const folds = [...document.querySelectorAll("details[id]")], stored = JSON.parse(sessionStorage.folds || "{}");
for (const node of folds) if (node.id in stored) node.open = stored[node.id];
for (const node of document.querySelectorAll("pre")) node.scrollTop = node.scrollHeight;
const reload = () => {
  sessionStorage.folds = JSON.stringify(Object.fromEntries(folds.map((node) => [node.id, node.open])));
  document.hidden ? setTimeout(reload, 1000) : location.reload();
};
setTimeout(reload, 3000);
"""
"""The script of a live page: it is reloaded every three seconds, and what is unfolded stays so."""


def page(content: Content, live: bool = False) -> str:
    """The document. A live page reloads itself; others have no script."""
    return whole_page(f"{content.name}: {content.report.state}", fragment(content), live)


def whole_page(title: str, main: Html, live: bool = False) -> str:
    """A document with a title and a content."""
    head = [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy(live)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content="tfdeploy"),
        element("title", title),
        element("link", rel="icon", href=f"data:image/svg+xml,{quote(_ICON)}"),
        element("style", Html(_asset("page.css"))),
    ]
    body = [element("main", main, id="page"), *([element("script", Html(_RELOAD))] if live else [])]
    document = element("html", element("head", *head), element("body", *body), lang="en")
    return f"<!DOCTYPE html>\n{document}\n"


def policy(live: bool = False) -> str:
    """The content security policy: the page's own style and script, and nothing from elsewhere."""
    rules = ["default-src 'none'", f"style-src '{_digest(_asset('page.css'))}'", "img-src data:"]
    rules += [f"script-src '{_digest(_RELOAD)}'"] if live else []
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def fragment(content: Content) -> Html:
    """The content of `main`."""
    quantities = curves(content.lines)
    report = content.report
    sections = [
        ("results", "Results", _results(content, quantities)),
        ("curves", "Curves", gallery(quantities)),
        ("tasks", "Tasks", _tasks(content)),
        ("timeline", "Timeline", _timeline(content)),
        ("logs", "Last log lines", _logs(content)),
        ("machines", "Machines", _machines(report)),
        ("run", "Run", pairs("Run", content.run, "what", "value") if content.run else Html("")),
        ("configuration", "Configuration", _configuration(content)),
    ]
    return laid_out(_header(content), sections, content.report.observed_at)


def laid_out(header: Html, sections: Sequence[tuple[str, str, Html]], observed_at: str) -> Html:
    """The content of a page: its header, and those of the sections (id, title, content) that have a content."""
    shown = [section for section in sections if section[2]]
    links = [element("li", element("a", title, href=f"#{name}")) for name, title, _ in shown]
    observed = f". Observed at {observed_at}" if observed_at else ""
    return joined(
        header,
        element("nav", element("ul", *links), id="contents", aria_label="On this page"),
        *(element("section", element("h2", title), body, id=name) for name, title, body in shown),
        element("footer", element("p", "Written by tfdeploy", observed, "."), id="end"),
    )


def _header(content: Content) -> Html:
    report = content.report
    reason = report.reason if report.reason.endswith((".", "!", "?", "…")) else f"{report.reason}."
    facts = {
        "took": report.took,
        "cost": str(report.cost.get("summary") or ""),
        "run": report.run,
        "backend": content.backend,
        "project": content.project,
        "stack": content.stack,
        "observed": report.observed_at,
    }
    items = [
        element("div", element("dt", name), element("dd", value, class_=f"f-{name}"))
        for name, value in facts.items()
        if value
    ]
    state = element("span", report.state, class_=f"state {_class(report.state)}")
    return element(
        "header",
        element("h1", content.name, " ", state),
        element("p", reason, class_="reason") if report.reason else "",
        *(_failure(failed) for failed in report.failures[:_MOST_FAILURES]),
        element("dl", *items, class_="facts"),
        id="head",
    )


def _failure(failed: Finding) -> Html:
    """What a task that failed printed last, and what to do."""
    text = "\n".join(failed.lines)
    return element(
        "div",
        element("p", element("b", failed.about), ": ", failed.remedy),
        element("pre", text) if text else "",
        class_="failure",
    )


def _tasks(content: Content) -> Html:
    rows = content.report.tasks
    elsewhere = ["command"] if "command" in {*content.options, *content.run} else []
    elsewhere += ["machine"] if content.report.machines else []
    return table(without_empty_columns(task_columns(task_table(rows), elsewhere))) if rows else Html("")


def _machines(report: Report) -> Html:
    """The machines, what they cost, and the addresses of the tasks on them."""
    cost = cost_sentences(report.cost)
    parts = [table(without_empty_columns(machine_table(report.machines)))] if report.machines else []
    parts += [element("p", " ".join(cost), class_="cost")] if cost else []
    if report.endpoints:
        parts += [element("h3", "Endpoints"), pairs("Endpoints", report.endpoints, "task", "address")]
    return joined(*parts)


def _results(content: Content, quantities: Mapping[str, Curve]) -> Html:
    """Metrics, and the last values of the other quantities: of the leading task, or of each task if there is no curve."""
    report = content.report
    tiles = [_metric(name, value) for name, value in report.metrics.items()]
    for quantity, curve in quantities.items():
        if quantity not in report.metrics:
            tiles += _last_values(quantity, curve)
    return element("div", *tiles, class_="tiles") if tiles else Html("")


def _last_values(quantity: str, curve: Curve) -> Iterator[Html]:
    for hostname in [leader(curve)] if drawable(curve) else curve.series:
        x, y = curve.series[hostname][-1]
        yield _tile(quantity, number(y), f"{hostname}, {place_text(curve.by, x)}")


def _metric(name: str, value: object) -> Html:
    return _tile(name, metric_text(value, "\u2013"), "metric, no value yet" if value is None else "metric")


def _tile(name: str, value: str, source: str) -> Html:
    return element(
        "div", element("span", name, class_="name"), element("b", value), element("small", source), class_="tile"
    )


def _timeline(content: Content) -> Html:
    hostnames = [row["hostname"] for row in content.report.tasks]
    drawn = timeline(hostnames, content.events, from_moment(content.report.observed_at))
    if drawn is None:
        return Html("")
    events = with_waits(content.events)[-_MOST_EVENTS:]
    heading = element("h3", "Events", element("small", f" {len(events)}, times in UTC"))
    return joined(picture(drawn), heading, _events(events, drawn.begin))


def _events(events: Sequence[Event], begin: float) -> Html:
    rows = [
        element(
            "tr",
            element("td", clock(event.at), title=moment(event.at) if clock(event.at) else None, class_="clock"),
            element("td", f"+{duration(max(0.0, round(event.at - begin, 1)))}", class_="since"),
            element("td", sentence(event), class_="text"),
        )
        for event in events
    ]
    columns = ("time", "since start", "event")
    return box("Events, oldest first", columns, rows, class_="box events", id="events")


def _logs(content: Content) -> Html:
    """The last lines of each task; unfolded if the task failed, or if it is the only one."""
    rows = [row for row in content.report.tasks if content.lines.get(row["hostname"])]
    return joined(*(_log(content, row["hostname"], row["status"], len(rows) == 1) for row in rows))


def _log(content: Content, hostname: str, status: str, alone: bool) -> Html:
    printed = content.lines[hostname]
    last = printed[-LAST_LINES:]
    lines = [
        element(
            "span", element("span", clock(at), class_="clock"), element("span", text, class_="text"), class_="entry"
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
        element("span", status, class_=f"word {_class(status)}"),
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
        parts += [element("h3", "Options"), pairs("Options", content.options, "name", "value")]
    if content.versions:
        parts += [element("h3", "Versions"), pairs("Versions", content.versions, "package", "version")]
    return joined(*parts)
