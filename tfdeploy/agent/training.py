"""The folder that a run has of its own below `train_dir`."""

import os
from pathlib import Path
from typing import Any, Dict

from .record import Record


class Refused(Exception):
    """A run that cannot be given; the message says why."""


def train_dir(record: Record, run: Dict[str, Any], mode: int = 0) -> str:
    """The run's own folder: one that the record knows stays, a new run never begins in a used one. `before` in the run is the
    folder that it had with another keeper, whose record is lost to this one.

    Raises:
        Refused: `resume_from` names no run, or the folder cannot be made.
    """
    base = run["train_dir"].rstrip("/") or "/"
    known = record.load(run["id"])
    if known is not None:
        return str(known.run["train_dir"])
    if run.get("before"):
        return str(run["before"])
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
    try:
        return _fresh(Path(base), run["id"], mode)
    except OSError as error:
        raise Refused(f"train_dir: {base} cannot be used ({error.strerror})") from None


def _fresh(base: Path, run: str, mode: int) -> str:
    """A folder below `base` that no run has used."""
    number = 1
    folder = base / run
    while folder.exists() and any(folder.iterdir()):
        number += 1
        folder = base / f"{run}-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    if mode:
        folder.chmod(mode)
    return str(folder)


def refusal(folder: str) -> str:
    """Why a task cannot write to its run's folder, which is made where it is not there; empty when it can.

    On another machine than the keeper's the folder may be that machine's own.
    """
    if "://" in folder:
        return ""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"train_dir {folder} cannot be made by user {os.getuid()} ({error.strerror})"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"train_dir {folder} cannot be written by user {os.getuid()}: give it to that user, or set `user`"
    return ""
