"""Before a task starts again: its former launcher must not run its program any more."""

import time
from collections.abc import Callable

from ....agent.sync import LEASE_SECONDS

_RESPONDING_SECONDS = 10.0
"""A launcher reports every second. A Swarm takes a machine for down when it has not heard of it for about 15 s."""

_POLL_SECONDS = 1.0


def wait_for_lease(hostname: str, silent_seconds: Callable[[], float | None]) -> None:
    """Wait until the lease of a task's launcher has ended; at once where the launcher responds, because the Swarm stops it then.

    `silent_seconds` is how long the controller has received nothing from it, by the controller's clock; None while that is unknown.
    """
    begin = time.monotonic()
    is_reported = False
    while (waited := time.monotonic() - begin) < LEASE_SECONDS:
        silent = silent_seconds()
        if silent is not None and not _RESPONDING_SECONDS <= silent < LEASE_SECONDS:
            return
        if not is_reported:
            print(_sentence(hostname, silent, LEASE_SECONDS - (waited if silent is None else silent)), flush=True)
            is_reported = True
        time.sleep(_POLL_SECONDS)


def _sentence(hostname: str, silent: float | None, remaining: float) -> str:
    """Why the user waits, and for how long."""
    reason = (
        "the controller does not respond, so it is not known whether its launcher on the former machine does"
        if silent is None
        else f"its launcher on the former machine last reported {silent:.0f} s ago"
    )
    return f"{hostname} starts in at most {remaining:.0f} s: {reason}. Until then its program may still run there"
