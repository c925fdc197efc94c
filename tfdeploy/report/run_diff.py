"""The difference between two runs: their results side by side, what had changed, and their code as a unified diff. Pure."""

import difflib
import stat
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..agent.record.terminal_text import safe
from ..receipts import Receipt
from ..units import text_of_size
from .run_history import StoredRun, argument_values, changes, counts_text, speed_text
from .tables import text_table

_MAX_FILE_BYTES = 1024 * 1024
"""A larger file is only named."""

TEXT, NOT_TEXT, LINE_ENDS = "text", "not-text", "line-ends"
NEW_EMPTY, REMOVED_EMPTY, MODE = "new-empty", "removed-empty", "mode"
_SENTENCES = {
    NOT_TEXT: f"differs. It is not text, or has more than {text_of_size(_MAX_FILE_BYTES)}.",
    LINE_ENDS: "differs only in its line ends, or in the newline at its end.",
    NEW_EMPTY: "is new and empty.",
    REMOVED_EMPTY: "is removed. It was empty.",
}
CODE_IS_MISSING = "The code of one of the runs is not stored on this computer, so it is not compared."
EXECUTABLE, NOT_EXECUTABLE = "executable", "not executable"


@dataclass(frozen=True)
class FileChange:
    """One file of the code that differs."""

    path: str
    lines: Sequence[str]
    """A unified diff; empty for all kinds but `text`."""
    kind: str = TEXT
    """`text`, or why there is no diff: `not-text` (or too large), `line-ends`, `new-empty`, `removed-empty`, `mode`."""
    mode: str = ""
    """`executable` or `not executable` where that has changed, alone or with the content; empty where it has not."""


@dataclass(frozen=True)
class RunDiff:
    """Two runs, and what differs between them."""

    older: StoredRun
    newer: StoredRun
    code: Sequence[FileChange] | None
    """None where the code of one of the runs is not stored."""

    @property
    def changed(self) -> list[str]:
        """The names of what differs."""
        return changes(self.older, self.newer)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        tables, names = self.value_tables(), ("name", "older", "newer")
        return {
            "older": self.older.to_dict(),
            "newer": self.newer.to_dict(),
            "changed": self.changed,
            **{title.lower(): [dict(zip(names, row, strict=True)) for row in rows] for title, rows in tables.items()},
            "code": None
            if self.code is None
            else [
                {"path": change.path, "kind": change.kind, "mode": change.mode, "diff": "\n".join(change.lines)}
                for change in self.code
            ],
        }

    def value_tables(self) -> dict[str, list[tuple[str, str, str]]]:
        """The values that differ, as tables by title: name, older, newer. What only receipts have is compared where both runs have
        one. Of the environment `changed` has the names: values are often secrets."""
        older, newer = self.older, self.newer
        before, after = older.receipt, newer.receipt
        if before is None or after is None:
            before = after = Receipt()
        return {
            "Arguments": _differing_rows(
                argument_values(older.spec, before.options), argument_values(newer.spec, after.options)
            ),
            "Tasks": _differing_rows(older.outcome.tasks, newer.outcome.tasks),
            "Machines": _differing_rows(before.machines, after.machines),
            "Versions": _differing_rows(before.versions, after.versions),
        }

    def text(self, now: float) -> str:
        """For a terminal or a file: a table, what had changed with its values, and the diff of the code."""
        parts = [_table("", compared(self.older, self.newer, now))]
        parts.append("\n".join(["Changed:", *(f"  {name}" for name in self.changed or ["nothing"])]))
        parts += [_table(title, rows) for title, rows in self.value_tables().items() if rows]
        if self.code is None:
            parts.append(CODE_IS_MISSING)
        parts += [file_text(change) for change in self.code or ()]
        return "\n\n".join(parts)


def _differing_rows(older: Mapping[str, object], newer: Mapping[str, object]) -> list[tuple[str, str, str]]:
    names = sorted({*older, *newer})
    rows = [(name, str(older.get(name, "")), str(newer.get(name, ""))) for name in names]
    return [row for row in rows if row[1] != row[2]]


