"""Between Pulumi's property values and plain Python, and how two plain values are compared."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.runtime.rpc import UNKNOWN

Props = dict[str, Any]

MAPS = frozenset({"tags", "tagsAll"})
"""Properties whose keys are the user's: compared and replaced as a whole."""


def plain(values: Mapping[str, PropertyValue]) -> Props:
    """Plain Python; what is null is left out, what is not known yet stays the engine's mark for it."""
    found = {name: _plain(value.value) for name, value in values.items()}
    return {name: value for name, value in found.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, PropertyValue):
        return _plain(value.value)
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items() if item.value is not None}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def wrapped(values: Mapping[str, Any]) -> dict[str, PropertyValue]:
    """Property values of plain Python."""
    return {name: _wrapped(value) for name, value in values.items()}


def _wrapped(value: Any) -> PropertyValue:
    if isinstance(value, Mapping):
        return PropertyValue(wrapped(value))
    if isinstance(value, list | tuple):
        return PropertyValue([_wrapped(item) for item in value])
    if isinstance(value, int) and not isinstance(value, bool):
        return PropertyValue(float(value))
    return PropertyValue(value)


def unknown(value: Any) -> bool:
    """Whether a value, or a part of it, is not known yet."""
    if isinstance(value, Mapping):
        return any(unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(unknown(item) for item in value)
    found: bool = value == UNKNOWN
    return found


def changed(name: str, old: Any, new: Any) -> list[str]:
    """The paths at which what is wanted differs from what is: of objects, only what is wanted is compared."""
    if isinstance(new, dict) and isinstance(old, dict) and name.rpartition(".")[2] not in MAPS:
        return [path for key, value in new.items() for path in changed(f"{name}.{key}", old.get(key), value)]
    return [] if _same(old, new) else [name]


def _same(old: Any, new: Any) -> bool:
    if unknown(new):
        return False
    if isinstance(old, list) and isinstance(new, list):
        return _same_lists(old, new)
    if isinstance(old, str) and isinstance(new, str) and old.startswith("{") and new.startswith("{"):
        return bool(_document(old) == _document(new))
    return bool(old == new)


def _same_lists(old: list[Any], new: list[Any]) -> bool:
    if any(isinstance(item, dict) for item in new):
        pairs = zip(old, new, strict=False)
        return len(old) == len(new) and not any(path for was, now in pairs for path in changed("", was, now))
    return sorted(map(repr, old)) == sorted(map(repr, new))


def _document(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def merged(declared: Props, observed: Props) -> Props:
    """What is, as far as it is told; the rest as it was declared."""
    found = {**declared, **observed}
    for name, value in observed.items():
        before = declared.get(name)
        if isinstance(value, dict) and isinstance(before, dict) and name not in MAPS:
            found[name] = {**before, **value}
    return found
