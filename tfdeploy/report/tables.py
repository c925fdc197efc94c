"""The tables of machines and tasks: one definition of the columns for the stack output, the terminal and the page. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..agent import run_state as states
from ..outputs import MachineRow, TaskRow
from ..spec.backends import is_this_computer
from ..units import counted, from_moment

REMOVED = "removed"
KINDS = {
    states.SCHEDULED: "idle",
    states.WAITING: "wait",
    states.STARTING: "start",
    states.RUNNING: "run",
    states.RESTARTING: "warn",
    states.INTERRUPTED: "warn",
    states.LOST: "bad",
    states.SUCCEEDED: "good",
    states.STOPPED: "over",
    REMOVED: "over",
    **dict.fromkeys((*states.DEAD, states.UNREACHABLE, "rejected", "gone", "not created", "left over"), "bad"),
    states.UNKNOWN: "wait",
    "pulling": "start",
    "connected": "good",
    "ok": "good",
    "ended": "over",
    "destroyed": "over",
}
"""State of a run, a task or a machine to its kind, which has one colour on the page and one in a terminal."""

_COMMAND_LENGTH = 40

_MINIMUM_WIDTHS = {"command": 12, "changed": 12, "container": 12, "what": 12, "size": 10}
"""Columns that are cut in a narrow terminal, in this order, and to which width. Others identify a row, or are its status."""

_EMPTY_COLUMNS = ("public_ip", "region", "container")
"""Columns that a narrow terminal does not show if they are empty."""

_DROPPED_COLUMNS = (
    *("command", "container", "created", "role", "provider"),
    *("size", "age", "where", "started", "backend", "per_hour"),
)
"""Columns that a terminal does not show if it is too narrow for all of them, in this order."""

_UNLIMITED = 10_000
_GAP, _NARROW_GAP = 3, 2
_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


class Table(NamedTuple):
    """A table with text in its cells; shown as plain text, in a terminal and on the page."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Mapping[str, str]]


def kind(status: str) -> str:
    """The kind of a status: `waiting for ps-0` has that of `waiting`; empty for other words."""
    return next((KINDS[word] for word in KINDS if re.match(rf"{word}\b", status)), "")


def machine_table(machines: Sequence[MachineRow]) -> Table:
    """The machines. The columns are Kelda's."""
    columns = ["machine", "role", "provider", "region", "size", "public_ip", "status"]
    return Table("Machines", columns, [_cells(machine, columns) for machine in machines])


def task_table(tasks: Sequence[TaskRow], endpoints: Mapping[str, str] | None = None) -> Table:
    """The tasks. The columns are Kelda's, and with `endpoints` (hostname to address) also the addresses that are in use: ENDPOINT is
    the stable name in the cluster."""
    columns = ["container", "machine", "command", "hostname", "status", "created", "public_ip"]
    rows = [_cells(task, columns) for task in tasks]
    if endpoints is None:
        return Table("Tasks", columns, rows)
    for row in rows:
        address = endpoints.get(row["hostname"], "")
        port = address.rpartition(":")[2]
        row |= {"endpoint": f"{row['hostname']}:{port}" if port else "", "address": address}
    return Table("Tasks", [*columns, "endpoint", "address"], rows)


def _is_informative(machines: Sequence[MachineRow]) -> bool:
    """Whether the table of machines has anything to report: not of this computer alone, which is always connected."""
    is_alone = len(machines) == 1 and is_this_computer(machines[0]["provider"])
    return not is_alone or machines[0]["status"] != "connected"


def without_empty_columns(table: Table, hidden: Sequence[str] = ()) -> Table:
    """The table without these columns and those that have no text."""
    columns = [name for name in table.columns if name not in hidden and any(row[name] for row in table.rows)]
    return table._replace(columns=columns) if columns else table


def with_ages(table: Table, now: float) -> Table:
    """The table with the age of each task instead of the time of its creation."""
    return table._replace(rows=[{**row, "created": ago(row["created"], now)} for row in table.rows])


