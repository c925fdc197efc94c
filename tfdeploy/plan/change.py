"""One change that an update makes, as a line of the preview. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

CREATE, UPDATE, DELETE = "+", "~", "-"


@dataclass(frozen=True)
class Change:
    """`~ worker-0  memory 1 GiB -> 2 GiB  (restarts)`."""

    operation: str
    names: tuple[str, ...]
    """The tasks, or the machines, that change in the same way."""
    details: tuple[str, ...] = ()
    """What changes, and from what to what."""
    effect: str = ""
    """What the change does to a running training; empty for nothing."""

    def __str__(self) -> str:
        parts = [", ".join(self.names), ", ".join(self.details), f"({self.effect})" if self.effect else ""]
        return f"{self.operation} {'  '.join(filter(None, parts))}"


def detail(name: str, before: object, after: object) -> str:
    """`memory 1 GiB -> 2 GiB`; what is empty is shown as `none`."""
    return f"{name} {before or 'none'} -> {after or 'none'}"


def updates(name: str, settings: Mapping[str, tuple[str, str]], effect: str) -> Iterator[Change]:
    """The change of a task, if one of its settings differs; they have the values before and after."""
    if details := tuple(detail(key, *pair) for key, pair in settings.items() if pair[0] != pair[1]):
        yield Change(UPDATE, (name,), details, effect)


def grouped(changes: Iterable[Change]) -> tuple[Change, ...]:
    """The same changes, with one entry for all that differ in nothing but the name."""
    groups: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
    for change in changes:
        groups.setdefault((change.operation, change.details, change.effect), []).extend(change.names)
    return tuple(Change(key[0], tuple(names), key[1], key[2]) for key, names in groups.items())
