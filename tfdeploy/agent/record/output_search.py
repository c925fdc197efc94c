"""The one search in the output of a run: the last match of each of the user's patterns, and how far and how fast the training is.

Each line is searched once, whoever restarts. What was found, and how far the output of each task was searched, is one file of the run.
Each copy of the record has this file: a reader of the copy continues there where no controller is left.
"""

import json
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Protocol, Sequence, Set, Tuple

from ..model.deciding_tasks import deciding_tasks
from ..model.events import PATTERN_DISABLED, PATTERN_SLOW, Event
from ..model.run_state import FINAL, TASKS_SUCCEEDED, WORKERS, RunState
from ..system.files import write_whole
from .metric_values import LoggedValue
from .output import Log, Reader
from .output_lines import Line
from .progress import Progress, Training
from .reading import NOTHING, Reading, reading
from .record_files import SEARCH_FILE
from .terminal_text import plain

LINE_CHARACTERS = 4096
"""Of a longer line, a pattern sees the beginning of what a terminal would show."""

_TRIES = 3
"""Lines that end the matcher's process so often are left out."""

STEP_LINES = 100
"""A line without a step has that of one of so many lines before it."""

PROGRESS_LINES = 1000
"""So many last lines of those that are searched at once are read for the progress: some programs print thousands a second."""

MAX_SLOW = 3
"""A pattern that takes too long for so many parts of a run's output is no longer searched for: a thousand tasks may print the same."""


class _SlowPart(NamedTuple):
    """A part of a task's output that was not searched for a pattern, because that takes too long."""

    hostname: str
    at: float
    """When, in seconds since 1970."""


class _Patterns:
    """The patterns of a run by name, and what was not searched for them."""

    def __init__(self, texts: Dict[str, str], slow: Dict[str, List[Tuple[str, float]]]) -> None:
        self.texts = texts
        self.slow = {name: [_SlowPart(*part) for part in parts] for name, parts in slow.items()}

    @property
    def disabled(self) -> Set[str]:
        """Those that are no longer searched for."""
        return {name for name, parts in self.slow.items() if len(parts) >= MAX_SLOW}

    def warnings(self) -> List[Event]:
        """An event for each part, and one for each pattern that is no longer searched for."""
        events = []
        for name, parts in self.slow.items():
            from .pattern_process import PATTERN_SECONDS  # it starts processes, which few readers do

            reason = f"its pattern takes more than {PATTERN_SECONDS:g} s: {self.texts[name]}"
            events += [Event(PATTERN_SLOW, part.at, part.hostname, state=name, reason=reason) for part in parts]
            if name in self.disabled:
                events.append(Event(PATTERN_DISABLED, parts[-1].at, state=name, reason=reason))
        return events


@dataclass(frozen=True)
class Found:
    """What was found in the output of a run."""

    values: Dict[str, LoggedValue] = field(default_factory=dict)
    """The last match of each pattern in a line that has ended: a number at the end of another line may lack digits. A match is missing
    while lines of its task, or of a task before it, were not searched for its pattern: the match could be an old one."""
    metrics: Dict[str, str] = field(default_factory=dict)
    """The last match of each pattern, also in lines that have not ended: in the output of the deciding tasks, in order, else of the
    other tasks."""
    progress: Dict[str, Progress] = field(default_factory=dict)
    """Hostname to the progress of the training."""
    unprinted: List[str] = field(default_factory=list)
    """After the success of the run: the patterns that match no line of its output, where all of it was searched."""
    warnings: List[Event] = field(default_factory=list)
    """Which patterns take too long, and in the output of which tasks, and which are switched off."""
    is_at_end: bool = False
    """Whether all that was printed was searched."""

    @property
    def disabled(self) -> List[Event]:
        """Which patterns are switched off: one event for each, with the name as `state`."""
        return [event for event in self.warnings if event.kind == PATTERN_DISABLED]


class Source(Protocol):
    """A record, whose output is searched."""

    def log(self, run_id: str, hostname: str) -> Log:
        """A task's output in a run."""

    def run_folder(self, run_id: str) -> Path:
        """The folder of one run."""


