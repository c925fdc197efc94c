"""Marathon's placement constraints, `field:OPERATOR[:parameter]`: read, and asked of a machine. Pure."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from .errors import SpecError

_NEVER, _MAYBE, _ALWAYS = "none", "maybe", "always"

OPERATORS: Mapping[str, tuple[str, str]] = {
    "UNIQUE": (_NEVER, ""),
    "CLUSTER": (_MAYBE, "a value"),
    "GROUP_BY": (_MAYBE, "the number of values, 1 or more"),
    "LIKE": (_ALWAYS, "a regular expression"),
    "UNLIKE": (_ALWAYS, "a regular expression"),
    "MAX_PER": (_ALWAYS, "the most tasks on one value, 1 or more"),
    "IS": (_ALWAYS, "a value"),
}
"""Operator to whether it takes a parameter, and which."""

_FORM = 'It takes field:OPERATOR[:parameter], such as "hostname:UNIQUE"'
_LONGEST_NUMBER = 6


class Site(Protocol):
    """What a constraint may ask of a machine."""

    @property
    def name(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class Constraint:
    """One condition on where the tasks of a job stand."""

    field: str
    operator: str
    parameter: str = ""

    def __str__(self) -> str:
        return ":".join([self.field, self.operator, self.parameter][: 3 if self.parameter else 2])

    @property
    def counts(self) -> bool:
        """Whether it depends on where the job's other tasks stand."""
        return self.operator in ("UNIQUE", "GROUP_BY", "MAX_PER") or (self.operator == "CLUSTER" and not self.parameter)

    def value(self, site: Site) -> str | None:
        """What a machine has in the field; None where it has none."""
        if self.field == "hostname":
            return site.name
        if self.field == "address":
            return site.address or None
        return site.labels.get(self.field)

    def admits(self, site: Site) -> bool:
        """Whether a task may stand on a machine, whatever stands there already."""
        value = self.value(site)
        if value is None:
            return self.operator == "UNLIKE"
        if self.operator in ("LIKE", "UNLIKE"):
            return (re.fullmatch(self.parameter, value) is not None) == (self.operator == "LIKE")
        return self.counts or value == self.parameter


def parse(where: str, text: str) -> Constraint:
    """A constraint from its text; only the first two colons part it.

    Raises:
        SpecError: the text is no constraint.
    """
    field, operator, parameter = (*text.split(":", 2), "", "")[:3]
    if not field or not operator:
        raise SpecError(where, f"{text!r} is no constraint", f"{_FORM}.")
    if operator not in OPERATORS:
        raise SpecError(where, f"{text!r} has the operator {operator!r}", f"There are: {', '.join(OPERATORS)}.")
    takes, what = OPERATORS[operator]
    if takes == _ALWAYS and not parameter:
        raise SpecError(where, f"{text!r} lacks a parameter", f"{operator} takes {what}: {field}:{operator}:…")
    if takes == _NEVER and parameter:
        raise SpecError(where, f"{text!r} has a parameter", f"{operator} takes none: {field}:{operator}")
    if parameter:
        _check(where, text, operator, parameter)
    return Constraint("hostname" if field == "@hostname" else field, operator, parameter)


def _check(where: str, text: str, operator: str, parameter: str) -> None:
    """Refuse what is no number, or no regular expression, where one is due."""
    if operator in ("GROUP_BY", "MAX_PER"):
        short = parameter.isascii() and parameter.isdigit() and len(parameter) <= _LONGEST_NUMBER
        if not short or int(parameter) < 1:
            wrong = f"{text!r} has the parameter {parameter!r}"
            raise SpecError(where, wrong, f"{operator} takes {OPERATORS[operator][1]}.")
    if operator in ("LIKE", "UNLIKE"):
        try:
            re.compile(parameter)
        except (re.error, OverflowError, RecursionError) as error:
            raise SpecError(where, f"{parameter!r} is no regular expression ({error})", f"Mend {text!r}.") from None


class Tally:
    """How many tasks of a job stand on each value, and where one more may stand.

    All that count are one rule: a value has at most `level` tasks, except `rest` values, which have at most `most`.
    """

    def __init__(self, constraint: Constraint, tasks: int, values: int) -> None:
        """For that many tasks in all, and that many values that machines able to hold one of them have."""
        self.constraint = constraint
        self.tasks = tasks
        self.level, self.rest, self.most = _bounds(constraint, tasks, values)
        self._on: Counter[str] = Counter()
        self._above = 0

    def on(self, value: str) -> int:
        """How many tasks stand on a value."""
        return self._on[value]

    def allows(self, value: str) -> bool:
        """Whether one more task may stand on a value."""
        count = self._on[value]
        return count < self.level or (count < self.most and (count > self.level or self._above < self.rest))

    def add(self, value: str, tasks: int = 1) -> None:
        """Count a task that comes, or with -1 one that goes."""
        before = self._on[value] > self.level
        self._on[value] += tasks
        self._above += (self._on[value] > self.level) - before

    def suffice(self, values: int) -> bool:
        """Whether all the job's tasks may stand on that many values."""
        most = min(self.rest, values)
        return most * self.most + (values - most) * self.level >= self.tasks


def _bounds(constraint: Constraint, tasks: int, values: int) -> tuple[int, int, int]:
    if constraint.operator == "CLUSTER":
        return 0, 1, tasks
    if constraint.operator == "GROUP_BY":
        level, rest = divmod(tasks, max(int(constraint.parameter or 1), values))
        return level, rest, level + 1
    most = int(constraint.parameter or 1)
    return most, 0, most
