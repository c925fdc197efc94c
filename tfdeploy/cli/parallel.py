"""Several calls in parallel, with one deadline for all: a call that hangs does not delay the others."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

K = TypeVar("K")
T = TypeVar("T")


def call_in_parallel(calls: Mapping[K, Callable[[], T]], seconds: float) -> dict[K, T | Exception]:
    """The result of each call, or its exception; `TimeoutError` if it does not return within `seconds`.

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
