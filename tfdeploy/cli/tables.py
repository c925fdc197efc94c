"""Both tables, as wide as the terminal: what is long is shortened, what is empty left out where there is no room."""

import datetime
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..report import spent, table

_MACHINES = ("machine", "role", "provider", "region", "size", "public_ip", "status")
_TASKS = ("container", "machine", "command", "hostname", "status", "created", "public_ip")
_LEAST = {"command": 12, "size": 10, "status": 16, "machine": 10}
"""What may be shortened, in this order, and to how many characters."""

_MAY_GO = ("public_ip", "region", "container")
_GAP, _NARROW = 3, 2
_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def tables(machines: Sequence[Mapping[str, Any]], tasks: Sequence[Mapping[str, Any]], width: int = 0) -> str:
    """Both tables; `width` 0 is the terminal's, and no limit where the answer goes elsewhere."""
    limit = width or (shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000)
    now = time.time()
    shown = [
        {**task, "command": " ".join(task["command"].split()), "created": ago(task["created"], now)} for task in tasks
    ]
    paid = any("spent" in machine for machine in machines)
    known = [{**machine, "spent": spent(machine)} for machine in machines]
    columns = (*_MACHINES, "spent") if paid else _MACHINES
    return "\n\n".join([fitted(known, columns, limit), fitted(shown, _TASKS, limit)])


def fitted(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], limit: int) -> str:
    """A table of at most so many characters a line, as far as it can be."""
    cells = [{name: str(row[name] if row[name] is not None else "") for name in columns} for row in rows]
    gap = _GAP if _width(cells, columns, _GAP) <= limit else _NARROW
    for name in _MAY_GO:
        if _width(cells, columns, gap) > limit and not any(row[name] for row in cells if name in row):
            columns = [one for one in columns if one != name]
    for name, least in _LEAST.items():
        over = _width(cells, columns, gap) - limit
        if over > 0 and name in columns:
            longest = max([len(row[name]) for row in cells], default=0)
            cells = [{**row, name: _cut(row[name], max(least, longest - over))} for row in cells]
    return table(cells, columns, gap)


def ago(moment: str, now: float) -> str:
    """A moment of the outputs as people say it: `2 minutes ago`."""
    if not moment:
        return ""
    at = datetime.datetime.strptime(moment, "%Y-%m-%d %H:%M:%SZ").replace(tzinfo=datetime.UTC).timestamp()
    gone = max(0, round(now - at))
    seconds, unit = next((one for one in _UNITS if gone >= one[0]), _UNITS[-1])
    count = gone // seconds
    return f"{count} {unit}{'' if count == 1 else 's'} ago"


def _width(cells: Sequence[Mapping[str, str]], columns: Sequence[str], gap: int) -> int:
    widths = [max([len(name), *(len(row[name]) for row in cells)]) for name in columns]
    return sum(widths) + gap * (len(columns) - 1)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