_NOT_COMPARED = ("cluster", "changed")


def compared(older: StoredRun, newer: StoredRun, now: float) -> list[tuple[str, str, str]]:
    """What is known of both runs, side by side: the name of each thing, and its text for the older and the newer run."""
    cells = [
        {**run.cells(now), "steps/s": speed_text(run.outcome), "tasks": counts_text(run.outcome.tasks)}
        for run in (older, newer)
    ]
    names = [name for name in dict.fromkeys([*cells[0], *cells[1]]) if name not in _NOT_COMPARED]
    rows = [(name, cells[0].get(name, ""), cells[1].get(name, "")) for name in names]
    return [row for row in rows if row[0] not in _NOT_ALWAYS_KNOWN or any(row[1:])]


_NOT_ALWAYS_KNOWN = ("cost", "steps/s")


def _table(title: str, rows: Sequence[tuple[str, str, str]]) -> str:
    cells = [{title: name, "older": safe(before, False), "newer": safe(after, False)} for name, before, after in rows]
    return text_table(cells, [title, "older", "newer"])


def file_text(change: FileChange) -> str:
    """How a file differs: sentences, and the diff."""
    path = safe(change.path, False)
    sentences = [f"{path} {_SENTENCES[change.kind]}"] if change.kind in _SENTENCES else []
    mode = [f"{path}: mode: now {change.mode}."] if change.mode else []
    return "\n".join([*mode, *sentences, *(safe(line, False) for line in change.lines)])


def code_changes(older: Path, newer: Path) -> list[FileChange]:
    """The files that differ between two code archives.

    Raises:
        OSError, zipfile.BadZipFile: an archive cannot be read.
    """
    with zipfile.ZipFile(older) as before, zipfile.ZipFile(newer) as after:
        names = sorted({*before.namelist(), *after.namelist()})
        return [change for name in names if (change := _change(name, before, after)) is not None]


def _change(name: str, before: zipfile.ZipFile, after: zipfile.ZipFile) -> FileChange | None:
    old, new = _entry(before, name), _entry(after, name)
    mode = ""
    if old and new and _is_executable(old) != _is_executable(new):
        mode = EXECUTABLE if _is_executable(new) else NOT_EXECUTABLE
    if old and new and (old.CRC, old.file_size) == (new.CRC, new.file_size):
        return FileChange(name, (), MODE, mode) if mode else None
    before_lines, after_lines = _lines(before, old), _lines(after, new)
    if before_lines is None or after_lines is None:
        return FileChange(name, (), NOT_TEXT, mode)
    if before_lines == after_lines:
        return FileChange(name, (), LINE_ENDS if old and new else NEW_EMPTY if new else REMOVED_EMPTY, mode)
    begin, end = f"a/{name}" if old else "/dev/null", f"b/{name}" if new else "/dev/null"
    lines = tuple(difflib.unified_diff(before_lines, after_lines, begin, end, lineterm=""))
    return FileChange(name, lines, TEXT, mode)


def _entry(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo | None:
    """A file of an archive; None where the archive does not have it."""
    return archive.getinfo(name) if name in archive.NameToInfo else None


def _is_executable(entry: zipfile.ZipInfo) -> bool:
    """Whether the owner may execute a file."""
    return bool(entry.external_attr >> 16 & stat.S_IXUSR)


def _lines(archive: zipfile.ZipFile, entry: zipfile.ZipInfo | None) -> list[str] | None:
    """The lines of a text, none where there is no file; None for a file that is not text, or is too large."""
    if entry is None:
        return []
    with archive.open(entry) as file:
        content = file.read(_MAX_FILE_BYTES + 1)
    try:
        return content.decode().splitlines() if len(content) <= _MAX_FILE_BYTES else None
    except UnicodeDecodeError:
        return None
