"""Numbers become places on a chart, and the words beside it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdeploy.report.html.chart import Axis, steps_axis, thinned, time_axis, values_axis

NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


@pytest.mark.parametrize(
    ("axis", "ticks"),
    [
        (values_axis([0.06, 2.4]), ["0", "1", "2", "3"]),
        (values_axis([0.9, 0.97]), ["0.90", "0.92", "0.94", "0.96", "0.98"]),
        (values_axis([3e-6, 1e-5]), ["0", "2.5e-06", "5e-06", "7.5e-06", "1e-05"]),
        (values_axis([12_000.0, 0.5, 0.4, 0.3]), ["0.1", "10", "1,000", "100,000"]),
        (steps_axis([10, 2000]), ["0", "500", "1,000", "1,500", "2,000"]),
        (steps_axis([900, 2000]), ["1,000", "1,500", "2,000"]),
        (time_axis(99), ["0 s", "30 s", "1 min", "1 min 30 s"]),
        (time_axis(0.4), ["0 s", "0.1 s", "0.2 s", "0.3 s", "0.4 s"]),
        (time_axis(400_000), ["0 s", "1 d", "2 d", "3 d", "4 d"]),
    ],
)
def test_ticks_are_round(axis: Axis, ticks: list[str]) -> None:
    assert [text for _, text in axis.ticks] == ticks


@given(st.lists(NUMBERS))
def test_every_value_has_a_place(values: list[float]) -> None:
    axis = values_axis(values)
    assert 1 <= len(axis.ticks) <= 12
    assert all(0 <= axis.place(value) <= 1 for value in values if math.isfinite(value))


@given(st.lists(st.tuples(st.floats(0, 1e6), NUMBERS), max_size=300), st.integers(4, 50))
def test_thinned_points_keep_the_ends_and_the_extremes(points: list[tuple[float, float]], most: int) -> None:
    kept = thinned(points, most)
    assert len(kept) <= max(most, 4)
    assert [point for point in kept if point not in points and not math.isnan(point[1])] == []
    finite = [y for _, y in points if math.isfinite(y)]
    if finite:
        assert {min(finite), max(finite)} <= {y for _, y in kept}
    if points:
        assert (kept[0], kept[-1]) == (points[0], points[-1])
