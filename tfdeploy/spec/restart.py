"""When a failed task is restarted: the argument `restart`, and its defaults. Pure."""

import re
from dataclasses import dataclass, field

from .arg_reader import ArgReader

_ON = re.compile(r"any|signal|oom|([0-9]{1,3})(-([0-9]{1,3}))?")


@dataclass(frozen=True)
class Restart:
    """When a failed task is restarted."""

    maximum: int = 3
    backoff: float = field(default=1.0, metadata={"unit": "s"})
    on: tuple[str, ...] = ("signal",)


RESTART_KEYS = ("maximum", "backoff", "on")


def restart_policy(args: ArgReader, default: Restart) -> Restart:
    """The restart policy: `restart` over `default`, setting by setting.

    Raises:
        SpecError: a setting is not valid.
    """
    policy = args.group("restart", RESTART_KEYS)
    on = policy.strings("on") if policy.has("on") else default.on
    for reason in on:
        match = _ON.fullmatch(reason)
        low, high = (int(match.group(n) or match.group(1) or 0) for n in (1, 3)) if match else (1, 0)
        if not low <= high <= 255:
            remedy = 'Use "any", "signal", "oom", an exit code ("3") or a range ("64-78").'
            raise policy.error("on", f"{reason!r} is not valid", remedy)
    return Restart(
        policy.integer("maximum", default.maximum, 0, 1_000_000), policy.duration("backoff", default.backoff), on
    )
