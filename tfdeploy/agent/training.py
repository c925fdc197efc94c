"""The folder that a run has of its own below `train_dir`."""

from pathlib import Path
from typing import Any, Dict

from .record import Record


class Refused(Exception):
    """A run that cannot be given; the message says why."""


def train_dir(record: Record, run: Dict[str, Any], mode: int = 0) -> str:
    """The run's own folder: one that the record knows stays, a new run never begins in a used one.

    Raises:
        Refused: `resume_from` names no run.
    """
    base = run["train_dir"].rstrip("/")
    known = record.load(run["id"])
    if known is not None:
        return str(known.run["train_dir"])
    resumed = record.load(run["resume_from"]) if run["resume_from"] else None
    if resumed is not None:
        return str(resumed.run["train_dir"])
    if "://" in base:
        return f"{base}/{run['resume_from'] or run['id']}"
    if run["resume_from"]:
        folder = Path(base) / run["resume_from"]
        if not folder.is_dir():
            runs = ", ".join(record.runs()) or "none"
            raise Refused(f"resume_from: there is no run {run['resume_from']!r}; known are: {runs}")
        return str(folder)
    number = 1
    folder = Path(base) / run["id"]
    while folder.exists() and any(folder.iterdir()):
        number += 1
        folder = Path(base) / f"{run['id']}-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    if mode:
        folder.chmod(mode)
    return str(folder)
