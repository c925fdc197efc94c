"""Several calls at the same time."""

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from typing import TypeVar

PARALLEL_CALLS = 25
"""How many changes the manager of a Swarm is asked for at the same time."""

K = TypeVar("K")
T = TypeVar("T")
M = TypeVar("M")


def for_all(items: Sequence[M], do: Callable[[M], T], most: int = sys.maxsize) -> list[T]:
    """Call `do` for all items in parallel, at most so many. When all have ended, the first error is raised."""
    from concurrent.futures import ThreadPoolExecutor  # takes long to load

    with ThreadPoolExecutor(max(1, min(most, len(items)))) as executor:
        # Which account of AWS is asked is in the context of this thread.
        futures = [executor.submit(copy_context().run, do, item) for item in items]
        return [future.result() for future in futures]


def call_in_parallel(calls: Mapping[K, Callable[[], T]], seconds: float) -> dict[K, T | Exception]:
    """The result of each call, or its exception; `TimeoutError` if it does not return within `seconds`, one deadline for all.

    A call that is late continues in a thread that ends with the process.
    """
    results: dict[K, T | Exception] = {}

    def run(key: K, call: Callable[[], T]) -> None:
        try:
            results[key] = call()
        except Exception as error:  # reported to the caller
            results[key] = error

    threads = [threading.Thread(target=run, args=item, daemon=True) for item in calls.items()]
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    timeout = TimeoutError(f"no response within {seconds:g} s")
    return {key: results.get(key, timeout) for key in calls}
