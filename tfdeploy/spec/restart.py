"""When a failed task is restarted: the argument `restart`. Pure."""

import re
from dataclasses import dataclass

from .arg_reader import ArgReader
from .argument import duration, integer, texts

_ON = re.compile(r"any|signal|oom|([0-9]{1,3})(-([0-9]{1,3}))?")


def _reason(policy: ArgReader, key: str, reason: str) -> str:
    match = _ON.fullmatch(reason)
    low, high = (int(match.group(n) or match.group(1) or 0) for n in (1, 3)) if match else (1, 0)
    if not low <= high <= 255:
        remedy = 'Use "any", "signal", "oom", an exit code ("3") or a range ("64-78").'
        raise policy.error(key, f"{reason!r} is not valid", remedy)
    return reason


@dataclass(frozen=True)
class Restart:
    """When a failed task is restarted."""

    maximum: int = integer(3, 0, 1_000_000)
    """The highest number of restarts of a task in one run; 0 disables restarts."""
    backoff: float = duration(1.0)
    """The delay before the first restart. It doubles with each further restart, up to 300 s."""
    on: tuple[str, ...] = texts(_reason, ("signal",))
    """The failures after which a task is restarted: "any", "signal", "oom", an exit code ("3") or a range of exit codes ("64-78")."""
