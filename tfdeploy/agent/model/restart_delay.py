"""Whether a program starts again after its end, and when. Controller and launchers decide by it."""

from typing import List, Optional

from .run_spec import RestartPolicy
from .run_state import SUCCEEDED, Ended

MAX_BACKOFF = 300.0
"""The back-off doubles with each restart, up to this many seconds."""

_MAX_DOUBLINGS = 60


def restart_delay(policy: RestartPolicy, failures: int, exit_: Ended) -> Optional[float]:
    """Seconds from this end of a program to its next start, after so many failures before; None where the policy starts none."""
    if exit_.state == SUCCEEDED or failures >= policy.maximum or not _is_retried(policy.on, exit_):
        return None
    if failures == 0:
        return 0.0
    doubled = policy.backoff * 2.0 ** min(failures - 1, _MAX_DOUBLINGS)
    return min(doubled, max(MAX_BACKOFF, policy.backoff))


def _is_retried(kinds: List[str], exit_: Ended) -> bool:
    """Whether a policy's `on` includes this end."""

    def match(kind: str) -> bool:
        if kind in ("any", "oom", "signal"):
            by_signal = bool(exit_.signal) and not exit_.out_of_memory
            return {"any": True, "oom": exit_.out_of_memory, "signal": by_signal}[kind]
        low, _, high = kind.partition("-")
        return int(low) <= exit_.code <= int(high or low)

    return any(match(kind) for kind in kinds)
