"""Dataclasses as JSON, and back: the same way for what is stored and for what travels between processes. Pure."""

from collections import abc
from typing import Any, Callable, Dict, Mapping, Optional, Type, TypeVar, get_args, get_origin, get_type_hints

D = TypeVar("D", bound="JsonData")

_SCALARS = frozenset({str, int, float, bool, type(None)})


class JsonData:
    """A dataclass that is stored or sent as JSON. Its fields are JSON, or such dataclasses, or lists, tuples and mappings of these."""

    def to_dict(self) -> Dict[str, Any]:
        """As JSON; a copy that does not change with the object."""
        return {name: _to_json(getattr(self, name)) for name in self.__dataclass_fields__}  # type: ignore[attr-defined]

    @classmethod
    def from_dict(cls: Type[D], data: Mapping[str, Any]) -> D:
        """From JSON. Fields of a newer version are ignored, and those that an earlier version did not have get their defaults.

        Raises:
            TypeError: it is not an object, or it lacks a field without a default.
        """
        if not isinstance(data, abc.Mapping):
            raise TypeError(f"{cls.__name__}: {type(data).__name__} instead of an object")
        values = {name: data[name] for name in cls.__dataclass_fields__ if name in data}  # type: ignore[attr-defined]
        for name, read in _readers(cls).items():
            if name in values:
                values[name] = read(values[name])
        return cls(**values)


class SparseJsonData(JsonData):
    """One whose JSON leaves out what is empty or 0: the defaults of its fields."""

    def to_dict(self) -> Dict[str, Any]:
        """As JSON, without what is empty or 0."""
        return {name: _to_json(value) for name, value in vars(self).items() if value}


def _to_json(value: Any) -> Any:
    if type(value) in _SCALARS:
        return value
    if isinstance(value, JsonData):
        return value.to_dict()
    if isinstance(value, abc.Mapping):
        return {key: _to_json(item) for key, item in value.items()}
    return [_to_json(item) for item in value] if isinstance(value, (list, tuple)) else value


_READERS: Dict[type, Dict[str, Callable[[Any], Any]]] = {}


def _readers(kind: type) -> Dict[str, Callable[[Any], Any]]:
    """Field to what makes its value from JSON; without the fields whose values are JSON."""
    if kind not in _READERS:
        readers = {name: _reader(part) for name, part in get_type_hints(kind).items()}
        _READERS[kind] = {name: read for name, read in readers.items() if read is not None}
    return _READERS[kind]


def _reader(kind: Any) -> Optional[Callable[[Any], Any]]:
    """What makes a value of this type from JSON; None where the value is JSON."""
    if isinstance(kind, type) and issubclass(kind, JsonData):
        return kind.from_dict
    origin = get_origin(kind)
    read = next(filter(None, map(_reader, get_args(kind))), None)
    if origin is tuple:
        return lambda data: tuple(map(read, data) if read else data)
    if read is None:
        return None
    item: Callable[[Any], Any] = read
    if origin in (dict, abc.Mapping):
        return lambda data: {key: item(value) for key, value in data.items()}
    if origin in (list, abc.Sequence):
        return lambda data: list(map(item, data))
    return lambda data: None if data is None else item(data)
