"""A lock of a folder, which ends with its process."""

import fcntl
import math
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Iterator

from .polling import wait_until


class IsLocked(OSError):
    """Another process holds the lock of a folder."""


@contextmanager
def locked(folder: Path, seconds: float = math.inf) -> Iterator[None]:
    """Hold an exclusive lock on the folder; waits so long until the previous process has exited.

    Raises:
        IsLocked: it holds the lock after that time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        if seconds == math.inf:
            fcntl.flock(lock, fcntl.LOCK_EX)
        elif not wait_until(partial(_is_ours, lock), seconds):
            raise IsLocked(f"{folder} is locked")
        yield


def _is_ours(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
