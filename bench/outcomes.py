"""What became of each row of a run: its values, or why there are none. Stored as JSON, which the page is written from."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .quiet import QUIET
from .table import Row

FAILED, LEFT_OUT = "failed", "is left out"


@dataclass(frozen=True)
class Outcome:
    """One name of `python -m bench`, which may have several rows."""

    name: str
    at: str
    """When it was measured, as `2026-11-24 02:10`."""
    rows: Sequence[Row] = ()
    problem: str = ""
    """FAILED, LEFT_OUT, or empty."""
    reason: str = ""
    """Of a problem, in one line."""
    beside: float = 0.0
    """How many cores other processes used before it was measured."""

    @property
    def is_disturbed(self) -> bool:
        """Whether it was measured beside other work."""
        return bool(self.rows) and self.beside > QUIET


@dataclass(frozen=True)
class Run:
    """All rows on one machine."""

    machine: str
    software: str
    outcomes: Mapping[str, Outcome]

    def updated(self, other: "Run") -> "Run":
        """This run, with rows replaced by those of another run.

        Raises:
            ValueError: the other was measured on another machine.
        """
        if other.machine != self.machine:
            raise ValueError(f"the stored rows were measured on {self.machine}, not on {other.machine}: run all rows")
        return Run(self.machine, other.software, {**self.outcomes, **other.outcomes})

    def to_text(self) -> str:
        """As JSON, with a line for each name, so that a diff shows what was measured again."""
        texts = [f"{json.dumps(name)}: {json.dumps(asdict(outcome))}" for name, outcome in self.outcomes.items()]
        head = f'{{"machine": {json.dumps(self.machine)}, "software": {json.dumps(self.software)}, "outcomes": {{'
        return "\n".join([head, ",\n".join(texts), "}}\n"])


def read(path: Path) -> Run:
    """A stored run."""
    data = json.loads(path.read_text())
    return Run(data["machine"], data["software"], {name: _outcome(item) for name, item in data["outcomes"].items()})


def _outcome(data: Mapping[str, Any]) -> Outcome:
    return Outcome(**{**data, "rows": [Row(**row) for row in data["rows"]]})
