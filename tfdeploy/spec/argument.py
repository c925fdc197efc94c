"""How an argument is declared: as a field of a dataclass, with what reads it. Pure.

The type of the field is that of the value after reading, its docstring is the text that users read. The TypedDicts of `args.py`, the
reference, the schema, `tfdeploy options`, and the keys of the stack's configuration are made from the declarations.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast

from .arg_reader import ArgReader
from .backends import BACKEND_GROUPS

_Group = TypeVar("_Group")
_Value = TypeVar("_Value")

Read = Callable[[ArgReader, str, Any], Any]
"""Reads the argument of this name. The third argument is the value without it: the default, or for a job that of the cluster."""

Check = Callable[[ArgReader, str, _Value], _Value]
"""Refuses a value of the argument of this name, or returns it as it is to be used."""

TEXTS, MAPPING, DATA, GROUP, NAMED_GROUPS = "list[str]", "dict[str, str]", "dict[str, Any]", "a group", "groups by name"
"""The kinds of arguments beside `str`, `bool`, `int` and `float`."""

BY_DEFAULT, ADDED = "by default the cluster's", "in addition to the cluster's"
"""How an argument of a job relates to the cluster's."""


class Choices(NamedTuple):
    """The values of an argument that takes one of a few, and the name of their type."""

    name: str
    about: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Argument:
    """What a field has that is an argument."""

    kind: str
    """The type that users write."""
    read: Read
    unit: str = ""
    """Of the number that is read from a text: seconds, bytes, GiB."""
    choices: Choices | None = None
    members: type | None = None
    """The dataclass of a group."""
    has_default: bool = True
    """Whether the default is shown. It is not where the text describes what holds without the argument."""
    of_job: str = BY_DEFAULT
    """How the argument of a job relates to the cluster's."""


def own(kind: str, read: Read, default: _Value, **more: Any) -> _Value:
    """An argument that is read by a function of its own; `more` are fields of `Argument`."""
    metadata = {"argument": Argument(kind, read, **more)}
    made: Any = (
        field(default_factory=dict, metadata=metadata) if default == {} else field(default=default, metadata=metadata)
    )
    return cast("_Value", made)


def text(
    default: str = "",
    pattern: re.Pattern[str] | None = None,
    form: str = "",
    check: Check[str] | None = None,
    of_job: str = BY_DEFAULT,
) -> str:
    """A string, which has to match `pattern`; `form` describes it in the remedy."""

    def read(args: ArgReader, key: str, otherwise: str) -> str:
        value = (args.matching(key, pattern, form) if pattern else args.string(key)) or otherwise
        return check(args, key, value) if check and args.has(key) else value

    return own("str", read, default, of_job=of_job)


def choice(choices: Choices, default: str = "") -> str:
    """One of a few strings."""
    return own(
        "str", lambda args, key, otherwise: args.choice(key, choices.values, otherwise), default, choices=choices
    )


def flag(default: bool = False, read: Read = ArgReader.boolean, of_job: str = BY_DEFAULT) -> bool:
    """True or False."""
    return own("bool", read, default, of_job=of_job)


def integer(default: int, least: int, most: int) -> int:
    """An integer within bounds. A default outside of them means that the argument is not set."""

    def read(args: ArgReader, key: str, otherwise: int) -> int:
        return args.integer(key, otherwise, least, most)

    return own("int", read, default, has_default=default >= least)


def duration(default: float, read: Read = ArgReader.duration, has_default: bool = True) -> float:
    """Seconds, from a string such as "10m"."""
    return own("str", read, default, unit="s", has_default=has_default)


def size(default: int = 0, unit: str = "B", read: Read | None = None) -> int:
    """Bytes, or another unit, from a string such as "2GiB"."""
    return own("str", read or (lambda args, key, otherwise: args.bytes(key) or otherwise), default, unit=unit)


def texts(check: Check[str] | None = None, default: tuple[str, ...] = (), adds: bool = False) -> tuple[str, ...]:
    """A list of strings, each of which is checked. A job's `adds` to the cluster's, or replaces it."""

    def read(args: ArgReader, key: str, otherwise: tuple[str, ...]) -> tuple[str, ...]:
        if not args.has(key):
            return otherwise
        values = args.strings(key)
        checked = tuple(dict.fromkeys(check(args, key, value) for value in values)) if check else values
        return (*otherwise, *checked) if adds else checked

    return own(TEXTS, read, default, of_job=ADDED if adds else BY_DEFAULT)


def mapping(check: Callable[[ArgReader, str], Mapping[str, str]] = ArgReader.mapping) -> Mapping[str, str]:
    """A mapping of names to strings. A job's is added to the cluster's."""

    def read(args: ArgReader, key: str, otherwise: Mapping[str, str]) -> Mapping[str, str]:
        return {**otherwise, **check(args, key)}

    return own(MAPPING, read, {}, of_job=f"{ADDED}; the same key overrides")


def group(members: type[_Group]) -> _Group:
    """A group of arguments, which are the fields of the dataclass `members`."""

    def read(args: ArgReader, key: str, otherwise: _Group) -> _Group:
        return read_all(args.group(key, names(members)), members, otherwise)

    return own(GROUP, read, members(), members=members)


def groups(members: type[_Group]) -> tuple[_Group, ...]:
    """Groups of arguments by names that users choose. The value is empty: `jobs.jobs_of` reads them."""
    return own(NAMED_GROUPS, lambda args, key, otherwise: otherwise, (), members=members)


@cache
def arguments(owner: type) -> Mapping[str, Argument]:
    """The arguments among the fields of a dataclass."""
    return {item.name: item.metadata["argument"] for item in fields(owner) if "argument" in item.metadata}


def names(*owners: type) -> tuple[str, ...]:
    """The names of their arguments."""
    return tuple(name for owner in owners for name in arguments(owner))


def members_of_groups(owner: type) -> dict[str, tuple[str, ...]]:
    """The groups that some backends use, among the arguments of a dataclass, to the names of their members."""
    declared = arguments(owner)
    return {name: names(members) for name in BACKEND_GROUPS if name in declared and (members := declared[name].members)}


def values_of(args: ArgReader, owner: type, otherwise: object = None) -> dict[str, Any]:
    """The values of all arguments of a dataclass; those of `otherwise` or the defaults where they are not set.

    Raises:
        SpecError: an argument is not valid.
    """
    source = owner if otherwise is None else otherwise  # a class has the defaults, but those with a factory
    return {name: argument.read(args, name, getattr(source, name, {})) for name, argument in arguments(owner).items()}


def read_all(args: ArgReader, owner: type[_Group], otherwise: object = None) -> _Group:
    """The dataclass `owner` from the arguments, over the values of `otherwise`.

    Raises:
        SpecError: an argument is not valid.
    """
    return owner(**values_of(args, owner, otherwise))
