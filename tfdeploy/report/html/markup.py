"""HTML elements. Text is escaped, so that it cannot become markup. Pure."""

import html
from collections.abc import Iterable, Sequence

from ...agent.record.terminal_text import plain

_EMPTY_ELEMENTS = ("link", "meta")


class Html(str):
    """Markup: not escaped again."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: object) -> Html:
    """An element. Children that are not `Html` are escaped. Attributes that are None are omitted; those that are True have no value.

    `class_` is the attribute `class`, `aria_label` is `aria-label`.
    """
    rendered = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None and value is not False
    )
    if name in _EMPTY_ELEMENTS:
        return Html(f"<{name}{rendered}>")
    return Html(f"<{name}{rendered}>{joined(*children)}</{name}>")


def box(caption: str, columns: Sequence[str], rows: Iterable[Html], label: str = "", **attributes: str) -> Html:
    """A table in a box that scrolls. Its caption is only for screen readers, as is the box's `label`."""
    head = element("tr", *(element("th", column, scope="col") for column in columns))
    table = element(
        "table", element("caption", caption, class_="unseen"), element("thead", head), element("tbody", *rows)
    )
    fixed = {"class_": "box", "tabindex": "0", "role": "region", "aria_label": label or caption}
    return element("div", table, **{**fixed, **attributes})


def named_row(name: str, *cells: str) -> Html:
    """A row of a table, which begins with its name."""
    return element("tr", element("th", name, scope="row"), *(element("td", cell) for cell in cells))


def joined(*children: str) -> Html:
    """Children in a row, escaped unless they are `Html`."""
    return Html("".join(child if isinstance(child, Html) else _escaped(child) for child in children))


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{_escaped(str(value))}"'


def _escaped(text: str) -> str:
    return html.escape("\n".join(plain(line) for line in text.split("\n")))
