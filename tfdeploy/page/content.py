"""What a page shows. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..report import Report

Event = Mapping[str, Any]
"""Something that happened in a run, as the record keeps it: `at` in seconds since 1970, and `text`."""


@dataclass(frozen=True)
class Content:
    """One cluster, as one look saw it, with what it was asked to be."""

    name: str
    backend: str
    project: str
    stack: str
    report: Report
    events: Sequence[Event] = ()
    """Oldest first."""
    lines: Mapping[str, Sequence[tuple[float, str]]] = field(default_factory=dict)
    """Hostname to what the task printed and when, oldest first: all of it, or as much as the curves shall show."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What was asked for, by name; never a secret."""
    versions: Mapping[str, str] = field(default_factory=dict)
