"""Typed access to arguments. Each method returns a valid value or raises a `SpecError` that names the argument. Pure."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import SpecError, nearest
from ..units import DURATION_FORM, SIZE_FORM, seconds, size
from .unknown_values import is_known

MOST_DEPTH = 100
"""Of mappings and lists in each other."""

LONGEST_DURATION = 366 * 24 * 3600.0

NEVER_SHOWN = ("secrets", "env")
"""Arguments with values that no message and no page shows, whether the user marked them as secret or not."""

_LONGEST_SHOWN = 100
_STRING = "a string without NUL characters and lone surrogates"
_TYPE_NAMES = {
    "NoneType": "None",
    "bool": "a boolean",
    "dict": "a mapping",
    "float": "a float",
    "int": "an integer",
    "list": "a list",
    "str": "a string",
    "tuple": "a tuple",
}


_OF_JOBS = {
    **{name: name for name in ("cpus", "memory", "gpus", "nice", "port")},
    **dict.fromkeys(("cpu", "num_cpus"), "cpus"),
    **dict.fromkeys(("gpu", "num_gpus", "accelerators"), "gpus"),
    **dict.fromkeys(("mem", "ram", "memory_limit", "mem_limit"), "memory"),
}
"""Settings of a job, and other systems' names for them."""

_WITHDRAWN = {
    "container.lease": "Remove it. Tasks start elsewhere when you confirm the end of their machine: `tfdeploy restart --lost MACHINE`.",
}
"""Arguments of former versions, with the prefix of their group, and what to do instead."""

_JOB_OF_GROUP = {"data_service.": "data_worker"}
"""The prefix of a group to the job that its settings are for, where that is not `worker`."""

_GROUP_EXAMPLES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "elastic": ((int,), "max"),
    "data_service": ((int,), "workers"),
    "restart": ((int,), "maximum"),
    "container": ((str,), "image"),
    "docker": ((str,), "host"),
    "ec2": ((str,), "instance_type"),
    "kubernetes": ((str,), "namespace"),
    "metrics": ((str,), "accuracy"),
}
"""A group to the types of a single value that is written in its place, and to the member that the value is for."""

_CONDITION = re.compile(r"\s*([A-Za-z_][\w.-]*)?\s*(>=|<=|>|<)\s*([\d.eE+-]+)\s*")
"""A condition of `until` in one text, with its metric."""


