"""Escape sequences and control characters in what programs print: removed before a terminal or a page shows it. Pure."""

import re

RESET = "\x1b[0m"

_COLOUR = r"\x1b\[[0-9;:]*m"
_UNSAFE = re.compile(
    rf"(?P<colour>{_COLOUR})"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # movements, modes
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links, strings
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0a-\x1f\x7f-\x9f]"
    r"|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]"  # change the order of the text around them
)
_SURROGATES = re.compile("[\ud800-\udfff]")


def safe(text: str, colours: bool = True) -> str:
    """One line for a terminal: without escape sequences except colours, which end with the line."""
    shown = _UNSAFE.sub(lambda match: (match["colour"] or "") if colours else "", text)
    return shown + RESET if "\x1b[" in shown else shown


def plain(text: str) -> str:
    """One line as a terminal would show it, without colours. A line that was overwritten with `\\r` has its last content."""
    if text.isprintable():
        return text
    return _SURROGATES.sub("\ufffd", safe(text.rstrip("\r\n").rpartition("\r")[2], colours=False))


def shown_text(text: str) -> str:
    """What a task has printed, for messages and outputs: Pulumi ends with a panic at what looks like its own markup of colours."""
    return plain(text).replace("<{%", "<{ %")
