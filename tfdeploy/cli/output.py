"""How log lines and tables are written: to a terminal with colours and in its width, to a pipe or file unchanged, or as JSON."""

import datetime
import json
import os
import select
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ..agent.record.terminal_text import RESET, safe
from ..errors import BackendError
from ..outputs import MachineRow, TaskRow
from ..report.tables import Table, fit, heading, kind, machine_table, screen_tables, task_table, text_table, with_ages
from .common import columns, has_colours, print_styled
from .snapshot import LogLine

_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)

Writer = Callable[[Iterable[LogLine]], None]


def prefix(hostname: str, at: float = 0.0) -> str:
    """The prefix of a task's lines: `worker-0 | `, with the time before it if it is given: `2026-11-21T04:12:07.123Z worker-0 | `."""
    return f"{timestamp(at)} {hostname} | " if at else f"{hostname} | "


def timestamp(at: float) -> str:
    """A time as `docker logs --timestamps` prints it, in milliseconds."""
    moment = datetime.datetime.fromtimestamp(at, datetime.UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"


@contextmanager
def line_writer(
    as_json: bool, follow: bool, save: Path | None, hostnames: Sequence[str], timestamps: bool = False
) -> Iterator[Writer]:
    """The function that writes log lines of these tasks, according to the options."""
    if save is not None:
        with _open(save) as file:
            yield _bytes_writer(file, len(hostnames) != 1, timestamps)
    elif as_json:
        yield _write_json_lines if follow else _write_json_list
    elif sys.stdout.isatty():
        yield _terminal_writer(hostnames, timestamps)
    else:
        yield _bytes_writer(sys.stdout.buffer, True, timestamps)


def _open(path: Path) -> BinaryIO:
    try:
        return path.expanduser().open("wb")
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BackendError(f"cannot write {path}: {reason}. Use another file: --save FILE.") from None


def _bytes_writer(file: BinaryIO, prefixed: bool, timestamps: bool) -> Writer:
    def begin(line: LogLine) -> str:
        if prefixed:
            return prefix(line.hostname, line.at if timestamps else 0.0)
        return f"{timestamp(line.at)} " if timestamps else ""

    def write(lines: Iterable[LogLine]) -> None:
        file.writelines(begin(line).encode() + line.content + b"\n" for line in lines)
        file.flush()

    return write


def _terminal_writer(hostnames: Sequence[str], timestamps: bool) -> Writer:
    colours = {hostname: index for index, hostname in enumerate(hostnames)}
    has_colours = "NO_COLOR" not in os.environ

    def write(lines: Iterable[LogLine]) -> None:
        for line in lines:
            text = prefix(line.hostname, line.at if timestamps else 0.0)
            if has_colours:
                index = colours.setdefault(line.hostname, len(colours))
                text = f"\x1b[{_COLOURS[index % len(_COLOURS)]}m{text}{RESET}"
            print(text + safe(line.text, has_colours))
        sys.stdout.flush()

    return write


def _write_json_lines(lines: Iterable[LogLine]) -> None:
    for line in lines:
        print(json.dumps(_to_dict(line)))
    sys.stdout.flush()


def _write_json_list(lines: Iterable[LogLine]) -> None:
    separator = "[\n"
    for line in lines:
        sys.stdout.write(separator + json.dumps(_to_dict(line)))
        separator = ",\n"
    print("[]" if separator == "[\n" else "\n]", flush=True)


def _to_dict(line: LogLine) -> dict[str, object]:
    text = line.content.decode("utf-8", "replace")
    return {"at": line.at, "task": line.hostname, "stream": line.pipe, "attempt": line.attempt, "text": text}


def sleep_while_read(duration: float) -> None:
    """Sleep, but return at once if stdout is closed.

    Raises:
        BrokenPipeError: stdout is closed.
    """
    poll = select.poll()
    poll.register(sys.stdout, 0)
    if any(event & select.POLLERR for _, event in poll.poll(duration * 1000)):
        raise BrokenPipeError


_BOLD, _GREEN, _RED, _YELLOW, _DIM = 1, 32, 31, 33, 2
_STYLES = {"run": _GREEN, "good": _GREEN, "bad": _RED, "over": _DIM}
"""Kind of a state to its colour; every other state is on its way to one of these."""


def screen_width(wide: bool = False) -> int:
    """The terminal's width in columns; 0 for no limit: without a terminal, or if the user wants all columns."""
    return 0 if wide else columns(sys.stdout)


def cluster_tables(machines: Sequence[MachineRow], tasks: Sequence[TaskRow], width: int, colours: bool = False) -> str:
    """The tables of tasks and machines in so many columns; 0 for no limit."""
    return _text_of(screen_tables(machines, tasks, time.time()), width, colours)


def wide_tables(machines: Sequence[MachineRow], tasks: Sequence[TaskRow], endpoints: Mapping[str, str]) -> str:
    """The same with all columns, and with the addresses that are in use."""
    return _text_of([with_ages(task_table(tasks, endpoints), time.time()), machine_table(machines)], 0, has_colours())


def _text_of(tables: Sequence[Table], width: int, colours: bool) -> str:
    return "\n\n".join(table_lines(table.rows, table.columns, width, colours) for table in tables)


def print_table(rows: Sequence[Mapping[str, str]], columns: Sequence[str], wide: bool) -> None:
    """Print a table in the width of the terminal, or with all columns in full."""
    print_styled(table_lines(rows, columns, screen_width(wide), has_colours()))


def table_lines(rows: Sequence[Mapping[str, str]], columns: Sequence[str], width: int, colours: bool) -> str:
    """A table in so many columns, 0 for no limit. Commands are cut first; the status and what identifies a row are never cut."""
    # Without line breaks and without what would move the cursor.
    rows = [{key: safe(" ".join(cell.split()), False) for key, cell in row.items()} for row in rows]
    if not width and not colours:
        return text_table(rows, columns)
    from rich.cells import cell_len, set_cell_size

    def cell(text: str, size: int, style: int) -> str:
        text = text if cell_len(text) <= size else f"{set_cell_size(text, size - 1)}…"
        padding = " " * (size - cell_len(text))
        return (f"\x1b[{style}m{text}{RESET}" if colours and style and text else text) + padding

    widths, gap = fit(rows, columns, width, cell_len)
    lines = [[cell(heading(column), size, _BOLD) for column, size in widths.items()]]
    lines += [[cell(row[column], size, _style(column, row[column])) for column, size in widths.items()] for row in rows]
    return "\n".join((" " * gap).join(line).rstrip() for line in lines)


def _style(column: str, text: str) -> int:
    """The colour of a cell: that of its state if it has one."""
    return _STYLES.get(kind(text), _YELLOW) if column in ("status", "state") else 0
