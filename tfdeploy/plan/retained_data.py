"""The data of a cluster, and what `pulumi destroy` does with it, as text of every preview and update. Pure.

`pulumi destroy` runs no program, so it can neither ask nor warn: this is where a user reads it beforehand.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..units import text_of_size


@dataclass(frozen=True)
class RetainedData:
    """Data at one place. A backend lists each place that may have the only copy of something: `Rendered.retained`."""

    kind: str
    """What it is, as a noun: `record`, `checkpoints`, `volume`, `file system`, `disk`."""
    place: str
    """Where it is after `pulumi destroy`; if that removes it, where it is now: a folder, a URL, `volume NAME on MACHINE`."""
    is_retained: bool
    """Whether `pulumi destroy` keeps it."""
    size: int | None = None
    """Bytes; None where it does not exist yet, or where the size is not known."""

    def __str__(self) -> str:
        size = "" if self.size is None else f", {text_of_size(self.size)}"
        return f"{self.kind}: {self.place}{size}"


def lines(retained: Iterable[RetainedData]) -> tuple[str, ...]:
    """What `pulumi destroy` keeps, and what it removes, one line for each place; nothing where no place is known."""
    places = tuple(retained)
    return (
        *_section("`pulumi destroy` keeps:", (data for data in places if data.is_retained)),
        *_section("`pulumi destroy` removes:", (data for data in places if not data.is_retained)),
    )


def _section(title: str, places: Iterable[RetainedData]) -> tuple[str, ...]:
    by_place: dict[str, RetainedData] = {}
    for data in places:
        same = by_place.get(data.place)
        by_place[data.place] = data if same is None else _joined(same, data)
    return (title, *(f"  {data}" for data in by_place.values())) if by_place else ()


def _joined(first: RetainedData, second: RetainedData) -> RetainedData:
    """Two kinds of data at one place, which is named once."""
    sizes = [data.size for data in (first, second) if data.size is not None]
    kind = first.kind if first.kind == second.kind else f"{first.kind} and {second.kind}"
    return replace(first, kind=kind, size=sum(sizes) if sizes else None)
