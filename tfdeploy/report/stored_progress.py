"""How fast and how far a run is, from its stored output."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from ..agent.control.end_policy import deciding_tasks
from ..agent.record.record import Record
from ..agent.run_state import RunState
from .progress import LEADERS, Progress, read_progress

_LAST_LINES = 1000
"""So many last lines of a task are read for its progress."""


def speed(record: Record, state: RunState) -> float | None:
    """The last steps a second in the output of the first task that prints steps; the deciding tasks come first."""
    deciding = [task.hostname for task in deciding_tasks(state)]
    names = [name for name in dict.fromkeys([*deciding[:1], *LEADERS]) if name in state.tasks]
    rates = (progress.rate for progress in stored_progress(record, state.spec.id, names))
    return next((rate for rate in rates if rate is not None), None)


def stored_progress(
    record: Record,
    run_id: str,
    hostnames: Iterable[str],
    commands: Mapping[str, str] = MappingProxyType({}),
    count: int = _LAST_LINES,
) -> Iterator[Progress]:
    """The progress of each of these tasks, from so many last lines of its log; `commands` has the command of each."""
    for hostname in hostnames:
        lines = record.log(run_id, hostname).tail(count)
        yield read_progress(((line.at, line.text) for line in lines), commands.get(hostname, ""))
