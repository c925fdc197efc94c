"""What a terminal shows of what programs print: the last state of a line that was overwritten, without escape sequences. Pure.

`logs` prints this text, and all patterns are searched in it. The time for a line grows with its length.
"""

import re
from typing import List

RESET = "\x1b[0m"

_COLOUR = r"\x1b\[[0-9;:]*m"
_UNSAFE = re.compile(
    rf"(?P<colour>{_COLOUR})"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # movements, modes
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # titles, links, strings
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0a-\x1f\x7f-\x9f]"
    r"|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]"  # change the order of the text around them
)
_SURROGATES = re.compile("[\ud800-\udfff]")

_ERASED_LINE, _FIRST_COLUMN = re.compile(r"(?:\x1b\[|\x9b)2K"), re.compile(r"(?:\x1b\[|\x9b)[01]?[G`]")
_ERASED_REST = re.compile(r"(?:\x1b\[|\x9b)[02]?[JK]")


def last_state(text: str) -> str:
    """What a line shows in the end, with its escape sequences: what follows the last return to its beginning. A return that neither
    text nor an erasure follows changes nothing."""
    if "\x1b" in text or "\x9b" in text:
        text = _FIRST_COLUMN.sub("\r", _ERASED_LINE.sub("\r\x1b[K", text))
    first, *states = text.rstrip("\r\n").split("\r")
    for state in reversed(states):
        if _UNSAFE.sub("", state) or _ERASED_REST.search(state):
            return _without_backspaces(state)
    return _without_backspaces(first)


def _without_backspaces(text: str) -> str:
    """Each backspace takes the character before it, as what is printed next replaces that."""
    shown: List[str] = []
    for part in text.rstrip("\b").split("\b") if "\b" in text else ():
        del shown[-1:]
        shown += part
    return "".join(shown) if "\b" in text else text


def safe(text: str, colours: bool = True) -> str:
    """One line for a terminal: without escape sequences except colours, which end with the line."""
    shown = _UNSAFE.sub(lambda match: (match["colour"] or "") if colours else "", text)
    return shown + RESET if "\x1b[" in shown else shown


def plain(text: str) -> str:
    """One line as a terminal would show it, without colours."""
    if text.isprintable():
        return text
    return _SURROGATES.sub("\ufffd", safe(last_state(text), colours=False))


def shown_text(text: str) -> str:
    """The same for messages and outputs of Pulumi, which ends with a panic at what looks like its own markup of colours."""
    return plain(text).replace("<{%", "<{ %")
