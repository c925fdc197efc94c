"""What a resource's properties are called and which values they take, as the SDK itself declares it."""

import collections.abc
import enum
import functools
import importlib
import inspect
import threading
import types
import typing
from typing import Any

from pulumi import _types
from pulumi.runtime.rpc import UNKNOWN

from tests.box.provider.values import Props

_LOADING = threading.Lock()
"""The SDK loads its modules when they are first asked for, and not safely in several threads."""


@functools.cache
def _class(token: str, suffix: str = "") -> Any:
    _, module, name = token.split(":")
    with _LOADING:
        package = importlib.import_module(f"pulumi_aws.{module.partition('/')[0]}")
        return getattr(package, name + suffix)


@functools.cache
def _inputs(cls: Any) -> dict[str, Any]:
    return _types.input_type_types(cls)


@functools.cache
def outputs(token: str) -> frozenset[str]:
    """The names of all properties that a resource of this type has."""
    return frozenset(_types.resource_types(_class(token)))


@functools.cache
def inputs(token: str) -> frozenset[str]:
    """The names of the properties that can be given."""
    return frozenset(_inputs(_class(token, "Args")))


def problems(token: str, given: Props) -> list[tuple[str, str]]:
    """What is wrong with these inputs: pairs of a property's path and a sentence."""
    return _of_object(_class(token, "Args"), given, "")


def required(token: str) -> frozenset[str]:
    """The names of the properties that must be given."""
    return frozenset(_required(_class(token, "Args")))


def _required(cls: Any) -> set[str]:
    names = _types.input_type_py_to_pulumi_names(cls)
    parameters = inspect.signature(cls.__init__).parameters.values()
    return {names[p.name] for p in parameters if p.default is p.empty and p.name in names}


def _of_object(cls: Any, given: Props, path: str) -> list[tuple[str, str]]:
    known = _inputs(cls)
    found = [(f"{path}{name}", "required, but not given") for name in sorted(_required(cls) - set(given))]
    for name, value in given.items():
        if name not in known:
            found.append((f"{path}{name}", f"not a property of {cls.__name__.removesuffix('Args')}"))
        else:
            found += _of_value(known[name], value, f"{path}{name}")
    return found


def _alternatives(hint: Any) -> list[Any]:
    """The types that a value itself may have: no None, nothing to be awaited."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return [one for part in typing.get_args(hint) for one in _alternatives(part)]
    origin = typing.get_origin(hint) or hint
    waits = origin is collections.abc.Awaitable or getattr(origin, "__name__", "") in ("Output", "NoneType")
    return [] if waits else [hint]


def _of_value(hint: Any, value: Any, path: str) -> list[tuple[str, str]]:
    if value == UNKNOWN:
        return []
    tried = [_of_one(one, value, path) for one in _alternatives(hint)]
    return min(tried, key=len, default=[])


def _of_one(hint: Any, value: Any, path: str) -> list[tuple[str, str]]:
    origin = typing.get_origin(hint) or hint
    if origin is collections.abc.Sequence and isinstance(value, list):
        item = typing.get_args(hint)[0]
        return [found for at, one in enumerate(value) for found in _of_value(item, one, f"{path}[{at}]")]
    if origin is collections.abc.Mapping and isinstance(value, dict):
        item = typing.get_args(hint)[1]
        return [found for key, one in value.items() for found in _of_value(item, one, f"{path}.{key}")]
    if _types.is_input_type(origin):
        fits = isinstance(value, dict)
        return _of_object(origin, value, f"{path}.") if fits else [(path, f"an object is wanted, not {value!r}")]
    return [] if _fits(origin, value) else [(path, f"{_called(origin)} is wanted, not {value!r}")]


def _called(cls: Any) -> str:
    if isinstance(cls, type) and issubclass(cls, enum.Enum):
        return f"one of {[item.value for item in cls]}"
    return str(getattr(cls, "__name__", cls))


def _fits(cls: Any, value: Any) -> bool:
    if cls is Any:
        return True
    if issubclass(cls, enum.Enum):
        return any(item.value == value for item in cls)
    if cls in (int, float):
        return isinstance(value, int if cls is int else (int, float)) and not isinstance(value, bool)
    return cls in (bool, str) and isinstance(value, cls)
