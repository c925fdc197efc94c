"""The metrics of a record's runs: the last match of each of a user's patterns in the output of their tasks.

What was searched is stored in a copy of a record, so that another process continues there.
"""

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, List, Protocol, Set

from ..control.end_policy import deciding_tasks
from ..control.until_metrics import LoggedValue
from ..events import PATTERN_DISABLED, PATTERN_SLOW, Event
from ..files import write_whole
from ..run_state import FINAL, TASKS_SUCCEEDED, WORKERS, RunState
from .log_matches import LogMatches
from .output import Log
from .pattern_process import PATTERN_SECONDS

_MATCHES_FILE = "metrics.json"
"""In a copy: how far the metrics were read."""

_MAX_PATTERN_SETS = 4
"""How many sets of patterns are searched in parallel, as for users with different programs."""

_MAX_SLOW_TASKS = 3
"""A pattern that takes too long in the output of so many tasks is not tried for the others: they could be a thousand."""


class Source(Protocol):
    """A record, whose output is searched."""

    def log(self, run_id: str, hostname: str) -> Log:
        """A task's output in a run."""

    def run_folder(self, run_id: str) -> Path:
        """The folder of one run."""

    def record_id(self) -> str:
        """The identity of the record."""


class RunMetrics:
    """The metrics of the runs of one record, and how far their output was searched."""

    def __init__(self, record: Source, stores_matches: bool) -> None:
        self._record, self._stores_matches = record, stores_matches
        self._matches: Dict[str, Dict[str, LogMatches]] = {}

    def latest(self, run: RunState, patterns: Dict[str, str], seconds: float = float("inf")) -> Dict[str, str]:
        """The last match of each pattern in this run: in the output of the deciding tasks, in order, else of the other tasks.
        A pattern that takes too long in the output of `_MAX_SLOW_TASKS` tasks is searched for in no further task, except the first.

        Where `seconds` are not enough to search all new lines, the next call continues.
        """
        order = _search_order(run)
        values: Dict[str, str] = {}
        deadline = time.monotonic() + seconds
        matches = self._matches_of(run.spec.id, patterns)
        before = {name: searched.to_dict() for name, searched in matches.items()} if self._stores_matches else {}
        for hostname in order:
            if hostname not in matches:
                matches[hostname] = LogMatches(self._record.log(run.spec.id, hostname), patterns)
            excess = {
                name
                for name, slow in _slow_tasks(matches).items()
                if len(slow) >= _MAX_SLOW_TASKS and hostname not in (order[0], *slow)
            }
            values = {**matches[hostname].latest(deadline, excess), **values}
        if self._stores_matches:
            self._store_matches(run.spec.id, patterns, matches, before)
        return values

    def logged_values(self, run: RunState, patterns: Dict[str, str], seconds: float) -> Dict[str, LoggedValue]:
        """The same in lines that have ended, with the task, its attempt and the step that belong to each value. A value is missing
        while lines of its task, or of a task before it, were not searched for its pattern: it could be an old one."""
        self.latest(run, patterns, seconds)
        matches = self._matches_of(run.spec.id, patterns)
        values: Dict[str, LoggedValue] = {}
        unknown: Set[str] = set()
        for hostname in _search_order(run):
            searched = matches.get(hostname)
            if searched is None or not searched.is_at_end:
                break
            unknown |= searched.unsearched
            for name, match in searched.in_whole_lines.items():
                if name not in unknown:
                    values.setdefault(name, LoggedValue(hostname, match.attempt, match.text, match.step))
        return values

    def unprinted(self, run: RunState, patterns: Dict[str, str], values: Dict[str, str]) -> List[str]:
        """After the success of the run: the patterns that match no line of its output, where `latest`, which has found `values`, has
        searched all of it."""
        ended = [task.hostname for task in run.training_tasks if task.state in FINAL]
        matches = self._matches_of(run.spec.id, patterns)
        searched = [matches[name] for name in ended if name in matches and matches[name].is_at_end]
        if not run.result or run.result.cause != TASKS_SUCCEEDED or len(searched) < len(run.training_tasks):
            return []
        unsearched = {name for it in searched for name in it.unsearched}
        return [name for name in patterns if name not in values and name not in unsearched]

    def disabled_patterns(self, run: RunState, patterns: Dict[str, str]) -> List[Event]:
        """Which of these patterns are switched off: one event for each, with the name as `state`."""
        matches = self._matches_of(run.spec.id, patterns)
        warnings = [event for event in _pattern_warnings(matches, patterns) if event.kind == PATTERN_DISABLED]
        return list({event.state: event for event in warnings}.values())

    def _matches_of(self, run_id: str, patterns: Dict[str, str]) -> Dict[str, LogMatches]:
        """What was searched so far, by hostname."""
        key = json.dumps([run_id, patterns], sort_keys=True)
        if key not in self._matches:
            while len(self._matches) >= _MAX_PATTERN_SETS:
                del self._matches[next(iter(self._matches))]
            self._matches[key] = self._stored_matches(run_id, patterns) if self._stores_matches else {}
        return self._matches[key]

    def _stored_matches(self, run_id: str, patterns: Dict[str, str]) -> Dict[str, LogMatches]:
        """Those of an earlier process; empty where it had other patterns or another record, or where they are damaged."""
        try:
            data = json.loads((self._record.run_folder(run_id) / _MATCHES_FILE).read_bytes())
            if (data["record_id"], data["patterns"]) == (self._record.record_id(), patterns):
                return {
                    hostname: LogMatches(self._record.log(run_id, hostname), patterns, state)
                    for hostname, state in data["tasks"].items()
                }
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass
        return {}

    def _store_matches(
        self, run_id: str, patterns: Dict[str, str], matches: Dict[str, LogMatches], before: Dict[str, Any]
    ) -> None:
        states = {name: searched.to_dict() for name, searched in matches.items() if searched.is_complete}
        if states == before or not self._record.run_folder(run_id).exists():
            return
        data = {"record_id": self._record.record_id(), "patterns": patterns, "tasks": states}
        with suppress(OSError):
            write_whole(self._record.run_folder(run_id) / _MATCHES_FILE, json.dumps(data))

    def warnings(self, run_id: str, patterns: Dict[str, str]) -> List[Event]:
        """Which patterns take too long, and in the output of which tasks."""
        return _pattern_warnings(self._matches_of(run_id, patterns), patterns)


