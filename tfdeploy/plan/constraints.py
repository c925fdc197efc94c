"""Marathon's placement constraints, `field:OPERATOR[:parameter]`: parsed, and evaluated for machines. Pure."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ..errors import SpecError

_NEVER, _OPTIONAL, _REQUIRED = "never", "optional", "required"

OPERATORS: Mapping[str, tuple[str, str]] = {
    "UNIQUE": (_NEVER, ""),
    "CLUSTER": (_OPTIONAL, "a value"),
    "GROUP_BY": (_OPTIONAL, "the number of values, 1 or more"),
    "LIKE": (_REQUIRED, "a regular expression"),
    "UNLIKE": (_REQUIRED, "a regular expression"),
    "MAX_PER": (_REQUIRED, "the most tasks on one value, 1 or more"),
    "IS": (_REQUIRED, "a value"),
}
"""Operator to whether it has a parameter, and which."""

_FORM = 'It takes field:OPERATOR[:parameter], such as "hostname:UNIQUE"'
_MAX_DIGITS = 6


class ConstrainedMachine(Protocol):
    """What constraints can refer to in a machine."""

    @property
    def name(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class Constraint:
    """One condition on the machines of a job's tasks."""

    field: str
    operator: str
    parameter: str = ""

    def __str__(self) -> str:
        return ":".join([self.field, self.operator, self.parameter][: 3 if self.parameter else 2])

    @property
    def counts(self) -> bool:
        """Whether it depends on the machines of the job's other tasks."""
        return self.operator in ("UNIQUE", "GROUP_BY", "MAX_PER") or (self.operator == "CLUSTER" and not self.parameter)

    def value(self, machine: ConstrainedMachine) -> str | None:
        """The machine's value in the field; None where it has none."""
        if self.field == "hostname":
            return machine.name
        if self.field == "address":
            return machine.address or None
        return machine.labels.get(self.field)

    def admits(self, machine: ConstrainedMachine) -> bool:
        """Whether a machine may run a task, whatever tasks it has already."""
        value = self.value(machine)
        if value is None:
            return self.operator == "UNLIKE"
        if self.operator in ("LIKE", "UNLIKE"):
            return (re.fullmatch(self.parameter, value) is not None) == (self.operator == "LIKE")
        return self.counts or value == self.parameter


def parse(where: str, text: str) -> Constraint:
    """A constraint from its text; a third colon and those after it belong to the parameter.

    Raises:
        SpecError: the text is not a valid constraint.
    """
    field, operator, parameter = (*text.split(":", 2), "", "")[:3]
    if not field or not operator:
        raise SpecError(where, f"{text!r} is not a valid constraint", f"{_FORM}.")
    if operator not in OPERATORS:
        raise SpecError(where, f"{text!r} has the operator {operator!r}", f"There are: {', '.join(OPERATORS)}.")
    usage, description = OPERATORS[operator]
    if usage == _REQUIRED and not parameter:
        raise SpecError(where, f"{text!r} lacks a parameter", f"{operator} takes {description}: {field}:{operator}:…")
    if usage == _NEVER and parameter:
        raise SpecError(where, f"{text!r} has a parameter", f"{operator} takes none: {field}:{operator}")
    if parameter:
        _refuse_parameter(where, text, operator, parameter)
    return Constraint("hostname" if field == "@hostname" else field, operator, parameter)


def _refuse_parameter(where: str, text: str, operator: str, parameter: str) -> None:
    """Refuse a parameter that is not a number, or not a regular expression, where the operator takes one."""
    if operator in ("GROUP_BY", "MAX_PER"):
        is_number = parameter.isascii() and parameter.isdigit() and len(parameter) <= _MAX_DIGITS
        if not is_number or int(parameter) < 1:
            wrong = f"{text!r} has the parameter {parameter!r}"
            raise SpecError(where, wrong, f"{operator} takes {OPERATORS[operator][1]}.")
    if operator in ("LIKE", "UNLIKE"):
        try:
            re.compile(parameter)
        except (re.error, OverflowError, RecursionError) as error:
            wrong = f"{parameter!r} is not a valid regular expression ({error})"
            raise SpecError(where, wrong, f"Correct {text!r}.") from None


class Tally:
    """How many tasks of a job each value of a field has, and which values may get one more.

    One rule covers all operators that count: a value has at most `level` tasks, except `exceptions` values, which have at
    most `maximum`.
    """

    def __init__(self, constraint: Constraint, tasks: int, values: int) -> None:
        """`tasks` is the number of the job's tasks, `values` the number of values that machines with room for a task have."""
        self.constraint = constraint
        self.tasks = tasks
        self.level, self.exceptions, self.maximum = _limits(constraint, tasks, values)
        self._counts: Counter[str] = Counter()
        self._above_level = 0

    def count(self, value: str) -> int:
        """How many tasks a value has."""
        return self._counts[value]

    def allows(self, value: str) -> bool:
        """Whether a value may get one more task."""
        count = self._counts[value]
        may_exceed = count > self.level or self._above_level < self.exceptions
        return count < self.level or (count < self.maximum and may_exceed)

    def add(self, value: str) -> None:
        """Count a further task."""
        self._counts[value] += 1
        self._above_level += self._counts[value] == self.level + 1


def _limits(constraint: Constraint, tasks: int, values: int) -> tuple[int, int, int]:
    """`level`, `exceptions` and `maximum`."""
    if constraint.operator == "CLUSTER":
        return 0, 1, tasks
    if constraint.operator == "GROUP_BY":
        level, remainder = divmod(tasks, max(int(constraint.parameter or 1), values))
        return level, remainder, level + 1
    maximum = int(constraint.parameter or 1)
    return maximum, 0, maximum
