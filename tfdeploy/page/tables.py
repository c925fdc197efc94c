"""Rows become tables of the page, in their own boxes. Pure."""

import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..quantities import dollars, text_of_seconds
from .lanes import KINDS
from .markup import Html, element

MACHINES = ("machine", "role", "provider", "region", "size", "public_ip", "status")
TASKS = ("container", "machine", "command", "hostname", "status", "created", "public_ip")
"""Kelda's columns."""

_OTHER_KINDS = {"connected": "good", "unreachable": "bad", "unknown": "wait", "pulling": "start", "rejected": "bad"}


def kind(status: str) -> str:
    """The class that colours a state: `waiting for ps-0` is coloured as `waiting`."""
    known = {**KINDS, **_OTHER_KINDS}
    return next((known[word] for word in known if re.match(rf"{word}\b", status)), "over")


def machines(rows: Sequence[Mapping[str, Any]]) -> Html:
    """The machines, with what each has cost where that is known."""
    spent = any("spent" in row for row in rows)
    shown = [{**row, "spent": _money(row.get("spent", 0.0))} for row in rows] if spent else rows
    return table("Machines", shown, (*MACHINES, "spent") if spent else MACHINES)


def tasks(rows: Sequence[Mapping[str, Any]]) -> Html:
    """The tasks."""
    return table("Tasks", rows, TASKS)


def table(caption: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Html:
    """Rows under the columns' names, in a box that scrolls by itself."""
    head = element("tr", *(element("th", column.replace("_", " "), scope="col") for column in columns))
    body = [element("tr", *(_cell(column, row.get(column)) for column in columns)) for row in rows]
    made = element(
        "table", element("caption", caption, class_="unseen"), element("thead", head), element("tbody", *body)
    )
    return element("div", made, class_="box", tabindex="0", role="region", aria_label=caption)


def _cell(column: str, value: object) -> Html:
    text = "" if value is None else str(value)
    if column == "status" and text:
        return element("td", element("span", text, class_=f"word {kind(text)}"))
    if column in ("command", "container") and text:
        return element("td", element("code", text, class_="long", title=text), class_=f"c-{column}")
    return element("td", text, class_=f"c-{column}")


def _money(usd: float | None) -> str:
    return "unknown" if usd is None else dollars(usd)


def pairs(caption: str, items: Mapping[str, str], first: str, second: str) -> Html:
    """Names and values."""
    head = element("tr", element("th", first, scope="col"), element("th", second, scope="col"))
    rows = [
        element("tr", element("th", element("code", name), scope="row"), element("td", element("code", value)))
        for name, value in items.items()
    ]
    made = element(
        "table", element("caption", caption, class_="unseen"), element("thead", head), element("tbody", *rows)
    )
    return element("div", made, class_="box pairs", tabindex="0", role="region", aria_label=caption)


def cost(told: Mapping[str, Any]) -> list[str]:
    """What the machines cost and what ends them, in sentences."""
    sentences = [f"{told['told']}." if told.get("told") else ""]
    if told.get("maximum") is not None:
        sentences.append(f"At most {dollars(told['maximum'])} in all.")
    if told.get("idle"):
        sentences.append(f"A machine ends itself when no task has run on it for {text_of_seconds(told['idle'])}.")
    if told.get("lifetime"):
        sentences.append(f"It ends in any case {text_of_seconds(told['lifetime'])} after its start.")
    if told.get("after"):
        sentences.append(f"What bills on after the machines: {', '.join(told['after'])}.")
    if told.get("prices_of"):
        sentences.append(f"Prices in US dollars as of {told['prices_of']}.")
    return [sentence for sentence in sentences if sentence]


def clock(at: float) -> str:
    """The time of day, in UTC; empty for what no calendar has."""
    try:
        return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return ""