def _search_order(run: RunState) -> List[str]:
    """The hostnames of the training tasks: those that decide the result, then workers, then the others. The first that has logged a
    metric has its value."""
    deciding = [task.hostname for task in deciding_tasks(run)]
    tasks = sorted(run.training_tasks, key=lambda task: (task.hostname not in deciding, task.job not in WORKERS))
    return [task.hostname for task in tasks]


def _slow_tasks(matches: Dict[str, LogMatches]) -> Dict[str, List[str]]:
    """Name of a pattern that takes too long to the tasks with such output."""
    slow: Dict[str, List[str]] = {}
    for hostname, searched in matches.items():
        for name in searched.slow:
            slow.setdefault(name, []).append(hostname)
    return slow


def _pattern_warnings(matches: Dict[str, LogMatches], patterns: Dict[str, str]) -> List[Event]:
    """Which patterns take too long, and in the output of which tasks."""
    warnings = []
    for name, hostnames in _slow_tasks(matches).items():
        reason = f"its pattern takes more than {PATTERN_SECONDS:g} s: {patterns[name]}"
        slow = {hostname: matches[hostname].slow[name] for hostname in hostnames}
        for hostname, pattern in slow.items():
            kind = PATTERN_DISABLED if pattern.is_disabled else PATTERN_SLOW
            warnings.append(Event(kind, pattern.at, hostname, state=name, reason=reason))
        if len(hostnames) >= _MAX_SLOW_TASKS:
            at = max(pattern.at for pattern in slow.values())
            warnings.append(Event(PATTERN_DISABLED, at, tasks=hostnames, state=name, reason=reason))
    return warnings
