"""The packages of `requirements` while they are installed: a note in the user's state folder, which other processes read."""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ..agent.system.files import write_whole
from ..errors import BackendError
from ..paths import cluster_folder, make_private, state_folder
from ..units import text_of_seconds

_NAMED = 3
"""So many packages are named."""


@contextmanager
def noted(cluster: Mapping[str, object], packages: Sequence[str]) -> Iterator[None]:
    """Meanwhile `installing` names these packages. A disk that is full or cannot be written is ignored."""
    from ..agent.launch.process import start_time  # takes long to load, and most calls find no note

    path = _folder() / f"{cluster_folder(cluster)}.{os.urandom(4).hex()}.json"
    note = {"packages": list(packages), "since": time.time(), "pid": os.getpid(), "start": start_time(os.getpid())}
    with suppress(OSError, BackendError):
        make_private(path.parent)
        write_whole(path, json.dumps(note))
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()


def installing(cluster: Mapping[str, object], now: float) -> str:
    """`installing tensorflow==2.15.*, 40s`; empty while no packages are installed for this cluster."""
    texts = [_text(path, now) for path in sorted(_folder().glob(f"{cluster_folder(cluster)}.*.json"))]
    return next(filter(None, texts), "")


def _text(path: Path, now: float) -> str:
    """What a note reports; empty where the process that wrote it was killed."""
    from ..agent.launch.process import start_time

    try:
        note = json.loads(path.read_text())
        names, seconds = [str(name) for name in note["packages"]], max(0.0, now - note["since"])
        if start_time(note["pid"]) != note["start"]:
            return ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"installing {', '.join(names[:_NAMED])}{more}, {text_of_seconds(seconds)}"


def _folder() -> Path:
    return state_folder() / "installing"
