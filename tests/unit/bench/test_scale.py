"""How what plan, preview, report and page cost grows with the number of tasks: function calls and memory, which do not scatter."""

import sys
from collections.abc import Callable

import pytest

from bench.scale import memory_of, parts

SMALL, LARGE = 30, 300

LINEAR, LINEAR_MEMORY = 10.0, 10.5
"""How many times as much ten times as many tasks may need."""


def calls_of(call: Callable[[], object]) -> int:
    """How many functions a call calls, those in C too."""
    count = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


@pytest.fixture(scope="module")
def by_size() -> dict[int, dict[str, Callable[[], object]]]:
    """The parts, for few tasks and for ten times as many."""
    return {tasks: parts(tasks) for tasks in (SMALL, LARGE)}


@pytest.mark.parametrize("part", ["plan", "preview", "report", "page"])
def test_a_part_needs_ten_times_as_much_for_ten_times_as_many_tasks(
    part: str, by_size: dict[int, dict[str, Callable[[], object]]]
) -> None:
    few, many = (calls_of(by_size[tasks][part]) for tasks in (SMALL, LARGE))
    assert many <= LINEAR * few, f"{few} calls for {SMALL} tasks, {many} for {LARGE}"
    low, high = (memory_of(by_size[tasks][part]) for tasks in (SMALL, LARGE))
    assert high <= LINEAR_MEMORY * low, f"{low} bytes for {SMALL} tasks, {high} for {LARGE}"
