"""The file with the events of a run, one line of JSON each. A torn, zeroed or foreign line never hides the others."""

import json
import os
from pathlib import Path
from typing import IO, List, Optional, Sequence

from ..model.events import RECORD_DAMAGED, Event


def append(path: Path, events: Sequence[Event]) -> None:
    """Append events. They begin a line, whatever the file ends with.

    Raises:
        OSError: they cannot be written; then the file is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(event.to_dict()) + "\n" for event in events).encode()
    with path.open("ab+") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 1))
        is_torn = file.read(1) not in (b"\n", b"")
        try:
            _write(file, b"\n" * is_torn + lines)
        except OSError:
            os.truncate(str(path), end)
            raise


def _write(file: IO[bytes], data: bytes) -> None:
    file.write(data)
    file.flush()


def read(path: Path, last: int = 0) -> List[Event]:
    """The events, oldest first; only the `last` ones where that is given. One more states how many lines could not be read."""
    try:
        lines = [line for line in path.read_bytes().split(b"\n")[:-1] if line]
    except FileNotFoundError:
        return []
    parsed = [_parse_line(line) for line in lines[-last:]]
    events = [event for event in parsed if event is not None]
    damaged = len(parsed) - len(events)
    if damaged:
        events.append(Event(RECORD_DAMAGED, events[-1].at if events else 0.0, count=damaged, reason=path.name))
    return events


def _parse_line(line: bytes) -> Optional[Event]:
    """The event in a line; None where it is none."""
    try:
        event = Event.from_dict(json.loads(line.decode("utf-8")))
        _check(event)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return event


def _check(event: Event) -> None:
    """Raise where a field that every reader needs has another type."""
    float(event.at)
    "".join([event.kind, event.task, event.reason, event.state, event.machine, *event.tasks])
