"""The launcher's side of `control/order_changes.py`: it is notified at once that orders have changed."""

import random
import threading
import time
from typing import Any, Callable, Dict, Optional

from .rpc import CallError, Client

WAIT_SECONDS = 20.0
"""The call returns after so long if nothing has changed."""


CALL_SECONDS = WAIT_SECONDS + 10.0


_REFUSED_SECONDS = 30.0
"""A controller of an earlier version refuses the call."""


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