def status_text(machines: Sequence[MachineRow], tasks: Sequence[TaskRow]) -> str:
    """Both tables as plain text, with short commands: the output `status`."""
    return _joined([machine_table(machines), _with_short_commands(task_table(tasks))])


def screen_tables(machines: Sequence[MachineRow], tasks: Sequence[TaskRow], now: float) -> list[Table]:
    """The tables of a terminal: tasks first, with their ages, and machines where they have anything to report. The id of a process on
    this computer is left out. In a log, with `now` 0, tasks have the times of their creation."""
    hidden = ["container"] if all(is_this_computer(machine["provider"]) for machine in machines) else []
    timed = with_ages(task_table(tasks), now) if now else task_table(tasks)
    tables = [timed, *([machine_table(machines)] if _is_informative(machines) else [])]
    return [without_empty_columns(table, hidden) for table in tables]


def screen_text(machines: Sequence[MachineRow], tasks: Sequence[TaskRow], width: int, now: float) -> str:
    """The same as plain text in so many columns, as far as possible; 0 for no limit."""
    return _joined(map(_with_short_commands, screen_tables(machines, tasks, now)), width)


def _joined(tables: Iterable[Table], width: int = 0) -> str:
    return "\n\n".join(text_table(table.rows, table.columns, width) for table in tables)


def text_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], width: int = 0) -> str:
    """A table as plain text: column names in capitals, columns as wide as their longest cell, three spaces between them. `width` is
    that of the terminal; 0 for no limit."""
    cells = [{column: str(row[column] or "") for column in columns} for row in rows]
    widths, gap = fit(cells, columns, width)
    lines = [{column: heading(column) for column in columns}, *cells]
    texts = ((_cut(line[name], size).ljust(size) for name, size in widths.items()) for line in lines)
    return "\n".join((" " * gap).join(line).rstrip() for line in texts)


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"


def fit(
    rows: Sequence[Mapping[str, str]], columns: Sequence[str], width: int, measure: Callable[[str], int] = len
) -> tuple[dict[str, int], int]:
    """The columns that are shown in a terminal of `width` columns, with their widths; and the gap between them. `measure` is the width
    of a text."""
    width = width or _UNLIMITED
    full = {name: max([len(name), *(measure(row[name]) for row in rows)]) for name in columns}
    widths = dict(full)
    gap = _GAP if _excess(widths, _GAP, width) <= 0 else _NARROW_GAP
    for name in _EMPTY_COLUMNS:
        if name in widths and _excess(widths, gap, width) > 0 and not any(row[name] for row in rows):
            del widths[name]
    for name, minimum in _MINIMUM_WIDTHS.items():
        excess = _excess(widths, gap, width)
        if name in widths and excess > 0:
            widths[name] = min(widths[name], max(minimum, len(name), widths[name] - excess))
    for name in _DROPPED_COLUMNS:
        if name in widths and _excess(widths, gap, width) > 0:
            del widths[name]
    for name, size in widths.items():
        widths[name] = min(full[name], size + max(0, -_excess(widths, gap, width)))
    return widths, gap


def _excess(widths: Mapping[str, int], gap: int, width: int) -> int:
    return sum(widths.values()) + gap * (len(widths) - 1) - width


def ago(moment: str, now: float) -> str:
    """A time of the outputs relative to now: `2 minutes ago`; empty if there is none."""
    if not moment:
        return ""
    age = max(0, round(now - from_moment(moment)))
    seconds, unit = next((size for size in _UNITS if age >= size[0]), _UNITS[-1])
    return f"{counted(age // seconds, unit)} ago"


def heading(column: str) -> str:
    """The heading of a column in text: `PUBLIC IP` for `public_ip`."""
    return column.replace("_", " ").upper()


def _cells(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, str]:
    return {column: "" if row[column] is None else str(row[column]) for column in columns}


def _with_short_commands(table: Table) -> Table:
    if "command" not in table.columns:
        return table
    return table._replace(
        rows=[{**row, "command": _cut(row["command"].replace("\n", " "), _COMMAND_LENGTH)} for row in table.rows]
    )
