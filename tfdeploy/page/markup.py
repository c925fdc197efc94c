"""Text becomes markup, and cannot become more than text. Pure."""

import html
import re

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and movements
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links
    r"|\x1b[ -/]*[0-~]"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
"""Controls, and what would show the text around it in another order than it has."""

_SURROGATES = re.compile("[\ud800-\udfff]")

_EMPTY_ELEMENTS = ("link", "meta")


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def plain(text: str) -> str:
    """Text as a terminal would show it, without colours and without what cannot be seen."""
    if text.isprintable():
        return text
    shown = text.rstrip("\r\n").rpartition("\r")[2]
    return _SURROGATES.sub("\ufffd", _UNSEEN.sub("", _ESCAPES.sub("", shown)))


def element(name: str, /, *children: str, **attributes: object) -> Html:
    """An element. Children that are not `Html` are escaped; an attribute that is None is left out, one that is True has no value.

    `class_` is the attribute `class`, `aria_label` is `aria-label`.
    """
    given = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None and value is not False
    )
    if name in _EMPTY_ELEMENTS:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{joined(*children)}</{name}>")


def joined(*children: str) -> Html:
    """Children one after another, escaped where they are not `Html`."""
    return Html("".join(child if isinstance(child, Html) else _escaped(child) for child in children))


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{_escaped(str(value))}"'


def _escaped(text: str) -> str:
    return html.escape("\n".join(plain(line) for line in text.split("\n")))
