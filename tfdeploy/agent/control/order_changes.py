"""Launchers are notified at once that orders have changed, instead of at their next sync: a call returns when they have.

The response has no order. So it may arrive late, twice or never: a launcher that is notified asks for its order as always.
"""

import os
import random
import threading
import time
from typing import Any, Callable, Dict, Optional

from ..run_state import RunState
from ..transport.rpc import CallError, Client
from .end_policy import finishing_evaluator, finishing_workers

WAIT_SECONDS = 20.0
"""The call returns after so long if nothing has changed."""

CALL_SECONDS = WAIT_SECONDS + 10.0

_REFUSED_SECONDS = 30.0
"""A controller of an earlier version refuses the call."""


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


class ChangeWatch:
    """The launcher's side: a thread that calls `wake` when orders have changed."""

    def __init__(self, connect: Callable[[], Client], wake: Callable[[], None]) -> None:
        self._connect = connect
        self._wake = wake
        self._has_contact = threading.Event()
        self._number = 0
        self._thread: Optional[threading.Thread] = None

    def note_contact(self) -> None:
        """The controller responds. Until then, and while it does not, nothing is called."""
        self._has_contact.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()

    def _watch(self) -> None:
        while self._has_contact.wait():
            self._has_contact.clear()  # before the call: a contact during it is not lost
            self._listen()

    def _listen(self) -> None:
        """Call the controller again and again, as long as it responds."""
        try:
            with self._connect() as client:
                while True:
                    self._note(client.json("GET", f"/changes/{self._number}"))
        except OSError:
            pass
        except (CallError, ValueError, KeyError, TypeError):
            time.sleep(_REFUSED_SECONDS)

    def _note(self, response: Dict[str, Any]) -> None:
        if response["number"] != self._number:
            self._number = response["number"]
            time.sleep(random.uniform(0.0, response["within"]))
            self._wake()
