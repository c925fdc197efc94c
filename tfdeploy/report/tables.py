"""The tables of machines and tasks: one definition of the columns for the stack output, the terminal and the page. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..outputs import MachineRow, TaskRow
from ..units import dollars

_COMMAND_LENGTH = 40


@dataclass(frozen=True)
class Table:
    """A table with text in its cells; shown as plain text, in a terminal and on the page."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Mapping[str, str]]


def machine_table(machines: Sequence[MachineRow]) -> Table:
    """The machines, and what they have cost so far if they are billed. The columns are Kelda's."""
    columns = ["machine", "role", "provider", "region", "size", "public_ip", "status"]
    if any("spent" in machine for machine in machines):
        columns.append("spent")
    rows = [_cells({**machine, "spent": _spent(machine)}, columns) for machine in machines]
    return Table("Machines", columns, rows)


def task_table(tasks: Sequence[TaskRow]) -> Table:
    """The tasks. The columns are Kelda's."""
    columns = ["container", "machine", "command", "hostname", "status", "created", "public_ip"]
    return Table("Tasks", columns, [_cells(task, columns) for task in tasks])


def status_text(machines: Sequence[MachineRow], tasks: Sequence[TaskRow]) -> str:
    """Both tables as plain text, with short commands."""
    short = [{**row, "command": _shorten(row["command"])} for row in task_table(tasks).rows]
    machine_rows = machine_table(machines)
    return f"{text_table(machine_rows.rows, machine_rows.columns)}\n\n{text_table(short, task_table(tasks).columns)}"


def text_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """A table as plain text: column names in capitals, columns as wide as their longest cell, three spaces between them."""
    lines = [[heading(column) for column in columns]]
    lines += [[str(row[column] or "") for column in columns] for row in rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    return "\n".join("   ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def heading(column: str) -> str:
    """The heading of a column in text: `PUBLIC IP` for `public_ip`."""
    return column.replace("_", " ").upper()


def _cells(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, str]:
    return {column: "" if row[column] is None else str(row[column]) for column in columns}


def _spent(machine: MachineRow) -> str:
    usd = machine.get("spent", 0.0)
    return "unknown" if usd is None else dollars(usd)


def _shorten(command: str) -> str:
    line = command.replace("\n", " ")
    return line if len(line) <= _COMMAND_LENGTH else line[: _COMMAND_LENGTH - 1] + "…"
