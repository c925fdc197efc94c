"""One look at a cluster that was found: at itself while it stands, at its record when it was destroyed."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import registry
from .. import report as reports
from ..agent.record import Record
from ..backends.base import GONE, Sight, load
from ..errors import NotFound
from ..outline import outline_of
from ..registry import Entry
from ..report import Report, moment, report

ALL_EVENTS = 100_000


@dataclass(frozen=True)
class Seen:
    """What one look has seen."""

    entry: Entry
    report: Report
    sight: Sight

    @property
    def events(self) -> Sequence[Mapping[str, Any]]:
        """What happened in this run, oldest first: `at` and `text`."""
        events: Sequence[Mapping[str, Any]] = self.sight.view["events"]
        return events


def look(entry: Entry, log_lines: int = 0, events: int = ALL_EVENTS) -> Seen:
    """One look; it never fails because something is gone.

    Raises:
        NotFound: the cluster was destroyed and has left no record.
    """
    ask = {"log_lines": log_lines, "metrics": dict(entry.outline.metrics), "events": events}
    sight = _remembered(entry, ask) if entry.ended else load(entry.cluster["backend"]).look(entry.cluster, "", ask)
    outline = entry.outline if entry.outline.tasks else outline_of(sight.view["job"])
    return Seen(entry, report(outline, sight), sight)


def over(seen: Seen) -> bool:
    """Whether there is nothing more to wait for: the job is over and its tasks have ended, or the cluster was destroyed."""
    return bool(seen.entry.ended) or reports.over(seen.report)


def _remembered(entry: Entry, ask: dict[str, Any]) -> Sight:
    folder = registry.kept(entry.cluster)
    if folder is None:
        raise NotFound(f"{entry.title} was destroyed at {moment(entry.ended)} and has left no record.")
    record = Record(folder)
    ended = f"the cluster was destroyed at {moment(entry.ended)}"
    return Sight(
        time.time(), record.view(ask, record.current()), record.last_alive(), {}, str(folder), {}, [ended], {}, GONE
    )
