"""The last match of each of a user's patterns in what `logs` shows of one task. Each line is searched once, also across processes."""

import time
from dataclasses import dataclass
from itertools import islice
from typing import AbstractSet, Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set

from . import pattern_process
from .output import Log, Reader
from .output_lines import Line
from .steps import step_in
from .terminal_text import plain

LINE_CHARACTERS = 4096
"""Of a longer line, a pattern sees the beginning of what a terminal would show."""

BATCH_LINES, BATCH_BYTES = 4096, 1024 * 1024
"""How many lines are searched at once, and how many bytes."""

_TRIES = 3
"""A batch that ends the matcher's process so often is left out."""

STEP_LINES = 100
"""A line without a step has that of one of so many lines before it."""

MAX_SLOW = 3
"""A pattern that takes too long for so many batches of a task is no longer searched for in its output."""


@dataclass(frozen=True)
class SlowPattern:
    """What a pattern that takes too long has not seen of one task's output."""

    batches: int
    at: float
    """When it took too long last, in seconds since 1970."""

    @property
    def is_disabled(self) -> bool:
        """Whether it is no longer searched for."""
        return self.batches >= MAX_SLOW


class Match(NamedTuple):
    """The last match of a pattern in some lines."""

    at: float
    text: str
    attempt: int = 0
    step: Optional[int] = None
    """The step that the line reports, or else a line before it in the same attempt; None if none of them does."""


class LogMatches:
    """What the patterns have matched in one task's output, and how far it was read."""

    def __init__(self, log: Log, patterns: Dict[str, str], state: Optional[Dict[str, Any]] = None) -> None:
        """`state` is what `to_dict` of an earlier one has returned."""
        state = state or {}
        self._reader = Reader(log, state=state.get("reader"))
        self._patterns = patterns
        self._latest = {name: Match(*match) for name, match in state.get("latest", {}).items()}
        self._step: Optional[_LoggedStep] = None
        self.slow = {name: SlowPattern(batches, at) for name, (batches, at) in state.get("slow", {}).items()}
        """Name of a pattern that took too long for a part of the output, and for how much."""
        self.unsearched: Set[str] = set()
        """Names of patterns that did not see some lines after their last match: it may be an old one."""
        self.is_at_end = False
        """Whether the last search has reached the end of the output."""
        self._skipped: AbstractSet[str] = frozenset()
        self._more: Optional[Iterator[Line]] = None
        self._batch: List[Line] = []
        self._tries = 0
        self._unfinished: List[Line] = []
        self._matched: Dict[str, Match] = {}

    @property
    def is_complete(self) -> bool:
        """Whether all that was read was searched too, so that the state can be stored."""
        return self._more is None and not self._batch

    @property
    def in_whole_lines(self) -> Dict[str, Match]:
        """What each pattern matched last in a line that has ended: a number at the end of another line may lack digits."""
        return self._latest

    def to_dict(self) -> Dict[str, Any]:
        """As JSON."""
        slow = {name: [pattern.batches, pattern.at] for name, pattern in self.slow.items()}
        return {"reader": self._reader.state(), "latest": self._latest, "slow": slow}

    def latest(self, deadline: float = float("inf"), skipped: AbstractSet[str] = frozenset()) -> Dict[str, str]:
        """The text that each pattern matched last, as far as it was searched before `deadline`, by the monotonic clock. New output is
        not searched for the patterns `skipped`."""
        self._skipped, self.is_at_end = skipped, False
        while time.monotonic() <= deadline:
            self.is_at_end = not self._next_batch()
            matches = None if self.is_at_end else self._search(self._batch)
            if matches is None:
                break
            self._latest.update(matches)
            self.unsearched.difference_update(matches)
            self._step, self._batch = self._step_at(self._batch, len(self._batch) - 1), []
        latest = dict(self._latest)
        unfinished = self._match_unfinished() if time.monotonic() <= deadline else self._matched
        for name, match in unfinished.items():
            latest[name] = max(match, latest.get(name, match), key=lambda each: each.at)
        return {name: match.text for name, match in latest.items()}

    def _next_batch(self) -> bool:
        """Read the next lines, unless there are some that were not searched; whether there are any."""
        if not self._batch:
            self._more = self._more or self._reader.more()
            size = 0
            for line in islice(self._more, BATCH_LINES):
                self._batch.append(line)
                size += min(len(line.content), LINE_CHARACTERS)
                if size > BATCH_BYTES:
                    break
            if not self._batch:
                self._more = None
        return bool(self._batch)

    def _match_unfinished(self) -> Dict[str, Match]:
        unfinished = self._reader.unfinished() if self.is_complete else []
        if unfinished != self._unfinished:
            matches = self._search(unfinished)
            if matches is not None:
                self._unfinished, self._matched = unfinished, matches
        return self._matched

    def _search(self, lines: List[Line]) -> Optional[Dict[str, Match]]:
        """The last match of each pattern in these lines; None where the search is to be repeated."""
        disabled = {name for name, pattern in self.slow.items() if pattern.is_disabled} | self._skipped
        patterns = {name: text for name, text in self._patterns.items() if name not in disabled}
        if lines:
            self.unsearched |= disabled
        if not lines or not patterns:
            return {}
        result = pattern_process.SHARED.search(patterns, [_searched(line) for line in lines])
        self._tries = self._tries + 1 if result is None else 0
        if result is None:
            self.unsearched.update(patterns)
            return {} if self._tries >= _TRIES else None
        self.unsearched.update(result.slow)
        for name in result.slow:
            batches = self.slow[name].batches if name in self.slow else 0
            self.slow[name] = SlowPattern(batches + 1, time.time())
        return {name: self._match(lines, number, text) for name, (number, text) in result.last.items()}

    def _match(self, lines: List[Line], number: int, text: str) -> Match:
        line, logged = lines[number], self._step_at(lines, number)
        step = logged.step if logged and logged.attempt == line.attempt else None
        return Match(line.at, text, line.attempt, step)

    def _step_at(self, lines: Sequence[Line], number: int) -> "Optional[_LoggedStep]":
        """The last step that was logged until this line, itself included; None where that was long before it."""
        window = lines[max(0, number - STEP_LINES) : number + 1]
        for distance, line in enumerate(reversed(window)):
            step = step_in(_searched(line))
            if step is not None:
                return _LoggedStep(line.attempt, step, distance)
        distance = (self._step.lines_since if self._step else 0) + number + 1
        return self._step._replace(lines_since=distance) if self._step and distance <= STEP_LINES else None


class _LoggedStep(NamedTuple):
    attempt: int
    step: int
    lines_since: int


def _searched(line: Line) -> str:
    """What patterns see of a line: what it shows, without escape sequences."""
    return plain(line.content.decode("utf-8", "replace"))[:LINE_CHARACTERS]
