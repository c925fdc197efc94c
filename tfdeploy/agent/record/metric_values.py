"""The numbers that metrics are: one form for outputs and conditions, whatever Python's own conversion takes. Pure."""

import math
import re
from typing import NamedTuple, Optional

_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")

_RUN = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9.]+)*")
"""What one number looks like, or several that two writers have printed into each other."""


class LoggedValue(NamedTuple):
    """The last value of a metric that a task has logged. Task, attempt and offset say which one it is, whoever reads it."""

    task: str
    attempt: int
    text: str
    step: Optional[int] = None
    """The step that the line reports, or else a line before it in the same attempt; None if none of them does."""
    offset: int = 0
    """Of its line in the task's output."""
    at: float = 0.0


def number_in(text: str) -> Optional[float]:
    """The value of `0.97` or `-1e-3`; None for what is not a finite decimal number."""
    stripped = text.strip(" \t")
    value = float(stripped) if _NUMBER.fullmatch(stripped) else math.nan
    return value if math.isfinite(value) else None


def is_torn(line: str, begin: int, end: int) -> bool:
    """Whether this part of a line begins or ends in what is not one number, as in `2.84644152.5334997`: two programs, or two threads,
    have printed at once."""
    for run in _RUN.finditer(line):
        if run.start() >= end:
            break
        if run.start() <= begin < run.end() or run.start() < end <= run.end():
            number = run[0].rstrip(".")
            if any(digit in number for digit in "0123456789") and not _NUMBER.fullmatch(number):
                return True
    return False