class ArgReader:
    """The arguments of a cluster, or of one group of them (`ec2`, `jobs.worker`)."""

    def __init__(self, cluster: str, args: Mapping[str, Any], prefix: str = "") -> None:
        self.cluster = cluster
        self.args = args
        self.prefix = prefix

    def error(self, key: str, wrong: str, remedy: str) -> SpecError:
        """The error for the caller to raise: `mnist: ec2.spot: …`."""
        return SpecError(f"{self.cluster}: {self.prefix}{key}", wrong, remedy)

    def has(self, key: str) -> bool:
        """Whether the user has set this argument."""
        return self.args.get(key) is not None

    def group(self, key: str, names: Sequence[str]) -> "ArgReader":
        """The arguments of a group, empty when not set.

        Raises:
            SpecError: the group is not a mapping, or has a name that is not in `names`.
        """
        reader = ArgReader(self.cluster, self._value(key, Mapping, "a mapping") or {}, f"{self.prefix}{key}.")
        reader.refuse_unknown(f"a setting of `{key}`", names)
        return reader

    def refuse_unknown(self, kind: str, names: Sequence[str], groups: Mapping[str, Sequence[str]] = {}) -> None:
        """Refuse names that are not in `names`; `groups` are those where the user may have looked for the name.

        Raises:
            SpecError: there is such a name.
        """
        for name in map(str, self.args):
            if name not in names:
                job = _JOB_OF_GROUP.get(self.prefix, "worker")
                remedy = _WITHDRAWN.get(f"{self.prefix}{name}", "")
                remedy = remedy or unknown_remedy(name, names, groups, self.args[name], job)
                raise self.error(name, f"is not {kind}", remedy)

    def string(self, key: str, default: str = "") -> str:
        """A string."""
        value = self._value(key, str, "a string")
        if value and not_encodable(value):
            raise self.error(key, f"{_shown(key, value)} contains {not_encodable(value)}", "Remove it from the string.")
        text: str = default if value is None else value  # not a copy: it may be `Unknown`
        return text

    def matching(self, key: str, pattern: re.Pattern[str], form: str) -> str:
        """A string that matches, or an empty one; `form` describes the pattern."""
        text = self.string(key)
        if text and is_known(text) and not pattern.fullmatch(text):
            raise self.error(key, f"{_shown(key, text)} is not valid", f"Use {form}.")
        return text

    def choice(self, key: str, choices: Sequence[str], default: str) -> str:
        """One of these strings."""
        text = self.string(key) or default
        if text and text not in choices:
            *first, last = (f'"{choice}"' for choice in choices)
            raise self.error(key, f"{_shown(key, text)} is not valid", f"Use {', '.join(first)} or {last}.")
        return text

    def boolean(self, key: str, default: bool = False) -> bool:
        """True or False."""
        value = self._value(key, bool, "True or False")
        return default if value is None else bool(value)

    def boolean_or_count(self, key: str, _default: bool = False) -> bool:
        """True or False; 1 and 0 too."""
        value = self.args.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value not in (0, 1):
            raise self.error(key, f"{_shown(key, value)} is not valid", f"Use {key}=True: there can be only one.")
        return bool(value) if isinstance(value, int) else self.boolean(key)

    def integer(self, key: str, default: int, least: int, most: int) -> int:
        """An integer within bounds."""
        value = self._value(key, int, f"an integer from {least} to {most}")
        if value is None:
            return default
        if not least <= value <= most:
            raise self.error(key, f"{_shown(key, value)} is out of range", f"Use an integer from {least} to {most}.")
        return int(value)

    def number(self, key: str, default: float = 0.0) -> float:
        """A number of 0 or more."""
        value = self._value(key, (int, float), "a number")
        if value is None:
            return default
        if not 0 <= value < 1e6:
            raise self.error(key, f"{_shown(key, value)} is out of range", "Use a number from 0 to a million.")
        return float(value)

    def duration(self, key: str, default: float) -> float:
        """A duration in seconds, from a number or a string such as `10m`."""
        value = self._value(key, (str, int, float), DURATION_FORM)
        try:
            duration = default if value is None else seconds(value) if isinstance(value, str) else float(value)
        except (ValueError, OverflowError):
            duration = -1.0
        if not 0 <= duration <= LONGEST_DURATION:
            remedy = f"Use {DURATION_FORM}, at most a year."
            raise self.error(key, f"{_shown(key, value)} is not a valid duration", remedy)
        return duration

    def bytes(self, key: str, default: int = 0) -> int:
        """A size in bytes, from a number or a string such as `2GiB`."""
        value = self._value(key, (str, int), SIZE_FORM)
        try:
            number = default if value is None else size(value) if isinstance(value, str) else int(value)
        except ValueError:
            number = -1
        if number < 0:
            raise self.error(key, f"{_shown(key, value)} is not a valid size", f"Use {SIZE_FORM}.")
        return number

    def strings(self, key: str) -> tuple[str, ...]:
        """A list of strings."""
        value = self._value(key, (list, tuple), "a list of strings") or ()
        for item in value:
            if not isinstance(item, str) or not_encodable(item):
                raise self.error(key, f"the item {_shown(key, item)} is not valid", f"Each item must be {_STRING}.")
        return tuple(value)

    def mapping(self, key: str, names: re.Pattern[str] | None = None, values: type = str) -> dict[str, Any]:
        """A mapping of names to values of one type."""
        value = self._value(key, Mapping, "a mapping") or {}
        for name, item in value.items():
            if not isinstance(name, str) or not_encodable(name) or (names and not names.fullmatch(name)):
                remedy = f"Names must match {names.pattern}." if names else f"Names must be {_STRING}."
                raise self.error(key, f"the name {_shown('', name)} is not valid", remedy)
            if not isinstance(item, values) or (isinstance(item, str) and not_encodable(item)):
                remedy = _example(f"{key}.", item) or f"Use {'a mapping' if values is Mapping else _STRING}."
                raise self.error(f"{key}.{name}", f"{_shown(key, item)} is not valid", remedy.replace("NAME", name))
        return dict(value)

    def _value(self, key: str, kind: type | tuple[type, ...], form: str) -> Any:
        value = self.args.get(key)
        bool_as_number = isinstance(value, bool) and kind is not bool
        if value is not None and (bool_as_number or not isinstance(value, kind)):
            raise self.error(
                key, f"{_shown(key, value)} is {_type_name(value)}", _example(key, value) or f"Use {form}."
            )
        return value


