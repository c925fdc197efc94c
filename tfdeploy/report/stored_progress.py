"""How fast and how far a run is, from its stored output."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from ..agent.record.record import Record
from ..agent.run_state import RunState
from .progress import Progress, leaders_first, read_progress

LAST_LINES = 1000
"""So many last lines of a task are read for its progress."""


def first_progress(
    record: Record, state: RunState | None, commands: Mapping[str, str] = MappingProxyType({})
) -> Progress:
    """The progress of the first task that prints steps or losses; the chief comes first."""
    if state is None:
        return Progress()
    return first_of(stored_progress(record, state.spec.id, leaders_first(state.tasks), commands))


def first_of(of_tasks: Iterable[Progress]) -> Progress:
    """The first one that has a step or a loss."""
    return next((item for item in of_tasks if item.step is not None or item.loss is not None), Progress())


def stored_progress(
    record: Record,
    run_id: str,
    hostnames: Iterable[str],
    commands: Mapping[str, str],
    count: int = LAST_LINES,
) -> Iterator[Progress]:
    """The progress of each of these tasks, from so many last lines of its log; `commands` has the command of each."""
    for hostname in hostnames:
        lines = record.log(run_id, hostname).tail(count)
        yield read_progress(((line.at, line.text) for line in lines), commands.get(hostname, ""))
