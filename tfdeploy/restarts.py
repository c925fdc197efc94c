"""What a job asks of restarts. Pure."""

import re
from dataclasses import dataclass

from .asked import Asked

_EXIT_CODES = re.compile(r"any|signal|oom|([0-9]{1,3})(-([0-9]{1,3}))?")


@dataclass(frozen=True)
class Restart:
    """When a task whose program ended badly is started again."""

    maximum: int = 3
    """How often at most, in one run."""
    backoff: float = 1.0
    """Seconds before the first restart; doubled with each one after it."""
    on: tuple[str, ...] = ("signal",)
    """After which ends: `any`, `signal`, `oom`, an exit code (`3`) or a range of them (`64-78`)."""


def restarts(ask: Asked, default: Restart) -> Restart:
    """What is asked for, over what is there by default.

    Raises:
        SpecError: an argument cannot be what the user wants.
    """
    given = ask.mapping("restart", values=object)
    policy = Asked(f"{ask.where}: restart", given)
    policy.only("its settings", ("maximum", "backoff", "on"))
    on = policy.texts("on") if given.get("on") is not None else default.on
    for kind in on:
        match = _EXIT_CODES.fullmatch(kind)
        low, high = (int(match.group(n) or match.group(1) or 0) for n in (1, 3)) if match else (1, 0)
        if not low <= high <= 255:
            raise policy.refuse("on", f"{kind!r} is no way to end", 'It takes "any", "signal", "oom", "3" or "64-78".')
    return Restart(
        policy.whole("maximum", default.maximum, 0, 1_000_000), policy.duration("backoff", default.backoff), on
    )
