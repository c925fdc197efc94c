"""The tables of machines and tasks: one definition of the columns for the stack output, the terminal and the page. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..agent.model import run_state as states
from ..agent.record.terminal_text import RESET, safe
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

_DROPPED_COLUMNS = (
    *("command", "container", "created", "role", "provider"),
    *("size", "age", "where", "started", "backend", "per_hour"),
)
"""Columns that a terminal does not show if it is too narrow for all of them, in this order."""

_BOLD, _GREEN, _RED, _YELLOW, _DIM = 1, 32, 31, 33, 2
_STYLES = {"run": _GREEN, "good": _GREEN, "bad": _RED, "over": _DIM}
"""Kind of a state to its colour; every other state is on its way to one of these."""

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


def screen_text(
    machines: Sequence[MachineRow], tasks: Sequence[TaskRow], width: int, now: float, colours: bool = False
) -> str:
    """The tables of a terminal with so many columns, 0 for no limit: tasks first, with their ages, and machines where they have
    anything to report. The id of a process on this computer is left out. In a log, with `now` 0, commands are short, and tasks have the
    times of their creation."""
    hidden = ["container"] if all(is_this_computer(machine["provider"]) for machine in machines) else []
    timed = with_ages(task_table(tasks), now) if now else _with_short_commands(task_table(tasks))
    tables = [timed, *([machine_table(machines)] if _is_informative(machines) else [])]
    return _joined([without_empty_columns(table, hidden) for table in tables], width, colours)


def wide_text(
    machines: Sequence[MachineRow],
    tasks: Sequence[TaskRow],
    endpoints: Mapping[str, str],
    now: float,
    colours: bool = False,
) -> str:
    """The same with all columns in full, and with the addresses that are in use."""
    return _joined([with_ages(task_table(tasks, endpoints), now), machine_table(machines)], 0, colours)


def _joined(tables: Iterable[Table], width: int = 0, colours: bool = False) -> str:
    return "\n\n".join(text_table(table.rows, table.columns, width, colours) for table in tables)


def text_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], width: int = 0, colours: bool = False) -> str:
    """A table as text in so many columns, 0 for no limit: column names in capitals, columns as wide as their longest cell. Commands are
    cut first; the status and what identifies a row are never cut."""
    # Without line breaks and without what would move the cursor.
    cells = [{name: safe(" ".join(str(row[name] or "").split()), False) for name in columns} for row in rows]
    measure, resized = _measures(width, colours)
    widths, gap = fit(cells, columns, width, measure)

    def cell(text: str, size: int, style: int) -> str:
        text = text if measure(text) <= size else f"{resized(text, size - 1)}…"
        padding = " " * (size - measure(text))
        return (f"\x1b[{style}m{text}{RESET}" if colours and style and text else text) + padding

    lines = [[cell(heading(name), size, _BOLD) for name, size in widths.items()]]
    lines += [[cell(row[name], size, _style(name, row[name])) for name, size in widths.items()] for row in cells]
    return "\n".join((" " * gap).join(line).rstrip() for line in lines)


def _measures(width: int, colours: bool) -> tuple[Callable[[str], int], Callable[[str, int], str]]:
    """What measures a text, and what cuts it to a size: by the columns that it takes in a terminal, and by characters elsewhere."""
    if not width and not colours:
        return len, _cut
    from rich.cells import cell_len, set_cell_size  # takes long to load

    return cell_len, set_cell_size


def _style(column: str, text: str) -> int:
    """The colour of a cell: that of its state if it has one."""
    return _STYLES.get(kind(text), _YELLOW) if column in ("status", "state") else 0


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"


def fit(
    rows: Sequence[Mapping[str, str]], columns: Sequence[str], width: int, measure: Callable[[str], int]
) -> tuple[dict[str, int], int]:
    """The columns that are shown in a terminal of `width` columns, with their widths; and the gap between them. `measure` is the width
    of a text."""
    width = width or _UNLIMITED
    full = {name: max([len(name), *(measure(row[name]) for row in rows)]) for name in columns}
    widths = dict(full)
    gap = _GAP if _excess(widths, _GAP, width) <= 0 else _NARROW_GAP
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
    rows = [{**row, "command": _cut(row["command"].replace("\n", " "), _COMMAND_LENGTH)} for row in table.rows]
    return table._replace(rows=rows)
