"""How fast and how far a run is, from its stored output."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from ..agent.record.record import Record
from ..agent.run_state import RunState
from .progress import Progress, leaders_first, read_progress

LAST_LINES = 1000
"""So many last lines of a task are read for its progress."""


def stored_progress(
    record: Record,
    state: RunState,
    commands: Mapping[str, str] = MappingProxyType({}),
    count: int = LAST_LINES,
) -> Iterator[tuple[str, Progress]]:
    """Each task and its progress, from so many last lines of its log; those that print most about the training come first. `commands`
    has the command of each."""
    for hostname in leaders_first(state.tasks):
        lines = record.log(state.spec.id, hostname).tail(count)
        yield hostname, read_progress(((line.at, line.text) for line in lines), commands.get(hostname, ""))


def first_progress(of_tasks: Iterable[tuple[str, Progress]]) -> Progress:
    """The first one that has a step or a loss."""
    return next((item for _, item in of_tasks if item.step is not None or item.loss is not None), Progress())
