"""Few containers of a machine start at the same time: an engine that starts a hundred at once takes longer for all of them."""

import threading
import time
from collections import defaultdict

from docker.errors import NotFound

from ....agent.polling import wait_until
from ....component.plugin_exit import is_cancelled
from .swarm import Swarm

AT_ONCE = 8
"""So many containers of a machine start at the same time."""

_LONGEST_START, _NO_TURNS = 5.0, 60.0
"""Seconds. Where a container has not started after the first, as while its image is pulled, the others of its machine no longer wait
for their turns, for the second."""

_PAUSE = 0.05


class _Machine:
    """What this process has created on one machine."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.starting: dict[str, float] = {}
        """The ids of the services whose containers may not run yet, and since when they exist."""
        self.next_turns = 0.0


class StartTurns:
    """The turns of all services that this process creates."""

    def __init__(self) -> None:
        self._machines: dict[tuple[str, str], _Machine] = defaultdict(_Machine)

    def wait(self, swarm: Swarm, machine: str) -> None:
        """Wait until few containers of a machine start."""
        state = self._machines[swarm.engine.host, machine]
        with state.lock:
            if time.monotonic() >= state.next_turns:
                wait_until(lambda: is_cancelled() or _is_due(swarm, state), _LONGEST_START, _PAUSE)

    def note(self, swarm: Swarm, machine: str, service_id: str) -> None:
        """A service was created."""
        self._machines[swarm.engine.host, machine].starting[service_id] = time.monotonic()


def _is_due(swarm: Swarm, state: _Machine) -> bool:
    if len(state.starting) < AT_ONCE:
        return True
    known = dict(state.starting)
    try:
        started = swarm.started(list(known))
    except NotFound:  # one was removed meanwhile
        started = set(known)
    for service_id in started:
        del state.starting[service_id]
    now = time.monotonic()
    if any(now - since > _LONGEST_START for service_id, since in known.items() if service_id not in started):
        state.starting.clear()
        state.next_turns = now + _NO_TURNS
    return len(state.starting) < AT_ONCE
