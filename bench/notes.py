"""How each name of `python -m bench` is measured, and why a target was missed, which the page shows: `notes.toml`."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .outcomes import FAILED, Run
from .table import Row

FILE = Path(__file__).parent / "notes.toml"


@dataclass(frozen=True)
class Reason:
    """Why one row misses its target."""

    measure: str
    """A part of the row's measure that no other row of the name has."""
    text: str


@dataclass(frozen=True)
class Note:
    """What is known about one name."""

    how: str
    """How it is measured, and what the peer does, in words."""
    missed: Sequence[Reason] = ()

    def reason_of(self, row: Row) -> str:
        """Why a row misses its target; empty where none is given."""
        return next((reason.text for reason in self.missed if reason.measure in row.measure), "")


def read(path: Path = FILE) -> Mapping[str, Note]:
    """All notes, by name."""
    data = tomllib.loads(path.read_text())
    return {
        name: Note(note["how"], [Reason(item["measure"], item["reason"]) for item in note.get("missed", ())])
        for name, note in data.items()
    }


def complaints(run: Run, notes: Mapping[str, Note]) -> Iterator[str]:
    """Why `make bench` ends with an error: a row that failed, a missed target without a reason, a reason that is not of one row."""
    for name, outcome in run.outcomes.items():
        if name not in notes:
            yield f"bench/notes.toml has nothing about {name}"
            continue
        if outcome.problem == FAILED:
            yield f"{name} failed"
        for row in outcome.rows:
            if not row.met and not notes[name].reason_of(row):
                yield f"{name}: {row.measure!r} misses its target, and bench/notes.toml has no reason"
        if outcome.rows:
            for reason in notes[name].missed:
                count = sum(reason.measure in row.measure for row in outcome.rows)
                if count != 1:
                    yield f"{name}: the reason of {reason.measure!r} belongs to {count} rows instead of 1"


def warnings(run: Run, notes: Mapping[str, Note]) -> Iterator[str]:
    """Reasons that are no longer needed."""
    for name, outcome in run.outcomes.items():
        for row in outcome.rows if name in notes else ():
            if row.target is not None and row.met and not row.is_undecided and notes[name].reason_of(row):
                yield f"{name}: {row.measure!r} meets its target: remove its reason from bench/notes.toml"
