"""The content of a page. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...agent.events import Event
from ..report import Report


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
    receipt: Mapping[str, str] = field(default_factory=dict)
    """What was submitted, and what it cost, by name; empty where no receipt of the run is stored."""