class Search:
    """The search in the output of one run of a record."""

    def __init__(self, record: Source, run_id: str, patterns: Dict[str, str], is_copy: bool = False) -> None:
        """Continue where the file of the run ends; with other patterns, or where it is damaged, begin at the first line.

        A copy may lack output that was searched. Elsewhere such output was lost, and other lines may come in its place.
        """
        self.patterns = _Patterns(dict(patterns), {})
        self._record, self._run_id = record, run_id
        self._path = record.run_folder(run_id) / SEARCH_FILE
        self._tasks: Dict[str, _TaskSearch] = {}
        self._next = ""
        """The first task that the last call had no time for."""
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            data = json.loads(self._path.read_bytes())
            if data["patterns"] == patterns:
                stored = data["tasks"].items()
                tasks = {name: _TaskSearch(name, record.log(run_id, name), state) for name, state in stored}
                self.patterns = _Patterns(dict(patterns), data["slow"])
                self._tasks = {name: task for name, task in tasks.items() if not task.is_ahead() or is_copy}

    def advance(self, run: RunState, seconds: float = float("inf")) -> Found:
        """Search new lines; what was found until now. Where `seconds` are not enough, the next call continues."""
        deadline = time.monotonic() + seconds
        order, has_changed = _search_order(run), False
        begin = order.index(self._next) if self._next in order else 0
        self._next = ""
        for hostname in order[begin:] + order[:begin]:
            if not self._next and time.monotonic() > deadline:
                self._next = hostname
            if hostname not in self._tasks:
                self._tasks[hostname] = _TaskSearch(hostname, self._record.log(self._run_id, hostname), {})
            has_changed |= self._tasks[hostname].advance(self.patterns, deadline)
        if has_changed:
            self._store()
        tasks = [self._tasks[hostname] for hostname in order]
        metrics = {name: text for task in reversed(tasks) for name, text in task.metrics.items()}
        return Found(
            values=_values(tasks),
            metrics=metrics,
            progress={task.hostname: task.progress for task in tasks},
            unprinted=self._unprinted(run, metrics),
            warnings=self.patterns.warnings(),
            is_at_end=all(task.is_at_end for task in tasks),
        )

    def _store(self) -> None:
        tasks = {name: task.to_dict() for name, task in self._tasks.items()}
        data = {"patterns": self.patterns.texts, "slow": self.patterns.slow, "tasks": tasks}
        with suppress(OSError):
            if self._path.parent.exists():
                write_whole(self._path, json.dumps(data))

    def _unprinted(self, run: RunState, metrics: Dict[str, str]) -> List[str]:
        ended = [task.hostname for task in run.training_tasks if task.state in FINAL]
        searched = [self._tasks[name] for name in ended if self._tasks[name].is_at_end]
        if not run.result or run.result.cause != TASKS_SUCCEEDED or len(searched) < len(run.training_tasks):
            return []
        unsearched = {name for task in searched for name in task.unsearched}
        return [name for name in self.patterns.texts if name not in metrics and name not in unsearched]


def _search_order(run: RunState) -> List[str]:
    """The hostnames of the training tasks: those that decide the result, then workers, then the others. The first that has logged a
    metric has its value."""
    deciding = [task.hostname for task in deciding_tasks(run)]
    tasks = sorted(run.training_tasks, key=lambda task: (task.hostname not in deciding, task.job not in WORKERS))
    return [task.hostname for task in tasks]


def _values(tasks: Sequence["_TaskSearch"]) -> Dict[str, LoggedValue]:
    values: Dict[str, LoggedValue] = {}
    unknown: Set[str] = set()
    for task in tasks:
        if not task.is_at_end:
            break
        unknown |= task.unsearched
        for name, value in task.values.items():
            if name not in unknown:
                values.setdefault(name, value)
    return values


class _LoggedStep(NamedTuple):
    attempt: int
    step: int
    lines_since: int


class _Lines:
    """Lines that are searched at once, with their offsets."""

    def __init__(self, lines: Sequence[Tuple[int, Line]]) -> None:
        self.offsets = [offset for offset, _ in lines]
        self.lines = [line for _, line in lines]
        self.texts = [plain(line.content.decode("utf-8", "replace"))[:LINE_CHARACTERS] for line in self.lines]
        """What patterns see of each: what it shows, without escape sequences."""
        self._readings: Dict[int, Reading] = {}

    def reading(self, number: int) -> Reading:
        """What a line reports of the training."""
        if number not in self._readings:
            self._readings[number] = reading(self.texts[number])
        return self._readings[number]


