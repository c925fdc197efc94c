"""Several questions at once, each with the same deadline: one that nobody answers keeps no other waiting."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

K = TypeVar("K")
T = TypeVar("T")


def at_once(calls: Mapping[K, Callable[[], T]], seconds: float) -> dict[K, T | Exception]:
    """What each call answered within so many seconds, or why it did not; `TimeoutError` for no answer.

    A call that is late goes on in a thread that ends with the process.
    """
    answers: dict[K, T | Exception] = {}

    def ask(key: K, call: Callable[[], T]) -> None:
        try:
            answers[key] = call()
        except Exception as error:  # whoever asked is told
            answers[key] = error

    threads = [threading.Thread(target=ask, args=item, daemon=True) for item in calls.items()]
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    late = TimeoutError(f"no answer within {seconds:g} s")
    return {key: answers.get(key, late) for key in calls}
