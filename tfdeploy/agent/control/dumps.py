"""The dumps of tasks that a user has asked for: which launchers are to send one, and those that have arrived."""

import json
import threading
from typing import Any, Callable, Dict, List, Set, Tuple

from .order_changes import OrderChanges

OPEN_SECONDS = 30.0
"""For so long launchers are asked. Afterwards the dumps are forgotten."""


class Dumps:
    """The last request. Its number is in orders until a task has sent its dump; a newer request replaces it."""

    def __init__(self, changes: OrderChanges, clock: Callable[[], float]) -> None:
        self._changes, self._clock = changes, clock
        self._lock = threading.Lock()
        self._number = 0
        self._begun = float("-inf")
        self._asked: Set[str] = set()
        self._arrived: Dict[str, Tuple[int, Any]] = {}

    def request(self) -> Dict[str, int]:
        """Ask all launchers; the number of the request."""
        with self._lock:
            self._number += 1
            self._begun = self._clock()
            number = self._number
        self._changes.wake()
        return {"number": number}

    def wanted(self, hostname: str) -> int:
        """The number of the dump that this task, whose program runs, should send; 0 for none."""
        with self._lock:
            is_open = self._clock() - self._begun < OPEN_SECONDS
            if not is_open:
                self._arrived.clear()
                self._asked.clear()
            elif self._arrived.get(hostname, (0,))[0] < self._number:
                self._asked.add(hostname)
                return self._number
            return 0

    def put(self, hostname: str, number: int, content: bytes) -> None:
        """A dump has arrived; one that no task was asked for is ignored."""
        with self._lock:
            if hostname in self._asked and number <= self._number:
                self._arrived[hostname] = (number, json.loads(content))

    def arrived(self, number: int, known: List[str]) -> Dict[str, Any]:
        """The dumps of this request, or of a newer one, without those of the tasks in `known`."""
        with self._lock:
            items = self._arrived.items()
            return {"dumps": {name: dump for name, (of, dump) in items if of >= number and name not in known}}
