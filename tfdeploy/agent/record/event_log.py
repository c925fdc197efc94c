"""The file with the events of a run, one line of JSON each. A torn, zeroed or foreign line never hides the others."""

import json
import os
from pathlib import Path
from typing import IO, List, Optional, Sequence, Tuple

from ..model.events import RECORD_DAMAGED, Event

_BLOCK = 64 * 1024
"""How many bytes from the end the search for the last events begins."""


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
        content = _tail(path, last)
    except FileNotFoundError:
        return []
    events, damaged = parse(content)
    events = events[-last:]
    if damaged:
        events.append(Event(RECORD_DAMAGED, events[-1].at if events else 0.0, count=damaged, reason=path.name))
    return events


def parse(content: bytes) -> Tuple[List[Event], int]:
    """The events of whole lines, and how many lines are none."""
    events: List[Event] = []
    damaged = 0
    for line in filter(None, content.split(b"\n")[:-1]):
        event = _parse_line(line)
        if event is None:
            damaged += 1
        else:
            events.append(event)
    return events, damaged


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


def _tail(path: Path, last: int) -> bytes:
    """The end of the file, from the beginning of a line, with at least the `last` lines; all of it for 0."""
    with path.open("rb") as file:
        end, size = file.seek(0, os.SEEK_END), _BLOCK
        while True:
            begin = max(0, end - size) if last else 0
            file.seek(begin)
            content = file.read(end - begin)
            if not begin:
                return content
            _, newline, rest = content.partition(b"\n")
            if newline and rest.count(b"\n") >= last:
                return rest
            size *= 4
