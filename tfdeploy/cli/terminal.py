"""What a task prints becomes what may be shown: colours pass, all else that would move or set a terminal does not. Pure."""

import re

_COLOUR = r"\x1b\[[0-9;:]*m"
_ESCAPES = re.compile(
    rf"(?P<colour>{_COLOUR})"
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # movements, modes
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links, strings
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0a-\x1f\x7f-\x9f]"
    r"|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"  # what shows the text around it in another order
)
_RESET = "\x1b[0m"
_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)


def safe(text: str, colours: bool = True) -> str:
    """The text of one line, with colours at most; a colour that it begins ends with it."""
    shown = _ESCAPES.sub(lambda found: (found["colour"] or "") if colours else "", text)
    return shown + _RESET if "\x1b[" in shown else shown


def prefix(hostname: str) -> str:
    """A task as the beginning of its lines: `[worker:0] `."""
    job, _, index = hostname.rpartition("-")
    return f"[{job}:{index}] "


def coloured(text: str, place: int) -> str:
    """The text in the colour of this place among others."""
    return f"\x1b[{_COLOURS[place % len(_COLOURS)]}m{text}{_RESET}"
