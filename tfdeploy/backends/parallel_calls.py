"""The same call for many tasks or machines at the same time."""

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

PARALLEL_CALLS = 25
"""How many changes the manager of a Swarm is asked for at the same time."""

T = TypeVar("T")
M = TypeVar("M")


def for_all(items: Sequence[M], do: Callable[[M], T], most: int = sys.maxsize) -> list[T]:
    """Call `do` for all items in parallel, at most so many. When all have ended, the first error is raised."""
    with ThreadPoolExecutor(max(1, min(most, len(items)))) as executor:
        # Which account of AWS is asked is in the context of this thread.
        futures = [executor.submit(copy_context().run, do, item) for item in items]
        return [future.result() for future in futures]
