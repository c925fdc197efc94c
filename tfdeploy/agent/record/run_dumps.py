"""The dumps of a run in its record: what its tasks did when it had made no step for long.

They are stored like the output of a task, so that every copy of the record has them: each is a line of JSON, and an entry of the index.
"""

import json
from contextlib import suppress
from typing import Any, Dict, Iterable, NamedTuple, Tuple

from .log_lines import STDOUT, Log, entry

FOLDER = "dumps"
"""Its place among the logs of a run. The hostname of a task ends in a number."""

MAX_BYTES, MAX_DUMPS = 1 << 20, 16
"""So long is one, in bytes; so many a run has."""


class RunDump(NamedTuple):
    """What the tasks of a run did at one moment."""

    at: float
    """In seconds since 1970."""
    tasks: Dict[str, Dict[str, Any]]
    """Hostname to the JSON of a `TaskDump`."""


def store(log: Log, at: float, dumps: Iterable[Tuple[str, Any]]) -> int:
    """Store the first of these dumps of tasks, as far as they are not too long together; how many.

    Raises:
        OSError: they cannot be written.
    """
    tasks, size = {}, 0
    for hostname, dump in dumps:
        size += len(json.dumps({hostname: dump}))
        if size <= MAX_BYTES:
            tasks[hostname] = dump
    content = json.dumps(tasks).encode() + b"\n"
    stdout, index = log.streams["stdout"], log.streams["index"]
    begin, number = stdout.end, count(log) + 1
    stdout.put(begin, content)
    index.put(index.end, entry(at, STDOUT, number, begin, len(content)))
    return len(tasks)


def count(log: Log) -> int:
    """How many dumps there are."""
    return len(log.attempts())


def last(log: Log) -> RunDump:
    """The last one; empty where there is none, or where it is damaged."""
    for at, content in log.chunks()[-1:]:
        with suppress(ValueError, TypeError, AttributeError, RecursionError):
            return RunDump(at, {str(hostname): dict(dump) for hostname, dump in json.loads(content).items()})
    return RunDump(0.0, {})