class _TaskSearch:
    """What was found in one task's output, and how far that was searched."""

    def __init__(self, hostname: str, log: Log, state: Dict[str, Any]) -> None:
        """`state` is what `to_dict` of an earlier one has returned."""
        self.hostname, self._log = hostname, log
        self._reader: Optional[Dict[str, Any]] = state.get("reader")
        self.values = {name: LoggedValue(*value) for name, value in state.get("values", {}).items()}
        """The last match of each pattern in a line that has ended."""
        self.unsearched: Set[str] = set(state.get("unsearched", ()))
        """Names of patterns that did not see some lines after their last match: it may be an old one."""
        self.is_at_end = False
        """Whether the last search has reached the end of the output."""
        self._training = Training.from_dict(state.get("training", {}))
        self._step = _LoggedStep(*state["step"]) if state.get("step") else None
        self._tries = 0
        self._unfinished: List[Line] = []
        self._in_unfinished: Dict[str, LoggedValue] = {}
        self.progress = self._training.progress

    def to_dict(self) -> Dict[str, Any]:
        """As JSON."""
        return {
            "reader": self._reader,
            "values": self.values,
            "unsearched": sorted(self.unsearched),
            "training": self._training.to_dict(),
            "step": self._step,
        }

    def is_ahead(self) -> bool:
        """Whether more was searched than the record has of the output."""
        return bool(self._reader) and Reader(self._log, state=self._reader).position > self._log.end

    @property
    def metrics(self) -> Dict[str, str]:
        """The last match of each pattern, also in a line that has not ended."""
        latest = dict(self.values)
        for name, value in self._in_unfinished.items():
            latest[name] = max(value, latest.get(name, value), key=lambda each: each.at)
        return {name: value.text for name, value in latest.items()}

    def advance(self, patterns: _Patterns, deadline: float) -> bool:
        """Search what was printed since the last call, until `deadline`, by the monotonic clock; whether that was anything."""
        has_changed, self.is_at_end = False, False
        while time.monotonic() <= deadline:
            reader = Reader(self._log, state=self._reader)
            block = reader.block()
            self.is_at_end = block is None
            if block is None or not self._add(_Lines(block), patterns):
                break
            self._reader, has_changed = reader.state(shown_only=True), True
        if time.monotonic() <= deadline:
            self._add_unfinished(patterns)
        return has_changed

    def _add(self, lines: _Lines, patterns: _Patterns) -> bool:
        """Search lines that have ended; false where the search is to be repeated."""
        found = self._search(lines, patterns)
        if found is None:
            return False
        self.values.update(found)
        self.unsearched.difference_update(found)
        self._step = self._step_at(lines, len(lines.lines) - 1)
        _read(self._training, lines)
        self.progress = self._training.progress
        self._unfinished, self._in_unfinished = [], {}
        return True

    def _add_unfinished(self, patterns: _Patterns) -> None:
        unfinished = Reader(self._log, state=self._reader).unfinished() if self.is_at_end else []
        if unfinished == self._unfinished:
            return
        lines = _Lines([(0, line) for line in unfinished])
        found = self._search(lines, patterns)
        self.is_at_end = found is not None
        if found is not None:
            self._unfinished, self._in_unfinished = unfinished, found
            training = Training.from_dict(self._training.to_dict())
            _read(training, lines)
            self.progress = training.progress

    def _search(self, lines: _Lines, patterns: _Patterns) -> Optional[Dict[str, LoggedValue]]:
        """The last match of each pattern in these lines; None where the search is to be repeated."""
        disabled = patterns.disabled
        wanted = {name: text for name, text in patterns.texts.items() if name not in disabled}
        if lines.lines:
            self.unsearched |= disabled
        if not lines.lines or not wanted:
            return {}
        from . import pattern_process  # it starts processes, which few readers do

        result = pattern_process.SHARED.search(wanted, lines.texts)
        self._tries = self._tries + 1 if result is None else 0
        if result is None and self._tries < _TRIES:
            return None
        if result is None:
            self.unsearched.update(wanted)
            return {}
        self.unsearched.update(result.slow)
        for name in result.slow:
            patterns.slow.setdefault(name, []).append(_SlowPart(self.hostname, time.time()))
        return {name: self._value(lines, number, text) for name, (number, text) in result.last.items()}

    def _value(self, lines: _Lines, number: int, text: str) -> LoggedValue:
        line, logged = lines.lines[number], self._step_at(lines, number)
        step = logged.step if logged and logged.attempt == line.attempt else None
        return LoggedValue(self.hostname, line.attempt, text, step, lines.offsets[number], line.at)

    def _step_at(self, lines: _Lines, number: int) -> Optional[_LoggedStep]:
        """The last step that was logged until this line, itself included; None where that was long before it."""
        for distance in range(min(number, STEP_LINES) + 1):
            step = lines.reading(number - distance).step
            if step is not None:
                return _LoggedStep(lines.lines[number - distance].attempt, int(step), distance)
        distance = (self._step.lines_since if self._step else 0) + number + 1
        return self._step._replace(lines_since=distance) if self._step and distance <= STEP_LINES else None


def _read(training: Training, lines: _Lines) -> None:
    """Read the last ones of these lines for the progress."""
    for number in range(max(0, len(lines.lines) - PROGRESS_LINES), len(lines.lines)):
        line, read = lines.lines[number], lines.reading(number)
        if read is not NOTHING or line.attempt != training.attempt:
            training.add(line.attempt, line.at, read)
