"""The difference between two runs: their results side by side, and what had changed. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..agent.record.terminal_text import safe
from .run_history import StoredRun, argument_values, changes, counts_text
from .tables import text_table


@dataclass(frozen=True)
class RunDiff:
    """Two runs, and what differs between them."""

    older: StoredRun
    newer: StoredRun

    @property
    def changed(self) -> list[str]:
        """The names of what differs."""
        return changes(self.older, self.newer)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        tables, names = self.value_tables(), ("name", "older", "newer")
        return {
            "older": {**self.older.to_dict(), "steps_per_second": self.older.speed},
            "newer": {**self.newer.to_dict(), "steps_per_second": self.newer.speed},
            "changed": self.changed,
            **{title.lower(): [dict(zip(names, row, strict=True)) for row in rows] for title, rows in tables.items()},
        }

    def value_tables(self) -> dict[str, list[tuple[str, str, str]]]:
        """The values that differ, as tables by title: name, older, newer. Of the environment `changed` has the names: values are often
        secrets."""
        older, newer = self.older, self.newer
        return {
            "Arguments": _differing_rows(argument_values(older.spec), argument_values(newer.spec)),
            "Tasks": _differing_rows(older.tasks, newer.tasks),
        }

    def compared(self, now: float) -> list[tuple[str, str, str]]:
        """What is known of both runs, side by side: the name of each thing, and its text for the older and the newer run."""
        cells = [
            {**run.cells(now), "steps/s": _speed_text(run.speed), "tasks": counts_text(run.tasks)}
            for run in (self.older, self.newer)
        ]
        names = [name for name in dict.fromkeys([*cells[0], *cells[1]]) if name not in _NOT_COMPARED]
        rows = [(name, cells[0].get(name, ""), cells[1].get(name, "")) for name in names]
        return [row for row in rows if row[0] != "steps/s" or any(row[1:])]

    def text(self, now: float) -> str:
        """For a terminal or a file: a table, and what had changed with its values."""
        parts = [_table("", self.compared(now))]
        parts.append("\n".join(["Changed:", *(f"  {name}" for name in self.changed or ["nothing"])]))
        parts += [_table(title, rows) for title, rows in self.value_tables().items() if rows]
        return "\n\n".join(parts)


_NOT_COMPARED = ("cluster", "changed")


def _differing_rows(older: Mapping[str, object], newer: Mapping[str, object]) -> list[tuple[str, str, str]]:
    names = sorted({*older, *newer})
    rows = [(name, str(older.get(name, "")), str(newer.get(name, ""))) for name in names]
    return [row for row in rows if row[1] != row[2]]


def _speed_text(speed: float | None) -> str:
    return "" if speed is None else f"{speed:.4g}"


def _table(title: str, rows: Sequence[tuple[str, str, str]]) -> str:
    cells = [{title: name, "older": safe(before, False), "newer": safe(after, False)} for name, before, after in rows]
    return text_table(cells, [title, "older", "newer"])
