"""Launchers are notified at once that orders have changed, instead of at their next sync: a call returns when they have.

The response has no order. So it may arrive late, twice or never: a launcher that is notified asks for its order as always.
"""

import os
import threading
from typing import Any

from ..model.run_state import RunState
from ..wire.change_watch import WAIT_SECONDS
from .end_policy import finishing_evaluator, finishing_workers


class OrderChanges:
    """Counts the changes of what concerns all launchers of a run: another run, its start, its end, that of its last worker and of its
    evaluator, other tasks."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._number = int.from_bytes(os.urandom(6), "big")  # a controller that starts again has another one
        self._seen: Any = None

    def note(self, run: RunState, now: float) -> None:
        """The run has changed; wake those that wait where that concerns all launchers."""
        seen = (
            run.spec.id,
            run.barrier_passed,
            run.result is None,
            run.result is not None and (bool(finishing_workers(run, now)), bool(finishing_evaluator(run, now))),
            run.stop_requested,
            run.restarting_task,
            len(run.tasks),
        )
        if seen == self._seen:
            return
        self._seen = seen
        self.wake()

    def wake(self) -> None:
        """Wake those that wait."""
        with self._condition:
            self._number += 1
            self._condition.notify_all()

    def wait(self, number: int, seconds: float = WAIT_SECONDS) -> int:
        """The present number, as soon as it is another one than `number`."""
        with self._condition:
            self._condition.wait_for(lambda: self._number != number, seconds)
            return self._number