def unknown_remedy(
    name: str, names: Sequence[str], groups: Mapping[str, Sequence[str]], value: object = None, job: str = "worker"
) -> str:
    """How to fix an unknown name: the `job` or the group that has it, or the most similar name."""
    of_job = _OF_JOBS.get(name.lower(), "")
    if of_job and of_job not in names:
        shown = repr(value) if isinstance(value, (int, float, str)) else "…"
        return f'Set it for a job: jobs={{"{job}": {{"{of_job}": {shown}}}}}.'
    for group, members in groups.items():
        if name in members:
            return f'Move it into the group `{group}`: {group}={{"{name}": …}}.'
    return nearest(name, names, "Run `tfdeploy options` for all of them.")


def refuse_deep(cluster: str, args: Mapping[str, Any]) -> None:
    """Refuse arguments that are nested deeper than any is meant to be, or that contain themselves: what reads them calls itself.

    Raises:
        SpecError: there is such an argument.
    """
    for key, argument in args.items():
        rest = [(argument, 1)]
        while rest:
            value, depth = rest.pop()
            if depth > MOST_DEPTH:
                wrong = f"is nested more than {MOST_DEPTH} deep, or contains itself"
                raise SpecError(f"{cluster}: {key}", wrong, "Put such data into a file in the folder `code`.")
            items = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
            rest += [(item, depth + 1) for item in items]


def _example(key: str, value: object) -> str:
    """The remedy for a single value in place of a group, or of a list; empty for others."""
    if isinstance(value, bool):
        return ""
    if key == "until" and isinstance(value, (str, int, float)):
        match = _CONDITION.fullmatch(str(value))
        metric, condition = (match[1] or "accuracy", f"{match[2]} {match[3]}") if match else ("accuracy", ">= 0.95")
        return f'Use until={{"{metric}": "{condition}"}}.'
    types, member = _GROUP_EXAMPLES.get(key, ((), ""))
    if isinstance(value, types):
        return f'Use {key}={{"{member}": {_shown(member, value)}}}.'
    if key == "jobs." and isinstance(value, int):
        return f'Use {{"NAME": {{…}}}} for the settings of a job; the number of its tasks is an argument, such as workers={value}.'
    if key in ("command", "requirements", "artifacts") and isinstance(value, str):
        try:
            words = shlex.split(value) if key == "command" else [value]
        except ValueError:
            words = [value]
        return (
            f"Use a list of strings: {key}={json.dumps(words, ensure_ascii=False)}."
            if len(value) <= _LONGEST_SHOWN
            else ""
        )
    if key == "env" and isinstance(value, (list, tuple)):
        return 'Use a mapping: env={"NAME": "VALUE"}.'
    return ""


def _type_name(value: Any) -> str:
    name = type(value).__name__
    return _TYPE_NAMES.get(name, f"of type {name}")


def _shown(key: str, value: Any) -> str:
    """A value in an error message: short, and without secrets. Values of `env` are often keys and passwords too."""
    if key in NEVER_SHOWN:
        return "the value (not shown)"
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        text = f"a very large {type(value).__name__}"
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def not_encodable(text: str) -> str:
    """The part of a string that command lines, environment variables and file names cannot hold; empty if there is none."""
    if "\0" in text:
        return "a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "a lone surrogate"
    return ""
