"""What the parts of a large cluster cost, by counts of function calls, which do not scatter."""

import sys
from collections.abc import Callable

import pytest

from bench.scale import parts

SMALL, LARGE = 30, 300


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
def counts() -> dict[str, tuple[int, int]]:
    """Of each part, for few tasks and for ten times as many."""
    small, large = parts(SMALL), parts(LARGE)
    return {part: (calls_of(small[part]), calls_of(large[part])) for part in large}


@pytest.mark.parametrize("part", ["plan", "preview", "report", "page"])
def test_a_part_calls_ten_times_as_many_functions_for_ten_times_as_many_tasks(
    part: str, counts: dict[str, tuple[int, int]]
) -> None:
    few, many = counts[part]
    assert many <= 10.5 * few, f"{few} calls for {SMALL} tasks, {many} for {LARGE}"
